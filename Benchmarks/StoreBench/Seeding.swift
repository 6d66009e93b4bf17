// Fills a store with as many addresses as wanted, set-wise, in the SQL of each engine.

import Database
import Accounts
import Foundation
import InternetMessage
import MailCrypto

/// What differs between the engines while a store is filled.
enum Engine: String, CaseIterable {
    case sqlite, postgres

    /// `FROM` clause that counts `i` from `first` to `last`.
    func numbers(_ first: Int, _ last: Int) -> String {
        switch self {
        case .sqlite:
            "(WITH RECURSIVE c (i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM c WHERE i < \(last)) SELECT i FROM c) AS n"
        case .postgres: "generate_series(\(first)::bigint, \(last)::bigint) AS n (i)"
        }
    }

    /// `i` as 16 digits.
    var digits: String { self == .sqlite ? "printf('%016d', n.i)" : "lpad(n.i::text, 16, '0')" }
    var octets: String { self == .sqlite ? "CAST(printf('%016d', n.i) AS BLOB)" : "convert_to(lpad(n.i::text, 16, '0'), 'UTF8')" }
    /// As many octets as a sealed inbox has.
    var sealed: String { self == .sqlite ? "randomblob(94)" : "decode(repeat(md5(n.i::text), 5) || repeat('00', 14), 'hex')" }
    /// What makes filling fast: for this transaction, and only here.
    var prologue: String { self == .sqlite ? "PRAGMA cache_size = -500000;" : "SET LOCAL session_replication_role = replica;" }
}

enum Seeding {
    /// Rows of one transaction, so that the log of SQLite does not grow to the size of the database.
    private static let part = 250_000
    static let domain = "relay.example"
    static let now: Int64 = 1_790_000_000

    static func localPart(_ number: Int) -> String { String(format: "%016d", number) }

    /// Adds users, inboxes, accounts, grants and addresses 1 to `count`.
    static func fill(_ store: Store, _ engine: Engine, count: Int) throws {
        let change = Change(actor: "bench", now: now)
        let team = try store.teams.add(id: "bench", name: "Bench", change)
        try store.sources.add(
            team: "bench", OutboundSource(kind: .domain, value: "app.example", envelopeDomain: nil, createdAt: now), change)
        try store.database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                "INSERT INTO app_groups (id, team_id, primary_client_id, created_at) VALUES (77, ?1, 'com.bench', ?2)",
                [.integer(team.number), .integer(now)])
        }
        var first = 1
        while first <= count {
            let last = min(count, first + part - 1)
            let numbers = engine.numbers(first, last)
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.runScript(
                    """
                    \(engine.prologue)
                    INSERT INTO users (id, handle, created_at) SELECT n.i, 'u' || n.i, \(now) FROM \(numbers);
                    INSERT INTO inboxes (id, user_id, address_key, address_sealed, index_key, address_index, canonical_index, is_default,
                        created_at, verified_at)
                        SELECT n.i, n.i, 'a', \(engine.sealed), 'a', \(engine.octets), \(engine.octets), 1, \(now), \(now) FROM \(numbers);
                    INSERT INTO accounts (id, team_id, user_id, sub, created_at, has_live_grant, target_inbox)
                        SELECT n.i, \(team.number), n.i, \(engine.digits), \(now), 1, n.i FROM \(numbers);
                    INSERT INTO grants (id, account_id, group_id, state, first_authorized_at, last_authorized_at)
                        SELECT n.i, n.i, 77, 'authorized', \(now), \(now) FROM \(numbers);
                    INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
                        SELECT n.i, 1, \(engine.digits), '\(domain)', \(now) FROM \(numbers);
                    """)
            }
            first = last + 1
        }
        if engine == .postgres {
            try store.database.write(.relaxed) { connection throws(StoreFailure) in try connection.runScript("ANALYZE") }
        }
    }

    /// Gives the users in question an inbox that opens, as the product seals it: nonce, then AES-256-GCM of the padded address,
    /// bound to the user.
    static func seal(_ store: Store, keys: KeyRing, users: [Int]) throws {
        let key = keys.seal.active
        let sealed = try users.map { user in
            let local = Array("user\(user)".utf8)
            let address = [UInt8(local.count >> 8), UInt8(local.count & 0xFF)] + local + Array("home.example".utf8)
            var text = [UInt8(address.count >> 8), UInt8(address.count & 0xFF)] + address
            text += [UInt8](repeating: 0, count: (64 - text.count % 64) % 64)
            let nonce = try SecureRandom.bytes(count: 12)
            let octets = try AESGCM.seal(
                text, key: key.secret, nonce: nonce, associatedData: Array("postern inbox 1 \(user)".utf8))
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
