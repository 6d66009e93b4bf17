// A private PostgreSQL with one team and its users, filled with set-wise SQL.

import Accounts
import Database
import Foundation
import InternetMessage
import MailCrypto
import PosternPostgres
import PostgresHarness

struct BenchFailure: Error, CustomStringConvertible { let description: String }

func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

/// Runs each on its own thread until all have ended; throws the first error.
func together(_ bodies: [@Sendable () throws -> Void]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for body in bodies {
            group.addTask {
                try await withCheckedThrowingContinuation { continuation in
                    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
                }
            }
        }
        try await group.waitForAll()
    }
}

final class World: Sendable {
    static let now = Int64(Date().timeIntervalSince1970)
    static let change = Change(actor: "bench", now: now)

    let server: PostgresServer
    let database: PostgresDatabase
    let store: Store
    let users: Int
    let url: String

    /// Users `b1`, `b2`… without an inbox, each with an account with team juice, a consent to
    /// com.juice and a relay address.
    init(users: Int, settings more: [String] = []) throws {
        guard let binaries = PostgresServer.installed else {
            throw BenchFailure(description: "PostgreSQL is not installed")
        }
        server = try PostgresServer(
            binaries: binaries, settings: ["shared_buffers=512MB", "max_wal_size=4GB"] + more)
        var settings = PostgresDatabase.Settings()
        settings.connections = 16
        url = try server.url(schema: "bench")
        database = try PostgresDatabase(url: url, settings: settings)
        _ = try Migrator().migrate(database, now: 1)
        guard let keys = KeyRing(random: (0..<96).map { UInt8($0) }) else {
            throw BenchFailure(description: "no keys")
        }
        store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        self.users = users
        let team = try store.teams.add(id: "juice", name: "Juice", Self.change).number
        _ = try store.teams.add(id: "milk", name: "Milk", Self.change)
        let group = try store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, Self.change
        ).group.number
        _ = try store.apps.add(team: "milk", clientID: "com.milk", group: nil, Self.change)
        let numbers = "SELECT i FROM generate_series(1, \(users)) AS n (i)"
        for statement in [
            "INSERT INTO users (handle, created_at) SELECT 'b' || i, 1 FROM (\(numbers)) n",
            "INSERT INTO accounts (team_id, user_id, sub, created_at) SELECT \(team), id, 's.' || handle, 1 FROM users ORDER BY id",
            """
            INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
            SELECT id, \(group), 'authorized', 1, 1 FROM accounts ORDER BY id
            """,
            """
            INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
            SELECT id, 1, 'old' || id, 'relay.example', 1 FROM accounts
            """,
        ] {
            // This may take longer than a statement in mail handling is allowed to.
            try server.psql("SET search_path TO bench; " + statement)
        }
        try server.psql("SET search_path TO bench; ANALYZE")
    }

    /// Pending events, one for each of the first users.
    func post(_ count: Int, endpoint: Int64) throws {
        try server.psql(
            """
            SET search_path TO bench;
            INSERT INTO outbox (jti, endpoint_id, account_id, type, sub, event_time, created_at, state, park_at, next_attempt_at)
            SELECT gen_random_uuid()::text, \(endpoint), id, 'consent-revoked', sub, 1, \(Self.now), 'pending', \(Self.now + 86_400), 0
            FROM accounts ORDER BY id LIMIT \(count)
            """)
    }

    /// The server ends with the process.
    func end() { try? database.close() }
}
