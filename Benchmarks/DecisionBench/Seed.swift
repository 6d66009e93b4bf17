// A store with many accounts that were asked about before, written with set-wise SQL.

import Database
import Accounts
import Foundation
import PosternSQLite

/// The store of the benchmark.
struct SeededStore {
    let folder: URL
    let database: SQLiteDatabase
    let store: Store
    let team: Team
    let key: String

    static let clientID = "com.bench.app"

    /// Fills a new store; `accounts` users, each with an inbox, an account, a grant, an address and some history.
    static func make(accounts: Int, now: Int64) throws -> SeededStore {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("postern-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let database = try SQLiteDatabase(path: folder.appendingPathComponent("postern.db").path, creating: true)
        _ = try Migrator().migrate(database, now: now)
        guard let keys = KeyRing(random: (0..<96).map { UInt8($0) }) else { throw CocoaError(.featureUnsupported) }
        let store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        let change = Change(actor: "bench", now: now)
        let team = try store.teams.add(id: "bench", name: "Bench", change)
        _ = try store.apps.add(team: "bench", clientID: clientID, group: nil, change)
        let app = try store.apps.decisionApp(clientID: clientID)
        let key = try store.apiKeys.issue(
            team: "bench", scopes: [.decisionsWrite, .decisionsRead], expiresAt: nil, note: "", change)
        let (first, day) = (now - 100 * 86_400, Day.number(now))
        let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(accounts)) "
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.runScript(
                """
                INSERT INTO users (id, handle, created_at) \(numbers) SELECT i, 'u' || i, \(first) FROM n;
                INSERT INTO inboxes (id, user_id, address_key, address_sealed, index_key, address_index, canonical_index,
                    velocity_index, is_default, created_at, verified_at)
                    \(numbers) SELECT i, i, 'a', randomblob(156), 'a', randomblob(16), randomblob(16), randomblob(16), 1,
                    \(first), \(first) FROM n;
                INSERT INTO accounts (id, team_id, user_id, sub, created_at)
                    \(numbers) SELECT i, \(team.number), i, printf('%032d', i), \(first) FROM n;
                INSERT INTO grants (id, account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status,
                    first_asked_at, last_seen_at)
                    \(numbers) SELECT i, i, \(app?.groupNumber ?? 1), 'authorized', \(first), \(first), i % 3, \(first),
                    \(now) - 60 FROM n;
                INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
                    \(numbers) SELECT i, 1, printf('%016d', i), 'relay.example', \(first) FROM n;
                INSERT INTO daily_counters (account_id, day, kind, count)
                    \(numbers) SELECT i, \(day) - i % 20, 1 + i % 3, 1 FROM n;
                INSERT INTO checks (decision_id, challenge, grant_id, initiated_at, passed_at)
                    \(numbers) SELECT 'rd_' || i, 'email_code', i, \(now) - i % 5000000, \(now) - i % 5000000 + 30 FROM n
                    WHERE i % 4 = 0;
                """)
        }
        return SeededStore(folder: folder, database: database, store: store, team: team, key: key.text.revealed)
    }
}
