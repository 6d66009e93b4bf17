// Fills a store with any number of addresses, set-wise, in the SQL of each engine.

import Accounts
import ArgumentParser
import Database
import Foundation
import InternetMessage
import MailCrypto

/// The differences between the engines while a store is filled.
package enum Engine: String, CaseIterable, ExpressibleByArgument, Sendable {
    case sqlite, postgres

    /// A `FROM` clause that counts `i` from `first` to `last`.
    package func numbers(_ first: Int, _ last: Int) -> String {
        switch self {
        case .sqlite:
            "(WITH RECURSIVE c (i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM c WHERE i < \(last)) SELECT i FROM c) AS n"
        case .postgres: "generate_series(\(first)::bigint, \(last)::bigint) AS n (i)"
        }
    }

    /// `i` as 16 digits.
    package var digits: String {
        self == .sqlite ? "printf('%016d', n.i)" : "lpad(n.i::text, 16, '0')"
    }
    package var octets: String {
        self == .sqlite
            ? "CAST(printf('%016d', n.i) AS BLOB)" : "convert_to(lpad(n.i::text, 16, '0'), 'UTF8')"
    }
    /// As many octets as a sealed inbox has.
    package var sealed: String {
        self == .sqlite
            ? "randomblob(94)" : "decode(repeat(md5(n.i::text), 5) || repeat('00', 14), 'hex')"
    }
    /// Indexes of the log that no constraint needs, and the statements that make them.
    fileprivate var indexes: String {
        switch self {
        case .sqlite:
            "SELECT name, sql AS text FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'decisions' AND sql IS NOT NULL"
        case .postgres:
            """
            SELECT CAST(i.indexname AS TEXT) AS name, i.indexdef AS text FROM pg_indexes i
            WHERE i.tablename = 'decisions' AND i.schemaname = current_schema()
                AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conname = i.indexname)
            """
        }
    }
    /// Settings that make filling fast, only for this transaction.
    package var prologue: String {
        self == .sqlite
            ? "PRAGMA cache_size = -500000;" : "SET LOCAL session_replication_role = replica;"
    }
}

