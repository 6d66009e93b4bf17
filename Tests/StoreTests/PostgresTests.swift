// Situations that only a server has: it goes away and comes back, is a standby, refuses, or is
// shared by several hosts.

import Database
import Foundation
import PosternPostgres
import PostgresHarness
import StoreTesting
import Synchronization
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct PostgresTests {
    private static func count(_ database: any Database) throws -> Int64? {
        try database.read { try $0.value("SELECT COUNT(*) FROM teams", Int64.self) }
    }

    private static func add(_ number: Int64, _ database: any Database) throws {
        try database.write(.durable) {
            try $0.run(
                "INSERT INTO teams (handle, name, created_at) VALUES (?1, ?1, ?2)",
                [.text("t\(number)"), .integer(number)])
        }
    }

    /// A wait cannot show whether the limit of one change stays on the connection, because a
    /// statement is ended as early.
    @Test func lockTimeout_setForOneChange_isReset() throws {
        var settings = PostgresDatabase.Settings()
        settings.connections = 1
        let server = try #require(PostgresServer.shared)
        let database = try MigratedStore.postgres(
            schema: "limits_of_waiting", on: server, settings: settings)
        defer { try? database.close() }
        let body: TransactionBody<String?> = { connection throws(StoreFailure) in
            try connection.value("SELECT current_setting('lock_timeout')")
        }
        func expectUsual(_ limit: String?) throws {
            #expect(limit == "10s")
            #expect(try database.write(.durable, body) == "10s")
        }
        try expectUsual(database.write(.durable, body))
        let short = try #require(try database.write(.relaxed, timeout: .milliseconds(250), body))
        #expect(
            short.hasSuffix("ms") && (1...250).contains(Int(short.dropLast(2)) ?? 0), "\(short)")
        try expectUsual("10s")
        try expectUsual(database.writeAlone(.durable, body))
        let rehearsed = try database.rehearse { rehearsal throws(StoreFailure) in
            try rehearsal.write(.durable, body)
        }
        try expectUsual(rehearsed)
    }

    /// Single statements must not run with the isolation level of the server, the role or the
    /// database, because they could then fail with conflicts and are not repeated.
    @Test func singleStatement_serializableServer_isReadCommitted() throws {
        let server = try #require(PostgresServer.shared)
        let database = try PostgresDatabase(
            url:
                "postgresql://postern@\(server.host)/postgres?options=-cdefault_transaction_isolation%3Dserializable"
        )
        defer { try? database.close() }
        let said = try database.value(
            "SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation'",
            String.self)
        #expect(said == "serializable")
        #expect(
            try database.value("SELECT current_setting('transaction_isolation')", String.self)
                == "read committed")
    }

    @Test(
        "A failover: the standby is never written to before it is the primary, and found by itself when it is"
    )
    func failover_standbyPromoted_isUsed() throws {
        let primary = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let standby = try PostgresServer(standbyOf: primary)
        let alone = "postgresql://postern@\(standby.host)/postgres"
        let error = #expect(throws: StoreFailure.self) { try PostgresDatabase(url: alone) }
        #expect(error?.code == .temporary(.away))
        // The standby is named first: a program that uses the first server that answers would use
        // it.
        let database = try PostgresDatabase(
            url: "postgresql://postern@\(standby.host),\(primary.host)/postgres")
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        try Self.add(1, database)
        let lock = try #require(try database.lock("events"))
        #expect(lock.isHeld)
        // A client whose URL forces the standby cannot write there, and gets that reason.
        let forced = try PostgresDatabase(url: alone + "?target_session_attrs=any")
        defer { try? forced.close() }
        let refused = #expect(throws: StoreFailure.self) { try Self.add(9, forced) }
        #expect(refused?.code == .temporary(.away))

        try primary.psql("SELECT pg_switch_wal()")
        let written = try primary.psql("SELECT pg_current_wal_lsn()").trimmingCharacters(
            in: .whitespacesAndNewlines)
        try wait("the standby has what was written", atMost: 90) {
            try standby.psql("SELECT pg_last_wal_replay_lsn() >= '\(written)'::pg_lsn").hasPrefix(
                "t")
        }
        primary.stop(immediately: true)
        #expect(throws: StoreFailure.temporary(.away)) { try Self.count(database) }
        #expect(!lock.isHeld)
        try standby.psql("SELECT pg_promote()")
        try wait("the database answers", atMost: 90) { (try? Self.count(database)) == 1 }
        try Self.add(2, database)
        #expect(try Self.count(database) == 2)
        #expect(try database.lock("events")?.isHeld == true)
    }

    /// PostgreSQL then commits on the primary alone, and says so with a warning: a failover would
    /// lose a change that was confirmed.
    @Test func commit_waitForStandbyCancelled_isNotConfirmed() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try PostgresDatabase(url: "postgresql://postern@\(server.host)/postgres")
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        try server.psql("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'")
        try server.psql("SELECT pg_reload_conf()")
        try wait("the setting is in force", atMost: 90) {
            try database.value("SELECT current_setting('synchronous_standby_names')", String.self)
                == "elsewhere"
        }
        // A relaxed change waits for no standby.
        try database.write(.relaxed) { _ = try $0.run("DELETE FROM teams WHERE id < 0") }
        let outcome = Mutex<Result<Void, any Error>?>(nil)
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let result = Result { try Self.add(1, database) }
            outcome.withLock { $0 = result }
            ended.signal()
        }
        try wait("the commit waits for a standby, and the wait is cancelled", atMost: 90) {
            try server.psql(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            ).hasPrefix("t")
        }
        ended.wait()
        let result = try #require(outcome.withLock { $0 })
        #expect(throws: StoreFailure.temporary(.away)) { try result.get() }
    }

    @Test(arguments: ["off", "local", "on"])
    func durableChange_serverWithoutSynchronousCommit_isDurable(level: String) throws {
        let server = try #require(PostgresServer.shared)
        let database = try PostgresDatabase(
            url:
                "postgresql://postern@\(server.host)/postgres?options=-csynchronous_commit%3D\(level)"
        )
        defer { try? database.close() }
        func inForce(_ durability: Durability) throws -> String? {
            try database.write(durability) { connection throws(StoreFailure) in
                try connection.value("SELECT current_setting('synchronous_commit')", String.self)
            }
        }
        #expect(try inForce(.durable) == (level == "off" ? "on" : level))
        #expect(try inForce(.relaxed) == "off")
    }

    @Test func servers_inURL_areCounted() {
        for (url, count) in [
            ("postgresql://u@a/d", 1), ("postgresql://u@a,b:5433,c/d", 3),
            ("postgresql:///d?host=a,b", 2), ("postgresql:///d", 1),
        ] {
            #expect(PostgresDatabase.servers(in: url) == count, "\(url)")
        }
    }

    /// With a number in the text, the plan may ignore the limit, and sort all remaining rows for
    /// each ten thousand.
    @Test func sqlLimit_largeGroup_usesIndex() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try PostgresDatabase(url: server.url(schema: "relay"))
        defer { try? database.close() }
        func plan(_ name: String, _ limit: SQL, analyzed: Bool) throws -> String {
            try database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.runScript(
                    """
                    DROP TABLE IF EXISTS members; CREATE TABLE members (id BIGINT PRIMARY KEY, team BIGINT, filler TEXT);
                    INSERT INTO members SELECT n, CASE WHEN n % 2 = 0 THEN 1 ELSE n % 300 END, repeat('x', 50) FROM generate_series(1, 100000) n;
                    CREATE INDEX members_team ON members (team, id); \(analyzed ? "ANALYZE members;" : "")
                    SET LOCAL plan_cache_mode = force_generic_plan;
                    PREPARE \(name) (BIGINT, BIGINT) AS
                        SELECT id, filler FROM members WHERE team = $1 AND id > $2 ORDER BY id \(limit.text)
                    """)
                return try connection.rows("EXPLAIN EXECUTE \(name) (1, 0)", []).map {
                    row throws(StoreFailure) in
                    try row["QUERY PLAN"] as String
                }.joined(separator: "\n")
            }
        }
        #expect(
            try plan("a", "LIMIT 1000", analyzed: true).contains("Sort"), "what the helper is for")
        for (name, analyzed) in [("b", true), ("c", false)] {
            let plan = try plan(name, .limit(1_000), analyzed: analyzed)
            #expect(plan.contains("members_team") && !plan.contains("Sort"), "\(plan)")
        }
    }

    /// With a hundred million rows the counts of `store migrate --plan` and `keys file show` take
    /// longer than a statement may.
    @Test func readAtLength_longStatement_isAllowedOnlyThere() throws {
        let test = try TestStore(try #require(Engine.postgres))
        let schema = try #require(
            try test.database.read { try $0.value("SELECT current_schema()", String.self) })
        var settings = PostgresDatabase.Settings()
        (settings.statementMilliseconds, settings.connections) = (300, 1)
        let database = try PostgresDatabase(
            url: try #require(PostgresServer.shared).url(schema: schema), settings: settings)
        defer { try? database.close() }
        let count: SQL = "SELECT COUNT(*) FROM (SELECT pg_sleep(0.6)) s"
        for _ in 0..<2 {
            let counted = try database.readAtLength { connection throws(StoreFailure) in
                try connection.value(count, Int.self)
            }
            #expect(counted == 1)
            #expect(throws: StoreFailure.self) { try database.value(count, Int.self) }
        }
    }

    @Test("A caller after a restart of the server does not notice it")
    func restart_nextTransaction_succeeds() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try PostgresDatabase(url: "postgresql://postern@\(server.host)/postgres")
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        server.stop()
        let error = #expect(throws: StoreFailure.self) { try Self.add(1, database) }
        #expect(error?.code == .temporary(.away))
        try server.start()
        try Self.add(1, database)
        #expect(try Self.count(database) == 1)
        // The same if no caller came in the meantime: the pool's connection was ended with a
        // message.
        for isCrash in [false, true] {
            server.stop(immediately: isCrash)
            try server.start()
            #expect(try Self.count(database) == 1)
            server.stop(immediately: isCrash)
            try server.start()
            try Self.add(isCrash ? 3 : 2, database)
            try database.write(.durable) {
                _ = try $0.run("DELETE FROM teams WHERE created_at > 1")
            }
        }
    }

    @Test func pool_allConnectionsInUse_isBusy() throws {
        let test = try TestStore(try #require(Engine.postgres))
        let schema = try #require(
            try test.database.read { try $0.value("SELECT current_schema()", String.self) })
        var settings = PostgresDatabase.Settings()
        settings.connections = 1
        settings.timeout = 0.05
        let database = try PostgresDatabase(
            url: try #require(PostgresServer.shared).url(schema: schema), settings: settings)
        defer { try? database.close() }
        try database.read { _ in
            let error = #expect(throws: StoreFailure.self) { try Self.count(database) }
            #expect(error?.code == .temporary(.busy))
        }
        #expect(try Self.count(database) == 1)
    }

    @Test func lock_connectionCut_isFree() throws {
        let test = try TestStore(try #require(Engine.postgres))
        let lock = try #require(try test.database.lock("events"))
        #expect(try test.database.lock("events") == nil)
        try test.database.write(.durable) { connection in
            _ = try connection.rows(
                """
                SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
                AND ((CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT)) = hashtextextended(current_schema() || ' postern events', 0)
                """)
        }
        try wait("the lock is lost", atMost: 90) { !lock.isHeld }
        #expect(try test.database.lock("events")?.isHeld == true)
    }

    @Test func tls_untrustedCertificate_isRefused() throws {
        let certificates = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .appendingPathComponent("EventTests/Certificates").path
        let server = try PostgresServer(
            binaries: try #require(PostgresServer.installed),
            tls: ("\(certificates)/receiver.pem", "\(certificates)/receiver-key.pem"))
        let place = "postgresql://postern@127.0.0.1:\(try #require(server.port))/postgres"
        let database = try PostgresDatabase(
            url: place + "?sslmode=verify-ca&sslrootcert=\(certificates)/authority.pem")
        defer { try? database.close() }
        #expect(
            try database.read {
                try $0.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", Bool.self)
            } == true)
        // A certificate of an untrusted authority: no connection, instead of one without proof.
        let untrusted = #expect(throws: StoreFailure.permanent(.refused)) {
            try PostgresDatabase(
                url: place + "?sslmode=verify-ca&sslrootcert=\(certificates)/receiver.pem")
        }
        #expect(untrusted?.serverFault == .encryption)
    }

    @Test func open_anyFailure_showsNoPassword() throws {
        let server = try #require(PostgresServer.shared)
        let secret = "Sup3rS3cret"
        for url in [
            "postgresql://postern:\(secret)@127.0.0.1:1/postgres",
            "postgresql://postern:\(secret)@no-such-host.invalid/postgres",
            "postgresql://postern:\(secret)@\(server.host)/no_such_database",
            "postgresql://nobody:\(secret)@\(server.host)/postgres",
            "postgresql://postern:a@\(secret)@127.0.0.1/postgres",
            "postgresql://postern:a/\(secret)@127.0.0.1/postgres",
            "postgresql://postern@127.0.0.1:\(secret)/postgres?password=\(secret)",
            "postgresql://postern@\(server.host)/x?sslmode=\(secret)&password=\(secret)",
            "postgresql://postern:%zz\(secret)@127.0.0.1/postgres",
        ] {
            do {
                try PostgresDatabase(url: url).close()
                Issue.record("a connection was made")
            } catch {
                #expect(!"\(error)".contains(secret), "\(error)")
                #expect(!"\(error)".contains("\n"))
            }
        }
    }

    /// The remedy matches the cause, and is not always to check whether PostgreSQL runs.
    @Test func open_serverThatDoesNotLetUsIn_tellsWhatToPutRight() throws {
        let server = try #require(PostgresServer.shared)
        for (url, fault) in [
            ("postgresql://postern@\(server.host)/no_such_database", ServerFault.noDatabase),
            ("postgresql://nobody@\(server.host)/postgres", .noUser),
            ("postgresql://postern@127.0.0.1:1/postgres", .noAnswer),
            ("postgresql://postern@127.0.0.1:port/postgres", .badURL),
            ("postgresql://postern@no.such.host.invalid/postgres", .noHost),
        ] {
            let error = #expect(throws: StoreFailure.self, "\(url)") {
                try PostgresDatabase(url: url)
            }
            #expect(error?.serverFault == fault, "\(url): \(String(describing: error))")
        }
    }

    @Test func open_noDatabaseOrUser_isPermanentlyRefused() throws {
        let server = try #require(PostgresServer.shared)
        for url in [
            "postgresql://postern@\(server.host)/no_such_database",
            "postgresql://nobody@\(server.host)/postgres",
        ] {
            let error = #expect(throws: StoreFailure.self) { try PostgresDatabase(url: url) }
            #expect(error?.code == .permanent(.refused))
        }
    }
}
