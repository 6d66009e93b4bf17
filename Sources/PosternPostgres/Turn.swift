// Who writes beside whom: a change that lost too often writes alone for once.

import PosternStore

/// How a change takes part in PostgreSQL's queue for the table that every one of ours locks first.
///
/// LOCK TABLE takes no snapshot: a change that waited for its turn sees all that those before it did, so that it cannot lose against
/// them. An advisory lock would be asked for with SELECT, whose snapshot would be from before the wait.
enum Turn {
    /// Beside all others.
    case beside
    /// When those that write have ended; those that come later wait for it.
    case alone
    /// Without a word: the table is not there before the first migration.
    case untold

    /// The first table that a store gets.
    static let table = "schema_migrations"

    /// Milliseconds to wait for a turn alone. Others wait as long: where a host hangs in the middle of a change it is not to be had.
    private static let patience = 500

    /// What begins the transaction.
    /// - Parameter lockMilliseconds: how long its other locks are waited for.
    func beginning(_ durability: Durability, lockMilliseconds: Int) -> [String] {
        // Relaxed: a crash of the server may lose the last few tenths of a second, one of this process nothing.
        let first = ["BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE"] + (durability == .relaxed ? ["SET LOCAL synchronous_commit = off"] : [])
        return switch self {
        case .beside: first + ["LOCK TABLE \(Self.table) IN ROW SHARE MODE"]
        case .alone:
            first + [
                "SET LOCAL lock_timeout = \(Self.patience)", "LOCK TABLE \(Self.table) IN EXCLUSIVE MODE", "SET LOCAL lock_timeout = \(lockMilliseconds)",
            ]
        case .untold: first
        }
    }
}

extension PostgresFailure {
    /// Whether the table of turns is missing.
    var isWithoutTurns: Bool { state == "42P01" && message.contains("\"\(Turn.table)\"") }

    /// Whether a turn alone was not to be had.
    func isTurnTaken(_ turn: Turn) -> Bool { turn == .alone && state == "55P03" }

    /// Whether the change itself had no chance yet.
    var isAboutTurns: Bool { isWithoutTurns || state == "55P03" }
}
