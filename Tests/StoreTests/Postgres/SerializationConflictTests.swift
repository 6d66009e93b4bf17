// Many concurrent changes of different accounts on one PostgreSQL: how often one must be repeated
// because of a conflict.

import Accounts
import Database
import Decisions
import Events
import Foundation
import PosternPostgres
import PostgresHarness
import SignIn
import Synchronization
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct SerializationConflictTests {
    private static func parameter(_ name: String, _ standard: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
    }

    /// A database with this number of rows. Each change reads all of them, and writes its own.
    private static func ring(_ server: PostgresServer, rows: Int) throws -> PostgresDatabase {
        let database = try PostgresDatabase(url: server.url(schema: "relay"))
        _ = try Migrator().migrate(database, now: 1)
        try database.write(.durable) { connection in
            try connection.run("CREATE TABLE ring (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)")
            for row in 0..<rows {
                try connection.run("INSERT INTO ring VALUES (?1, 0)", [.integer(Int64(row))])
            }
        }
        return database
    }

    private static func change(_ database: PostgresDatabase, row: Int) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let last = try connection.value("SELECT MAX(value) FROM ring", Int64.self) ?? 0
            try connection.run(
                "UPDATE ring SET value = ?2 WHERE id = ?1",
                [.integer(Int64(row)), .integer(last + 1)])
        }
    }

    /// A change that always conflicts must not be given up after some repetitions: a move beside
    /// sign-ups would never finish.
    @Test func serializationConflict_repeated_takesExclusiveTurn() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 6)
        defer { try? database.close() }
        try await together(
            (0..<6).map { row in
                { for _ in 0..<40 { try Self.change(database, row: row) } }
            })
        // As if they had run one after the other: each value is one more than the highest, so no
        // two are the same.
        let values = try database.values("SELECT value FROM ring", Int64.self)
        #expect(Set(values).count == 6)
        #expect(database.repetitions > 0)
    }

    /// A change of many rows must not lose against small ones several times before each turn alone:
    /// a transfer beside sign-ups would take minutes.
    @Test func writeAlone_besideSmallChanges_runsOnce() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 5)
        defer { try? database.close() }
        let isOver = Mutex(false)
        let runs = Mutex(0)
        try await together(
            (1..<5).map { row in
                { while !isOver.withLock({ $0 }) { try Self.change(database, row: row) } }
            } + [
                {
                    defer { isOver.withLock { $0 = true } }
                    for _ in 0..<20 {
                        try database.writeAlone(.durable) { connection throws(StoreFailure) in
                            for _ in 0..<50 {
                                let last =
                                    try connection.value("SELECT MAX(value) FROM ring", Int64.self)
                                    ?? 0
                                try connection.run(
                                    "UPDATE ring SET value = ?1 WHERE id = 0", [.integer(last + 1)])
                            }
                            runs.withLock { $0 += 1 }
                        }
                    }
                }
            ])
        #expect(runs.withLock { $0 } == 20)
        #expect(Set(try database.values("SELECT value FROM ring", Int64.self)).count == 5)
    }

    /// A process that hangs in the middle of a change keeps others from a turn alone, but they
    /// continue beside it.
    @Test func transaction_hanging_doesNotBlockOthers() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 5)
        defer { try? database.close() }
        let (hangs, others) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await together(
            [
                {
                    // Its result does not matter.
                    try? database.write(.durable) { connection in
                        try connection.run(
                            "INSERT INTO teams (handle, name, created_at) VALUES ('juice', 'Juice', 1)"
                        )
                        hangs.signal()
                        others.wait()
                        others.signal()
                    }
                }
            ]
                + [
                    {
                        hangs.wait()
                        defer { others.signal() }
                        let done = DispatchGroup()
                        for row in 0..<4 {
                            done.enter()
                            Thread.detachNewThread {
                                defer { done.leave() }
                                do { for _ in 0..<15 { try Self.change(database, row: row) } } catch
                                { Issue.record("\(error)") }
                            }
                        }
                        done.wait()
                    }
                ])
        #expect(
            Set(try database.values("SELECT value FROM ring WHERE id < 4", Int64.self)).count == 4)
    }

    /// The server must end the transaction of a host that was stopped in the middle of a change,
    /// because others wait for its locks.
    @Test func transaction_idleTooLong_isEnded() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 2)
        defer { try? database.close() }
        var settings = PostgresDatabase.Settings()
        settings.stillMilliseconds = 300
        settings.contention = 0
        let stopped = try PostgresDatabase(url: server.url(schema: "relay"), settings: settings)
        defer { try? stopped.close() }
        let (stands, others) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await together([
            {
                #expect(throws: (any Error).self) {
                    try stopped.write(.durable) { connection in
                        try connection.run("UPDATE ring SET value = 99 WHERE id = 0")
                        stands.signal()
                        others.wait()
                    }
                }
            },
            {
                defer { others.signal() }
                stands.wait()
                try Self.change(database, row: 0)
            },
        ])
        #expect(try database.value("SELECT value FROM ring WHERE id = 0", Int64.self) == 1)
    }

    /// Decisions continue degraded after half a second, so they must not wait longer for the locks
    /// of others.
    @Test func transaction_shortTimeout_isBusy() async throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 2)
        defer { try? database.close() }
        let (holds, others) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try await together([
            {
                // It keeps the row until the other one has given up.
                try database.write(.durable) { connection in
                    try connection.run("UPDATE ring SET value = 1 WHERE id = 0")
                    holds.signal()
                    others.wait()
                }
            },
            {
                defer { others.signal() }
                holds.wait()
                let error = #expect(throws: StoreFailure.self) {
                    try database.write(.durable, timeout: .milliseconds(100)) {
                        connection throws(StoreFailure) in
                        try connection.run("UPDATE ring SET value = 2 WHERE id = 0")
                    }
                }
                #expect(error?.code == .temporary(.busy))
            },
        ])
    }

    /// A rehearsal may read a file while it runs, so it must not be repeated from the middle of the
    /// file.
    @Test func rehearsal_serializationConflict_isNotRepeated() throws {
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        let database = try Self.ring(server, rows: 2)
        defer { try? database.close() }
        var runs = 0
        let error = #expect(throws: StoreFailure.self) {
            try database.rehearse { rehearsal throws(StoreFailure) in
                runs += 1
                let last = try rehearsal.value("SELECT MAX(value) FROM ring", Int64.self) ?? 0
                try Self.change(database, row: 1)
                try rehearsal.write(.durable) { connection throws(StoreFailure) in
                    try connection.run("UPDATE ring SET value = \(last + 1) WHERE id = 1")
                }
            }
        }
        #expect(error?.code == .temporary(.busy))
        #expect(runs == 1)
    }

    private static func analyze(_ test: TestStore) throws {
        try test.database.write(.relaxed) {
            try $0.runScript("ANALYZE accounts; ANALYZE grants; ANALYZE app_groups")
        }
    }

    /// While the server knows little of a table, it may read all consents to the app to find one,
    /// and then each sign-in conflicts with all others. Its statistics are from the last count,
    /// when the table had this number of consents.
    @Test(arguments: [0, 50, 60]) func authorize_anyTableStatistics_readsNoOtherConsent(
        _ known: Int
    ) throws {
        let test = try TestStore(try #require(Engine.postgresAlone))
        let change = TestStore.change
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        let users = (0..<60).map { "u\($0)" }
        for user in users {
            _ = try test.store.users.add(
                id: user, name: nil, inbox: TestStore.inbox("\(user)@home.example"),
                isVerified: true, change)
        }
        for (number, user) in users.enumerated() {
            if number == known { try Self.analyze(test) }
            _ = try test.store.grants.authorize(
                AuthorizationRequest(clientID: "com.juice", userID: user), change)
        }
        if users.count == known { try Self.analyze(test) }
        let locks = try test.store.grants.addresses.events.write(at: change.now) {
            connection, tracker throws(StoreFailure) in
            _ = try test.store.grants.authorize(
                connection, tracker, AuthorizationRequest(clientID: "com.juice", userID: "u7"),
                change)
            return try connection.values(
                """
                SELECT c.relname || ' ' || l.locktype || ' ' || COUNT(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                WHERE l.mode = 'SIReadLock' AND l.pid = pg_backend_pid() AND c.relname IN ('accounts', 'grants', 'grants_group')
                GROUP BY c.relname, l.locktype ORDER BY 1
                """, String.self)
        }
        // No lock remains on the consent that this change itself wrote.
        #expect(locks == ["accounts tuple 1"])
    }

    /// The same for the requests after a sign-in, and for other requests about one row. A
    /// transaction that is still open keeps the locks of concurrent ones visible, including those
    /// of other tests, so this test has its own server.
    @Test func requests_oldTableStatistics_readNoOtherRows() throws {
        let test = try TestStore(try #require(Engine.postgresAlone))
        let (store, change, now) = (test.store, TestStore.change, TestStore.now)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        try store.clients.addRedirect(
            team: "juice", clientID: "com.juice", uri: "https://juice.example/in", change)
        try test.database.write(.relaxed) {
            try $0.runScript(
                """
                ANALYZE accounts; ANALYZE grants; ANALYZE inboxes; ANALYZE relay_addresses; ANALYZE refresh_tokens;
                ANALYZE idempotency_keys; ANALYZE decisions
                """)
        }
        let team = try store.teams.team("juice").number
        let client = try #require(try store.clients.client("com.juice"))
        for number in 0..<40 {
            try test.user("u\(number)")
            _ = try store.grants.authorize(
                AuthorizationRequest(clientID: "com.juice", userID: "u\(number)"), change)
        }
        let locks = try test.database.write(.relaxed) { connection throws(StoreFailure) in
            _ = try connection.rows("SELECT 1")
            let code = try store.provider.authorize(
                ProviderAuthorization(
                    grant: AuthorizationRequest(clientID: "com.juice", userID: "u7"),
                    redirectURI: "https://juice.example/in",
                    scopes: ["openid", "email"], nonce: nil, challenge: nil, orgID: nil,
                    authenticatedAt: now), change
            ) { $0.code }
            let outcome = try store.provider.redeem(
                code: code, client: client, redirectURI: "https://juice.example/in", challenge: nil,
                now: now
            ) { $0 }
            guard case .issued(let tokens) = outcome, let refresh = tokens.refreshToken else {
                throw .permanent(.unexpectedData, "no tokens were issued")
            }
            guard
                case .issued = try store.provider.refresh(
                    token: refresh, client: client, dailyLimit: 5, now: now, finish: { $0 })
            else { throw .permanent(.unexpectedData, "no token was issued") }
            guard try store.provider.userInfo(accessToken: tokens.accessToken, now: now) != nil
            else {
                throw .permanent(.unexpectedData, "the token names no user")
            }
            let key = [UInt8](repeating: 7, count: 32)
            _ = try store.idempotency.claim(
                team: team, endpoint: "e", key: key, body: key, now: now)
            try store.idempotency.finish(
                team: team, endpoint: "e", key: key, begunAt: now, answer: "{}")
            _ = try store.checks.label(decision: "none", team: team, .legitimate, now: now)
            return try connection.values(
                """
                SELECT DISTINCT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                WHERE l.mode = 'SIReadLock' AND c.relnamespace = CAST(current_schema() AS regnamespace)
                """, String.self)
        }
        let narrow: Set = [
            "accounts_pkey", "authorization_codes_pkey", "refresh_tokens_token_hash_key",
            "idempotency_keys_pkey",
            "decisions_decision_id_key",
        ]
        #expect(narrow.isSubset(of: locks), "locks are seen: \(locks)")
        let wide: Set = [
            "accounts_team", "grants_group", "refresh_tokens_app", "decisions_team",
            "idempotency_keys_time",
            "accounts_team_id_user_id_key", "inboxes_verified", "app_groups_team",
        ]
        #expect(wide.intersection(locks).isEmpty)
    }

    /// Deliveries and changes of accounts must not conflict: a delivery must not write the row of
    /// the endpoint, which every change of an account reads.
    @Test func setForwarding_besideDeliveries_isSeldomRepeated() throws {
        let users = Self.parameter("POSTERN_CONTENTION_USERS", 100)
        let rounds = Self.parameter("POSTERN_CONTENTION_ROUNDS", 6)
        let lanes = 8
        let server = try PostgresServer(binaries: try #require(PostgresServer.installed))
        var settings = PostgresDatabase.Settings()
        settings.connections = 20
        let database = try PostgresDatabase(url: server.url(schema: "relay"), settings: settings)
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        let store = Store(
            database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
        let change = TestStore.change
        _ = try store.teams.add(id: "juice", name: "Juice", change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, change)
        let endpoint = try store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://hooks.example/"), change)
        let addresses = try (0..<users).map { number in
            _ = try store.users.add(
                id: "u\(number)", name: nil, inbox: TestStore.inbox("u\(number)@home.example"),
                isVerified: true, change)
            return try store.addresses.issue(team: "juice", user: "u\(number)", change).address
                .address
        }
        try server.psql("ANALYZE")
        let before = database.repetitions
        let isOver = Mutex(false)
        let delivered = Mutex(0)
        // At most one round of delivery for each change, even on a slow machine: more rounds would
        // count as more conflicts.
        let changed = DispatchSemaphore(value: 0)
        let group = DispatchGroup()
        group.enter()
        Thread.detachNewThread {
            defer { group.leave() }
            do {
                let lease = try #require(
                    try store.leases.take(
                        OutboxRepository.lease, seen: store.leases.state(OutboxRepository.lease),
                        holder: "test"))
                var now = TestStore.now
                while true {
                    changed.wait()
                    let isLast = isOver.withLock { $0 }
                    let due = try #require(
                        try store.outbox.due(
                            endpoint: endpoint.number, now: now, isProbe: false, limit: 256,
                            under: lease))
                    #expect(
                        try store.outbox.recordResults(
                            due.map { DeliveryResult($0) }, under: lease, now: now))
                    _ = try store.leases.renew(lease)
                    delivered.withLock { $0 += due.count }
                    now += 1
                    if isLast, due.isEmpty { return }
                    if isLast { changed.signal() }
                }
            } catch { Issue.record("\(error)") }
        }
        let changes = DispatchGroup()
        for lane in 0..<lanes {
            changes.enter()
            Thread.detachNewThread {
                defer { changes.leave() }
                do {
                    for round in 0..<rounds {
                        for user in stride(from: lane, to: users, by: lanes) {
                            try store.addresses.setForwarding(
                                addresses[user], on: round % 2 == 1, change)
                            changed.signal()
                        }
                    }
                } catch { Issue.record("\(error)") }
            }
        }
        changes.wait()
        isOver.withLock { $0 = true }
        changed.signal()
        group.wait()
        let count = users * rounds
        #expect(delivered.withLock { $0 } == count)
        let repeated = (database.repetitions - before) * 1000 / count
        print("contention: \(repeated) repetitions for 1,000 changes, beside deliveries")
        if ProcessInfo.processInfo.environment["POSTERN_CONTENTION_LOG"] != nil {
            let log = try String(
                contentsOf: server.folder.appendingPathComponent("server.log"), encoding: .utf8)
            var counts: [String: Int] = [:]
            var isConflict = false
            for line in log.split(separator: "\n") {
                if line.contains("ERROR:") {
                    isConflict = line.contains("could not serialize") || line.contains("deadlock")
                }
                if isConflict, let start = line.range(of: "STATEMENT:  ") {
                    counts[String(line[start.upperBound...].prefix(90)), default: 0] += 1
                }
            }
            for (statement, count) in counts.sorted(by: { $0.value > $1.value }).prefix(12) {
                print("  \(count) \(statement)")
            }
        }
        // Some 150 to 210 on a fast machine, for rows on the same page of an index. Each further
        // round of a change counts.
        #expect(repeated < 400)
    }

    /// A store with one account, and a further process on it.
    private static func counting() throws -> (test: TestStore, other: Store, account: Int64) {
        let test = try TestStore(try #require(Engine.postgres))
        let schema = try #require(try test.database.value("SELECT current_schema()", String.self))
        let database = try PostgresDatabase(
            url: try #require(PostgresServer.shared).url(of: schema))
        let account = try test.store.teams.team("juice").number
        let user: Int64 = try test.database.write(.durable) { connection throws(StoreFailure) in
            try connection.inserted(
                "INSERT INTO users (handle, created_at) VALUES ('counted', 1) RETURNING id")
        }
        let number: Int64 = try test.database.write(.durable) { connection throws(StoreFailure) in
            try connection.inserted(
                """
                INSERT INTO accounts (team_id, user_id, sub, created_at)
                VALUES (\(account), \(user), 's.counted', 1) RETURNING id
                """)
        }
        let keys = test.store.keys
        return (
            test, Store(database: database, keys: keys, relayDomains: ["relay.example"]), number
        )
    }

    /// A message that is counted must not wait for a command that changes many rows alone.
    @Test func count_duringTurnAlone_doesNotWait() throws {
        let (test, other, account) = try Self.counting()
        defer { try? other.database.close() }
        try test.database.writeAlone(.durable) { connection throws(StoreFailure) in
            // With its first statement the transaction begins, and takes the turn.
            _ = try connection.value("SELECT 1", Int64.self)
            for _ in 0..<3 {
                let isCounted = try other.counters.reserve(
                    account: account, kind: .forwarded, day: 1, limit: 3)
                #expect(isCounted)
            }
            try other.counters.release(account: account, kind: .forwarded, day: 1)
            // The turn is taken: any other change waits for it.
            #expect(throws: StoreFailure.temporary(.busy)) {
                try other.database.write(.durable, timeout: .milliseconds(50)) {
                    connection throws(StoreFailure) in
                    _ = try connection.run("UPDATE teams SET name = name WHERE id < 0")
                }
            }
        }
        #expect(try other.counters.count(account: account, kind: .forwarded, day: 1) == 2)
    }

    /// A change that read the count before another process counted must not overwrite that.
    @Test func count_besideSerializableChangeOfIt_isNotLost() throws {
        let (test, other, account) = try Self.counting()
        defer { try? other.database.close() }
        _ = try other.counters.reserve(account: account, kind: .forwarded, day: 1, limit: 100)
        var rounds = 0
        try test.database.write(.durable) { connection throws(StoreFailure) in
            rounds += 1
            let count: Int64? = try connection.value(
                "SELECT count FROM daily_counters WHERE account_id = \(account) AND day = 1")
            if rounds == 1 {
                _ = try other.counters.reserve(
                    account: account, kind: .forwarded, day: 1, limit: 100)
            }
            try connection.run(
                "UPDATE daily_counters SET count = \((count ?? 0) + 10) WHERE account_id = \(account) AND day = 1"
            )
        }
        #expect(rounds == 2)
        #expect(try other.counters.count(account: account, kind: .forwarded, day: 1) == 12)
    }
}
