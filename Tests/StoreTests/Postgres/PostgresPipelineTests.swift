// BEGIN is sent with the first statement, and the reply to the end of a read is not awaited: the
// errors that are possible with this.

import Database
import Foundation
import PosternPostgres
import PostgresHarness
import StoreTesting
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct PostgresPipelineTests {
    /// A migrated schema, with a pool of one connection, so that each transaction gets the state
    /// that the previous one left.
    private struct Fixture {
        let server: PostgresServer
        let schema: String
        let database: PostgresDatabase

        init() throws {
            server = try #require(PostgresServer.shared)
            schema = "p\(UUID().uuidString.prefix(8).lowercased())"
            var settings = PostgresDatabase.Settings()
            settings.connections = 1
            database = try MigratedStore.postgres(schema: schema, on: server, settings: settings)
        }

        /// The count by another connection.
        func count() throws -> String {
            try server.psql("SELECT COUNT(*) FROM \"\(schema)\".teams").trimmingCharacters(
                in: .whitespacesAndNewlines)
        }
        func psqlAdd(_ name: String) throws {
            try server.psql(
                "INSERT INTO \"\(schema)\".teams (handle, name, created_at) VALUES ('\(name)', 'x', 1)"
            )
        }
        func state(_ backend: Int64) throws -> String {
            try server.psql("SELECT state FROM pg_stat_activity WHERE pid = \(backend)")
                .trimmingCharacters(
                    in: .whitespacesAndNewlines)
        }
        func cut(_ backend: Int64) throws {
            try server.psql("SELECT pg_terminate_backend(\(backend), 60000)")
        }
    }

    private static let insert = "INSERT INTO teams (handle, name, created_at) VALUES (?1, ?1, 1)"

    private static func backend(_ connection: any DatabaseConnection) throws -> Int64 {
        try #require(try connection.value("SELECT pg_backend_pid()"))
    }

    /// A separate prepared statement for each pattern of NULL would exceed the limit of a thousand,
    /// and then a copy or a move would fail.
    @Test func insert_nullsInVaryingColumns_isWritten() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        let columns = 11
        try world.database.write(.relaxed) { connection in
            for pattern in 0..<1_200 {
                let rows = (0..<columns).map { column -> [SQLValue] in
                    [
                        .text("t\(pattern)-\(column)"), .text("x"), .integer(1),
                        pattern & (1 << column) == 0 ? .null : .integer(Int64(column)),
                    ]
                }
                try connection.run(
                    "INSERT INTO teams (handle, name, created_at, removed_at) VALUES \(rows: rows)")
            }
        }
        let marked: Int64? = try world.database.value(
            "SELECT COUNT(*) FROM teams WHERE removed_at IS NOT NULL")
        #expect(marked == (0..<1_200).reduce(Int64(0)) { $0 + Int64($1.nonzeroBitCount) })
    }

    /// At the limit of a thousand statements, a connection must not wait for ever if the next
    /// statement begins a transaction.
    @Test func statement_moreThanConnectionKeeps_isAnswered() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        for number in 0..<1_100 {
            let found = try world.database.read { connection in
                _ = try connection.rows(SQL("SELECT 1 AS a\(number)", []))
                return try connection.value("SELECT COUNT(*) FROM teams", Int64.self)
            }
            #expect(found == 0)
        }
    }

    @Test func read_changeMeanwhile_seesOneSnapshot() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        func count(_ connection: any DatabaseConnection) throws -> Int64? {
            try connection.value("SELECT COUNT(*) FROM teams", Int64.self)
        }
        try world.database.read { connection in
            #expect(try count(connection) == 0)
            try world.psqlAdd("a")
            #expect(try count(connection) == 0)
        }
        #expect(try world.database.read(count) == 1)
        #expect(try world.database.value("SELECT COUNT(*) FROM teams", Int64.self) == 1)
    }

    @Test(
        "The connection is given back before the end of a read is answered, and is then in no transaction"
    )
    func read_ended_leavesConnectionIdle() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        let first = try world.database.read(Self.backend)
        try wait("the backend is idle", atMost: 90) { try world.state(first) == "idle" }
        for _ in 0..<50 {
            #expect(try world.database.read(Self.backend) == first)
            #expect(try world.database.value("SELECT pg_backend_pid()", Int64.self) == first)
            #expect(try world.database.write(.relaxed, Self.backend) == first)
        }
        try wait("the backend is idle", atMost: 90) { try world.state(first) == "idle" }
    }

    @Test func transaction_withoutStatements_isNotBegun() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        let backend = try world.database.read(Self.backend)
        #expect(try world.database.read { _ in 1 } == 1)
        #expect(try world.database.write(.durable) { _ in 2 } == 2)
        #expect(throws: CancellationError.self) {
            try world.database.write(.relaxed) { _ in throw CancellationError() }
        }
        #expect(try world.database.read(Self.backend) == backend)
        try wait("the backend is idle", atMost: 90) { try world.state(backend) == "idle" }
    }

    @Test(
        "A first statement that fails, in preparation or in execution, spoils neither the connection nor the next transaction"
    )
    func transaction_firstStatementFails_leavesConnectionUsable() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        let backend = try world.database.read(Self.backend)
        for broken in ["SELECT nothing FROM nowhere", "SELECT 1 / 0", "SELEKT"] {
            for _ in 0..<2 {
                #expect(throws: StoreFailure.permanent(.statement)) {
                    try world.database.rows(broken, [])
                }
                #expect(throws: StoreFailure.permanent(.statement)) {
                    try world.database.read { try $0.rows(broken, []) }
                }
                #expect(throws: StoreFailure.permanent(.statement)) {
                    try world.database.write(.durable) { try $0.rows(broken, []) }
                }
            }
            // Even if the body catches the failure, a change is not committed, and a read does not
            // continue.
            #expect(throws: StoreFailure.permanent(.statement)) {
                try world.database.write(.durable) { connection in
                    _ = try? connection.rows(broken, [])
                    _ = try? connection.run(Self.insert, [.text("a")])
                }
            }
            try world.database.read { connection in
                _ = try? connection.rows(broken, [])
                #expect(throws: StoreFailure.permanent(.statement)) {
                    try connection.rows("SELECT 1")
                }
            }
            #expect(try world.database.read(Self.backend) == backend)
        }
        #expect(try world.count() == "0")
        // A statement that could not be prepared can be prepared after its table is created.
        try world.database.write(.durable) {
            try $0.runScript("CREATE TABLE nowhere (nothing BIGINT)")
        }
        #expect(try world.database.rows("SELECT nothing FROM nowhere").isEmpty)
        try world.database.write(.durable) { _ = try $0.run(Self.insert, [.text("b")]) }
        #expect(try world.count() == "1")
    }

    @Test func read_withChange_isRefused() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        #expect(throws: (any Error).self) {
            try world.database.rows(Self.insert + " RETURNING id", [.text("a")])
        }
        #expect(throws: (any Error).self) {
            try world.database.read { try $0.run(Self.insert, [.text("a")]) }
        }
        #expect(try world.count() == "0")
        try world.database.write(.relaxed) { _ = try $0.run(Self.insert, [.text("a")]) }
        #expect(try world.count() == "1")
    }

    @Test(
        "A connection that is cut between two statements, or before COMMIT, leaves nothing; the next transaction has another one"
    )
    func transaction_connectionCut_leavesNothing() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        func cut(_ connection: any DatabaseConnection) throws {
            try world.cut(Self.backend(connection))
        }
        var error = #expect(throws: StoreFailure.self) {
            try world.database.read { connection in
                try cut(connection)
                _ = try connection.rows("SELECT 1")
            }
        }
        #expect(error?.code == .temporary(.away))
        error = #expect(throws: StoreFailure.self) {
            try world.database.write(.durable) { connection in
                try connection.run(Self.insert, [.text("a")])
                try cut(connection)
                try connection.run(Self.insert, [.text("b")])
            }
        }
        #expect(error?.code == .temporary(.away))
        error = #expect(throws: StoreFailure.self) {
            try world.database.write(.durable) { connection in
                try connection.run(Self.insert, [.text("a")])
                try cut(connection)
            }
        }
        #expect(error?.code == .temporary(.away))
        #expect(try world.count() == "0")
        // A read that has read everything succeeds, even if the reply to its end never arrives.
        let backend = try world.database.read { connection in
            let backend = try Self.backend(connection)
            try world.cut(backend)
            return backend
        }
        #expect(try world.database.read(Self.backend) != backend)
        // Cut while it is idle: the next caller does not notice.
        for _ in 0..<2 {
            try world.cut(world.database.read(Self.backend))
            try world.database.write(.durable) { _ = try $0.run("UPDATE teams SET name = 'x'") }
        }
    }

    @Test func script_transactionFails_isRolledBack() throws {
        let world = try Fixture()
        defer { try? world.database.close() }
        #expect(throws: CancellationError.self) {
            try world.database.write(.durable) { connection in
                try connection.runScript(
                    "CREATE TABLE one (id BIGINT); CREATE TABLE two (id BIGINT)")
                try connection.run("INSERT INTO two VALUES (\(1))")
                throw CancellationError()
            }
        }
        #expect(throws: StoreFailure.permanent(.statement)) {
            try world.database.rows("SELECT id FROM two")
        }
        try world.database.write(.durable) { connection in
            try connection.run(Self.insert, [.text("a")])
            try connection.runScript("CREATE TABLE one (id BIGINT); CREATE TABLE two (id BIGINT)")
            try connection.run("INSERT INTO two VALUES (\(1))")
        }
        #expect(try world.database.rows("SELECT id FROM two").count == 1)
        #expect(try world.count() == "1")
    }
}
