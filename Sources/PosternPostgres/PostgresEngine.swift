// Whether a server behaves as PostgreSQL in everything that Postern relies on.

import CPQ
import Database

/// The tests of a server. Other engines speak PostgreSQL's protocol, and some of them accept
/// statements that they do not execute: CockroachDB grants every advisory lock. Two hosts would
/// then deliver the same events, and no error would tell.
package struct PostgresEngine: Sendable {
    /// The statement that takes an advisory lock by its number, or returns false.
    private static let lock = "SELECT pg_try_advisory_lock(?)"
    /// The oldest version whose statements Postern uses, as libpq gives it.
    private static let oldest: Int32 = 150_000

    private let isolation: String
    private let turn: String

    /// - Parameters:
    ///   - isolation: the level at which conflicts must be reported. Tests give a weaker one.
    ///   - turn: the mode of a table lock that must exclude other changes (`Turn`), likewise.
    package init(isolation: String = "SERIALIZABLE", turn: String = "EXCLUSIVE") {
        (self.isolation, self.turn) = (isolation, turn)
    }

    /// Tests two connections of one server. Before the first migration it tests only what needs no
    /// table. It writes two rows of `settings`, and deletes them.
    func require(_ first: PostgresLink, _ second: PostgresLink) throws(PostgresFailure) {
        let name = try Self.name(first)
        func refusal(_ reason: String) -> PostgresFailure {
            PostgresFailure(
                StoreFailure.permanent(
                    .refused,
                    "the server (\(name)) does not behave as PostgreSQL 15 or later: \(reason)"
                ).by(.otherEngine))
        }
        guard first.serverVersion >= Self.oldest else {
            throw refusal("it says that it is version \(first.serverVersion / 10_000)")
        }
        /// A failure that is no answer (the server ended, is full …) stays what it is.
        func tested(
            _ lacking: String, _ test: () throws(PostgresFailure) -> Bool
        ) throws(PostgresFailure) {
            let isPassed: Bool
            do throws(PostgresFailure) { isPassed = try test() } catch {
                guard error.isRefusedStatement else { throw error }
                throw refusal("\(lacking) (\(error.message))")
            }
            guard isPassed else { throw refusal(lacking) }
        }
        try tested("two connections got the same advisory lock at one time") {
            () throws(PostgresFailure) in
            try Self.advisoryLocksExclude(first, second)
        }
        let tables = try first.rows(
            "SELECT to_regclass(?) IS NOT NULL AND to_regclass(?) IS NOT NULL",
            [.text(Turn.table), .text("settings")])
        guard tables.first?.values == [true.sqlValue] else { return }
        try tested("a table that one connection locked was locked by another one") {
            () throws(PostgresFailure) in
            try tableLocksExclude(first, second)
        }
        try tested("two SERIALIZABLE transactions that conflict were both committed") {
            () throws(PostgresFailure) in
            try conflictsAreReported(first, second)
        }
    }

    /// The first words of the server's description of itself.
    private static func name(_ link: PostgresLink) throws(PostgresFailure) -> String {
        let said = try link.rows("SELECT CAST(version() AS TEXT)", []).first?.values.first
        guard case .text(let text)? = said else { return "without a name" }
        let words = text.unicodeScalars.prefix(60).split { $0 == " " }.prefix(3)
        return words.map { word in
            String(String.UnicodeScalarView(word.filter { $0.value > 0x20 && $0.value < 0x7F }))
        }.joined(separator: " ")
    }

    /// Random, so that hosts that start at the same time do not disturb each other.
    private static func advisoryLocksExclude(
        _ first: PostgresLink, _ second: PostgresLink
    ) throws(PostgresFailure) -> Bool {
        let number = [SQLValue.integer(.random(in: .min ... .max))]
        func take(_ link: PostgresLink) throws(PostgresFailure) -> Bool {
            try link.rows(lock, number).first?.values == [true.sqlValue]
        }
        guard try take(first), try !take(second) else { return false }
        _ = try first.rows("SELECT pg_advisory_unlock(?)", number)
        guard try take(second) else { return false }
        _ = try second.rows("SELECT pg_advisory_unlock(?)", number)
        return true
    }

    /// NOWAIT, because other changes would queue behind one that waits for a turn alone.
    private func tableLocksExclude(
        _ first: PostgresLink, _ second: PostgresLink
    ) throws(PostgresFailure) -> Bool {
        try inTransaction(first, "LOCK TABLE \(Turn.table) IN ROW SHARE MODE") {
            () throws(PostgresFailure) in
            do throws(PostgresFailure) {
                try inTransaction(second, "LOCK TABLE \(Turn.table) IN \(turn) MODE NOWAIT") {}
                return false
            } catch  where error.state == "55P03" {
                return true
            }
        }
    }

    /// Without a wait for a standby: nothing of it is kept.
    private var beginning: [String] {
        ["BEGIN ISOLATION LEVEL \(isolation), READ WRITE", "SET LOCAL synchronous_commit = off"]
    }

    private func inTransaction<T>(
        _ link: PostgresLink, _ statement: String, _ body: () throws(PostgresFailure) -> T
    ) throws(PostgresFailure) -> T {
        link.begin(beginning)
        do throws(PostgresFailure) {
            _ = try link.run(statement, [])
            let result = try body()
            try link.rollBack()
            return result
        } catch {
            try? link.rollBack()
            throw error
        }
    }

    /// Each transaction reads the row that the other one writes (write skew). Run one after the
    /// other, the second would have seen the first one's row.
    private func conflictsAreReported(
        _ first: PostgresLink, _ second: PostgresLink
    ) throws(PostgresFailure) -> Bool {
        let mark = UInt64.random(in: .min ... .max)
        let names = (1...2).map { SQLValue.text("engine_check \(mark) \($0)") }
        let links = [first, second]
        defer {
            // Each alone: one of them may have failed.
            first.begin(beginning)
            if (try? first.run("DELETE FROM settings WHERE name IN (?, ?)", names)) != nil {
                try? first.commit()
            } else {
                try? first.rollBack()
            }
        }
        do throws(PostgresFailure) {
            for (link, other) in zip(links, names.reversed()) {
                link.begin(beginning)
                _ = try link.rows("SELECT value FROM settings WHERE name = ?", [other])
            }
            for (link, own) in zip(links, names) {
                _ = try link.run("INSERT INTO settings (name, value) VALUES (?, '')", [own])
            }
            for link in links { try link.commit() }
        } catch {
            for link in links { try? link.rollBack() }
            guard error.isConflict else { throw error }
            return true
        }
        return false
    }
}

extension PostgresFailure {
    /// Whether the server answered, and the statement itself was the reason for the failure.
    fileprivate var isRefusedStatement: Bool {
        !isConnectionLost && !isNoPrimary && state != "42501"
            && ["0A", "42", "XX", "25"].contains(String(state.prefix(2)))
    }
}

extension PostgresDatabase {
    package func requireEngine() throws(StoreFailure) { try requireEngine(PostgresEngine()) }

    /// As `requireEngine`, with other tests.
    package func requireEngine(_ engine: PostgresEngine) throws(StoreFailure) {
        try storeFailures { () throws(PostgresFailure) in
            let first = try connect()
            defer { first.close() }
            let second = try connect()
            defer { second.close() }
            try engine.require(first, second)
        }
    }
}
