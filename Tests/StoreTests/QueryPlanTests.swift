// The path of mail must not grow slower with the number of addresses: no query of it may walk through a table.

import InternetMessage
import PosternSQLite
import PosternStore
import Synchronization
import Testing

@Suite struct QueryPlanTests {
    @Test func noQueryOnThePathOfMailScansATable() throws {
        let test = try TestStore(.sqlite)
        try test.user("u1", name: "Jane")
        let address = try test.address("u1")
        let account = address.account.number
        let recorder = RecordingDatabase(test.database)
        let store = Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.relay.relayAddress(localPart: address.address.localPart, domain: address.address.domain)
        _ = try store.relay.account(number: account, day: 1)
        _ = try store.sources.teams(registering: AddrSpec(localPart: "a", domain: "mail.juice.example"))
        _ = try store.sources.sources(teamNumber: 1)
        _ = try store.counters.reserve(account: account, kind: .forwarded, day: 1, limit: 5)
        _ = try store.counters.count(account: account, kind: .forwarded, day: 1)
        try store.counters.add([DailyCounter(accountNumber: account, day: 1, kind: .forwarded, count: 1)])
        _ = try store.counters.automaticReplyReserve(account: account, correspondentKey: [1], day: 1)
        _ = try store.counters.deleteExpired(countersBefore: 1, now: 1)
        let correspondent = AddrSpec(localPart: "a", domain: "b.example")
        for _ in 0..<2 {
            try store.tokens.insert("t", purpose: .reverse, account: account, address: correspondent, expiresAt: nil, now: 1)
        }
        _ = try store.tokens.deleteExpired(now: 1)
        _ = try store.inboxes.userID(verified: TestStore.inbox("a@b.example"))
        _ = try store.addresses.issue(team: "juice", user: "u1", TestStore.change)
        let statements = recorder.statements
        #expect(statements.count > 15)
        for (sql, arguments) in statements {
            let plan = try test.database.read { connection in
                try connection.rows("EXPLAIN QUERY PLAN " + sql, arguments).map { try $0.text(3) }
            }
            // A constant subquery or list is no table.
            let scans = plan.filter { $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW") && !$0.contains("SUBQUERY") }
            #expect(scans.isEmpty, "\(sql): \(plan)")
        }
    }
}

/// A database that remembers every statement it is asked for.
private final class RecordingDatabase: Database {
    private let inner: any Database
    private let recorded = Mutex<[String: [SQLValue]]>([:])

    init(_ inner: any Database) { self.inner = inner }

    var dialect: Dialect { inner.dialect }
    var statements: [String: [SQLValue]] { recorded.withLock { $0 } }

    func read<T>(_ body: (any DatabaseConnection) throws -> T) throws -> T {
        try inner.read { try body(Connection(inner: $0, database: self)) }
    }

    func write<T>(_ durability: Durability, _ body: (any DatabaseConnection) throws -> T) throws -> T {
        try inner.write(durability) { try body(Connection(inner: $0, database: self)) }
    }

    func close() throws { try inner.close() }

    private struct Connection: DatabaseConnection {
        let inner: any DatabaseConnection
        let database: RecordingDatabase

        func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
            database.recorded.withLock { $0[sql] = arguments }
            return try inner.rows(sql, arguments)
        }

        func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
            database.recorded.withLock { $0[sql] = arguments }
            return try inner.run(sql, arguments)
        }

        func runScript(_ sql: String) throws { try inner.runScript(sql) }
    }
}