package enum Seeding {
    /// Rows of one transaction: less than a second's worth, so that SQLite's write-ahead log can be
    /// moved between two of them.
    private static let part = 25_000
    package static let domain = "relay.example"
    package static let team = "bench"
    package static let clientID = "com.bench.app"
    package static let now: Int64 = 1_790_000_000

    package static func localPart(_ number: Int) -> String { String(format: "%016d", number) }

    /// Adds users, inboxes, accounts, grants and addresses 1 to `count`. The last decision about
    /// each was about 100 days ago, with an event since. Their inboxes can be opened after they are
    /// sealed.
    package static func fill(_ store: Store, _ engine: Engine, count: Int, now: Int64 = now) throws
    {
        let change = Change(actor: "bench", now: now)
        let team = try store.teams.add(id: Self.team, name: "Bench", change)
        try store.sources.add(
            team: Self.team,
            OutboundSource(
                kind: .domain, value: "seeded.example", envelopeDomain: nil, createdAt: now), change
        )
        _ = try store.apps.add(team: Self.team, clientID: clientID, group: nil, change)
        let (first, day) = (now - 100 * 86_400, Day.number(now))
        for part in parts(count) {
            let numbers = engine.numbers(part.lowerBound, part.upperBound)
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.runScript(
                    """
                    \(engine.prologue)
                    INSERT INTO users (id, handle, last_inbox_number, created_at) SELECT n.i, 'u' || n.i, 1, \(first) FROM \(numbers);
                    INSERT INTO inboxes (id, user_id, number, address_key, address_sealed, index_key, address_index, canonical_index,
                        velocity_index, tombstone_index, is_default, created_at, verified_at)
                        SELECT n.i, n.i, 1, 'a', \(engine.sealed), 'a', \(engine.octets), \(engine.octets), \(engine.octets),
                        \(engine.octets), 1, \(first), \(first) FROM \(numbers);
                    INSERT INTO accounts (id, team_id, user_id, sub, created_at, has_live_grant, target_inbox)
                        SELECT n.i, \(team.number), n.i, \(engine.digits), \(first), 1, n.i FROM \(numbers);
                    INSERT INTO grants (id, account_id, group_id, state, first_authorized_at, last_authorized_at, real_user_status,
                        first_asked_at, last_seen_at)
                        SELECT n.i, n.i, (SELECT MAX(id) FROM app_groups), 'authorized', \(first), \(first), n.i % 3, \(first),
                        \(now) - 60 FROM \(numbers);
                    INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
                        SELECT n.i, 1, \(engine.digits), '\(domain)', \(first) FROM \(numbers);
                    INSERT INTO daily_counters (account_id, day, kind, count)
                        SELECT n.i, \(day) - n.i % 20, 1 + n.i % 3, 1 FROM \(numbers);
                    INSERT INTO checks (decision_id, challenge, grant_id, initiated_at, passed_at)
                        SELECT 'rd_' || n.i, 'email_code', n.i, \(now) - n.i % 5000000, \(now) - n.i % 5000000 + 30
                        FROM \(numbers) WHERE n.i % 4 = 0;
                    """)
            }
        }
        if engine == .postgres {
            // The sequence does not know numbers that were inserted explicitly.
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                for table in ["users", "inboxes", "accounts", "grants"] {
                    try connection.runScript(
                        "SELECT setval(pg_get_serial_sequence('\(table)', 'id'), (SELECT MAX(id) FROM \(table)))"
                    )
                }
            }
        }
        // The server would expect empty tables to stay empty, and read all accounts of a team to
        // find one.
        if count > 0 { try analyze(store, engine) }
    }

    /// Adds `count` decisions to the log, the oldest 90 days ago, each of another account in turn.
    package static func fillLog(
        _ store: Store, _ engine: Engine, count: Int, accounts: Int, now: Int64
    ) throws {
        guard count > 0 else { return }
        // Indexes are made from all rows at once, which takes a fraction of the time.
        let indexes: [(name: String, text: String)] = try store.database.read {
            connection throws(StoreFailure) in
            try connection.rows(SQL(engine.indexes, [])).map { row throws(StoreFailure) in
                (try row["name"], try row["text"])
            }
        }
        try store.database.write(.relaxed) { connection throws(StoreFailure) in
            for index in indexes { try connection.runScript("DROP INDEX \(index.name)") }
        }
        for part in parts(count) {
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.runScript(
                    """
                    \(engine.prologue)
                    INSERT INTO decisions (decision_id, team_id, client_id, grant_id, claimed_event, event, decision, challenges,
                        reasons, wire_reasons, asked, skips, waived, missing, errors, shadow, signals, policy_name, policy_version,
                        policy_hash, credential_state, degraded, evaluated_at, expires_at)
                        SELECT 'rd_0' || \(engine.digits), (SELECT MAX(id) FROM teams), '\(clientID)', 1 + n.i * 7919 % \(accounts),
                        'sign_in', 'sign_in', 'allow', '', '', '', '', '', '', '', '', '', '{}', 'default', '1', 'h', 'authorized', 0,
                        \(now) - 90 * 86400 + n.i * 89 * 86400 / \(count), \(now)
                        FROM \(engine.numbers(part.lowerBound, part.upperBound));
                    """)
            }
        }
        for index in indexes {
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.runScript(index.text)
            }
        }
        try analyze(store, engine)
    }

    private static func parts(_ count: Int) -> [ClosedRange<Int>] {
        stride(from: 1, through: count, by: part).map { $0...min(count, $0 + part - 1) }
    }

    private static func analyze(_ store: Store, _ engine: Engine) throws {
        guard engine == .postgres else { return }
        try store.database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.runScript("ANALYZE")
        }
    }

    /// Gives these users an inbox that can be opened, sealed as the product seals it: nonce, then
    /// AES-256-GCM of the padded address, bound to the user.
    package static func seal(_ store: Store, keys: KeyRing, users: [Int]) throws {
        let key = keys.seal.active
        let sealed = try users.map { user in
            let local = Array("user\(user)".utf8)
            let address =
                [UInt8(local.count >> 8), UInt8(local.count & 0xFF)] + local
                + Array("home.example".utf8)
            var text = [UInt8(address.count >> 8), UInt8(address.count & 0xFF)] + address
            text += [UInt8](repeating: 0, count: (64 - text.count % 64) % 64)
            let nonce = try SecureRandom.bytes(count: 12)
            let octets = try AESGCM.seal(
                text, key: key.secret, nonce: nonce,
                associatedData: Array("postern inbox 1 \(user)".utf8))
            return (user: user, octets: nonce + octets)
        }
        try store.database.write(.relaxed) { connection throws(StoreFailure) in
            for (user, octets) in sealed {
                try connection.run(
                    "UPDATE inboxes SET address_key = ?2, address_sealed = ?3 WHERE id = ?1",
                    [.integer(Int64(user)), .text(key.idText), .blob(octets)])
            }
        }
    }
}
