// Addresses that do not fit into an address token, kept under a token.

import InternetMessage

/// Writes and finds stored tokens.
package struct StoredTokenRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    /// The address under a token, or nil where there is none, it was made for another purpose, or it expired.
    package func find(_ token: String, purpose: StoredTokenPurpose, now: Int64) throws -> StoredToken? {
        let token = token.lowercased()
        let row = try database.rows(
            """
            SELECT account_id, address_key, address_sealed, expires_at FROM stored_tokens
            WHERE token = ?1 AND purpose = ?2 AND (expires_at IS NULL OR expires_at > ?3)
            """, [.text(token), .text(purpose.rawValue), .integer(now)]
        ).first
        guard let row else { return nil }
        return StoredToken(
            accountNumber: try row.integer(0),
            address: try sealer.openAddress(SealedValue(key: row.text(1), octets: row.blob(2)), .storedToken(token)),
            expiresAt: try row.optionalInteger(3))
    }

    /// Writes a token once. Again with the same account and address it only moves the expiry on; a different address or account
    /// under the same token throws `PermanentStoreError` (`constraint`), since the token is a MAC over both.
    /// - Parameter commits: where it is written together with what others write at the time; nil for a transaction of its own.
    package func insert(
        _ token: String, purpose: StoredTokenPurpose, account: Int64, address: AddrSpec, expiresAt: Int64?, now: Int64,
        in commits: GroupCommit? = nil
    ) throws {
        let token = token.lowercased()
        // A reverse address was usually written before, and reading takes no writer's lock. A return path is new for every message.
        if purpose == .reverse, let known = try find(token, purpose: purpose, now: now), known.lasts(until: expiresAt) {
            return try compare(known.accountNumber, known.address, account, address)
        }
        let change: @Sendable (any DatabaseConnection) throws -> Void = { connection in
            try insert(token, purpose: purpose, account: account, address: address, expiresAt: expiresAt, now: now, connection)
        }
        if let commits { try commits.runBlocking(change) } else { try database.write(.durable, change) }
    }

    private func insert(
        _ token: String, purpose: StoredTokenPurpose, account: Int64, address: AddrSpec, expiresAt: Int64?, now: Int64,
        _ connection: any DatabaseConnection
    ) throws {
        let sealed = try sealer.seal(address, .storedToken(token), connection)
        let inserted = try connection.row(
            """
            INSERT INTO stored_tokens (token, purpose, account_id, address_key, address_sealed, created_at, expires_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (token) DO NOTHING RETURNING token
            """,
            [
                .text(token), .text(purpose.rawValue), .integer(account), .text(sealed.key), .blob(sealed.octets),
                .integer(now), .optional(expiresAt),
            ])
        guard inserted == nil else { return }
        let row = try connection.row(
            "SELECT account_id, address_key, address_sealed FROM stored_tokens WHERE token = ?1 AND purpose = ?2",
            [.text(token), .text(purpose.rawValue)])
        guard let row else { throw PermanentStoreError(.constraint, "a stored token is in use for another purpose") }
        try compare(
            row.integer(0),
            sealer.openAddress(SealedValue(key: row.text(1), octets: row.blob(2)), .storedToken(token)), account, address)
        try connection.run(
            """
            UPDATE stored_tokens SET expires_at = ?2
            WHERE token = ?1 AND expires_at IS NOT NULL AND (CAST(?2 AS BIGINT) IS NULL OR expires_at < ?2)
            """, [.text(token), .optional(expiresAt)])
    }

    private func compare(_ account: Int64, _ address: AddrSpec, _ wantedAccount: Int64, _ wanted: AddrSpec) throws {
        guard account == wantedAccount, address == wanted else {
            throw PermanentStoreError(.constraint, "a stored token stands for another address")
        }
    }

    /// Deletes tokens that expired, at most `limit` at a time; how many.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                """
                DELETE FROM stored_tokens WHERE token IN
                    (SELECT token FROM stored_tokens WHERE expires_at <= ?1 LIMIT ?2)
                """, [.integer(now), .integer(Int64(limit))])
        }
    }
}
