// Decides which changes run at the same time. A change of many rows, or one that conflicted too
// often, runs alone.

import Database

/// The way in which a change waits in PostgreSQL's queue for the table that all our changes lock
/// first.
///
/// LOCK TABLE takes no snapshot: a change that waited for its turn sees all changes before it, so
/// it cannot conflict with them. An advisory lock needs a SELECT, and its snapshot would be from
/// before the wait.
enum Turn {
    /// At the same time as all others.
    case beside
    /// After the running writers have ended; later ones wait for it.
    case alone
    /// Without the lock. Before the first migration the table does not exist, and a rehearsal must
    /// not block others.
    case untold
    /// Without the lock and READ COMMITTED: a change of one row.
    case row

    /// Whether it takes the lock.
    var isTaken: Bool { self == .beside || self == .alone }

    /// The first table that a store gets.
    static let table = "schema_migrations"

    /// Milliseconds to wait for a turn alone. Others wait for the same time. If a host hangs in the
    /// middle of a change, no turn is available.
    private static let aloneMilliseconds = 500
    /// Milliseconds that a change with a turn alone may be idle before the server ends it, for
    /// example if its host hangs. All others wait for it.
    private static let stillMilliseconds = 2000

    /// Rounds down to one of a few numbers, because a connection keeps each text that it prepared.
    private static func rounded(_ milliseconds: Int) -> Int {
        let unit = milliseconds < 100 ? 10 : milliseconds < 1000 ? 50 : 500
        return max(1, milliseconds / unit * unit)
    }

    /// The statements that begin the transaction.
    /// - Parameters:
    ///   - lockMilliseconds: how long it may wait for a lock.
    ///   - usual: the limit that the connection usually has.
    func beginning(_ durability: Durability, lockMilliseconds: Int, usual: Int) -> [String] {
        let limit = "SET LOCAL lock_timeout = \(Self.rounded(lockMilliseconds))"
        var statements = [
            "BEGIN ISOLATION LEVEL \(self == .row ? "READ COMMITTED" : "SERIALIZABLE"), READ WRITE"
        ]
        if lockMilliseconds < usual, self != .alone { statements.append(limit) }
        // Relaxed: a crash of the server may lose the last few tenths of a second; a crash of this
        // process loses nothing.
        if durability == .relaxed { statements.append("SET LOCAL synchronous_commit = off") }
        switch self {
        case .beside: statements.append("LOCK TABLE \(Self.table) IN ROW SHARE MODE")
        case .alone:
            statements += [
                "SET LOCAL idle_in_transaction_session_timeout = \(Self.stillMilliseconds)",
                "SET LOCAL lock_timeout = \(Self.aloneMilliseconds)",
                "LOCK TABLE \(Self.table) IN EXCLUSIVE MODE",
                limit,
            ]
        case .untold, .row: break
        }
        return statements
    }
}

extension PostgresFailure {
    /// Whether the table of turns does not exist, or this user may only read it.
    var isWithoutTurns: Bool { ["42P01", "42501"].contains(state) && message.contains(Turn.table) }

    /// Whether a turn alone was not available.
    func isTurnTaken(_ turn: Turn) -> Bool { turn == .alone && state == "55P03" }

    /// Whether the change itself has not run yet.
    var isAboutTurns: Bool { isWithoutTurns || state == "55P03" }
}
