// Servers that speak PostgreSQL's protocol and lack what Postern relies on are refused.

import Accounts
import Database
import Foundation
import PosternPostgres
import PostgresHarness
import StoreTesting
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct PostgresEngineTests {
    private static func migrated() throws -> (PostgresServer, String, PostgresDatabase) {
        let server = try #require(PostgresServer.shared)
        let schema = "engine_\(UUID().uuidString.prefix(8).lowercased())"
        return (server, schema, try MigratedStore.postgres(schema: schema, on: server))
    }

    @Test func engine_postgreSQL_isAccepted() throws {
        let (_, _, database) = try Self.migrated()
        defer { try? database.close() }
        // Several hosts may start at the same time.
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            #expect(throws: Never.self) { try database.requireEngine() }
        }
        #expect(
            try database.value(
                "SELECT COUNT(*) FROM settings WHERE name LIKE 'engine_check%'", Int64.self) == 0)
    }

    @Test(
        "CockroachDB grants every advisory lock: functions that shadow PostgreSQL's do the same",
        arguments: [
            "RETURN true;", "RETURN false;", "RETURN NULL;",
            "RAISE EXCEPTION 'unimplemented' USING ERRCODE = 'feature_not_supported';",
        ])
    func engine_advisoryLocksThatLockNothing_isRefused(body: String) throws {
        let (server, schema, database) = try Self.migrated()
        try database.close()
        // Before the first migration, and after it.
        for tables in [schema, "\(schema)_empty"] {
            try server.psql(
                """
                CREATE SCHEMA IF NOT EXISTS \(tables); CREATE SCHEMA \(tables)_shadow;
                CREATE FUNCTION \(tables)_shadow.pg_try_advisory_lock(number bigint) RETURNS boolean
                    LANGUAGE plpgsql AS $$ BEGIN \(body) END $$;
                """)
            let shadowed = try PostgresDatabase(
                url: server.url(of: "\(tables),\(tables)_shadow,pg_catalog"))
            defer { try? shadowed.close() }
            let error = #expect(throws: StoreFailure.permanent(.refused)) {
                try shadowed.requireEngine()
            }
            let shown = String(describing: error)
            #expect(error?.serverFault == .otherEngine, "\(shown)")
            #expect(
                shown.contains("PostgreSQL 15") && shown.contains("the same advisory lock"),
                "\(shown)")
            // A migration makes nothing on such a server.
            guard tables != schema else { continue }
            #expect(throws: StoreFailure.permanent(.refused)) {
                try Migrator().migrate(shadowed, now: 1)
            }
            #expect(
                try server.psql(
                    "SELECT COUNT(*) FROM pg_tables WHERE schemaname = '\(tables)'"
                ).hasPrefix("0"))
        }
    }

    /// PostgreSQL at a weaker level does what an engine does that only accepts the word.
    @Test(arguments: ["REPEATABLE READ", "READ COMMITTED"])
    func engine_conflictsNotReported_isRefused(level: String) throws {
        let (_, _, database) = try Self.migrated()
        defer { try? database.close() }
        let error = #expect(throws: StoreFailure.permanent(.refused)) {
            try database.requireEngine(PostgresEngine(isolation: level))
        }
        #expect("\(String(describing: error))".contains("SERIALIZABLE"))
        #expect(
            try database.value(
                "SELECT COUNT(*) FROM settings WHERE name LIKE 'engine_check%'", Int64.self) == 0)
    }

    @Test(arguments: ["ROW SHARE", "NO SUCH"])
    func engine_tableLocksThatLockNothing_isRefused(mode: String) throws {
        let (_, _, database) = try Self.migrated()
        defer { try? database.close() }
        let error = #expect(throws: StoreFailure.permanent(.refused)) {
            try database.requireEngine(PostgresEngine(turn: mode))
        }
        #expect("\(String(describing: error))".contains("a table that one connection locked"))
    }

    /// A server that is away or full is no other engine: it may answer later.
    @Test func engine_standbyOrEndedServer_isTemporary() throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try PostgresDatabase(url: "postgresql://postern@\(primary.host)/postgres")
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        let standby = try PostgresServer(standbyOf: primary)
        let reading = try PostgresDatabase(
            url: "postgresql://postern@\(standby.host)/postgres?target_session_attrs=any")
        defer { try? reading.close() }
        let refused = #expect(throws: StoreFailure.self) { try reading.requireEngine() }
        #expect(refused?.serverFault == .standby)
        primary.stop(immediately: true)
        let away = #expect(throws: StoreFailure.self) { try database.requireEngine() }
        #expect(away?.code == .temporary(.away))
    }
}
