// Addresses that do not fit into an address token, and so are stored under a token.

import Database
import InternetMessage
import RelayCore

/// Writes and finds stored tokens.
package struct StoredTokenRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    /// The address under a token. Nil if the token does not exist, has another purpose, or expired.
    package func find(
        _ token: String, purpose: StoredTokenPurpose, now: Int64
    ) throws(StoreFailure) -> StoredToken? {
        let token = token.lowercased()
        let row = try database.row(
            """
            SELECT account_id, address_key, address_sealed, expires_at FROM stored_tokens
            WHERE token = \(token) AND purpose = \(purpose) AND expires_at > \(now)
            """)
        return try row.map { row throws(StoreFailure) in try stored(row, token) }
    }

    /// Days for which the address of a reverse address is kept after the last mail that used it.
    /// Users answer old mail, and write to an address in their address book once a year. After
    /// that, mail to it is refused as if it had never existed.
    package static let daysKept: Int64 = 365
    /// Days between two writes that extend the expiry of such an address, so that
    /// mail rarely causes a write.
    private static let daysBetweenWrites: Int64 = 30

    /// Seconds for which a new sender's address is kept after its first return path ends: enough
    /// for its mail of that day and the next. Most such senders use a new address for each message,
    /// and never return.
    package static let newSenderKept: Int64 = 86_400
    /// Seconds for which a known sender's address is kept after a return path ends, if the existing
    /// row expires earlier. For a sender that writes daily, the row is then written once in eight
    /// days.
    package static let knownSenderKept: Int64 = 7 * 86_400

    /// Writes addresses under tokens, all of them in one transaction. A row that expires late
    /// enough is not written again. A known token with the same account and address is kept longer.
    /// A different address or account under the same token throws `constraint`, because the token
    /// is a keyed hash of both.
    /// - Parameters:
    ///   - tokens: each token once, in lower case.
    ///   - day: days since 1970 UTC.
    ///   - newPerDay: new reverse addresses that the account may have on this day.
    ///   - commits: writes this together with concurrent writes; nil for a separate transaction.
    /// - Returns: false if there would be more than `newPerDay`: then nothing is written.
    package func store(
        _ tokens: [StoredAddress], account: AccountNumber, day: Int64, newPerDay: Int, now: Int64,
        in commits: GroupCommit? = nil
    ) throws(StoreFailure) -> Bool {
        let account = account.stored
        // Most tokens are already written, and a read needs no writer lock.
        let settled = try settled(tokens, account: account, now: now)
        let open = tokens.filter { !settled.contains($0.token) }
        guard !open.isEmpty else { return true }
        let change: @Sendable (any DatabaseConnection) throws(StoreFailure) -> Bool = {
            connection in
            try write(open, account: account, day: day, newPerDay: newPerDay, now: now, connection)
        }
        return if let commits { try commits.runBlocking(change) } else {
            try database.write(.durable, change)
        }
    }

    /// Extends how long the address of a reverse address is kept, if that is due.
    package func keep(_ stored: StoredToken, _ token: String, now: Int64) throws(StoreFailure) {
        guard isDue(stored.expiresAt, now) else { return }
        _ = try database.write(.relaxed) { connection throws(StoreFailure) in
            try keep(token.lowercased(), now, connection)
        }
    }

    /// The tokens among these that need no write.
    private func settled(
        _ tokens: [StoredAddress], account: Int64, now: Int64
    ) throws(StoreFailure) -> Set<String> {
        guard !tokens.isEmpty else { return [] }
        return try database.read { connection throws(StoreFailure) in
            var settled: Set<String> = []
            for token in tokens {
                guard let known = try row(token, connection),
                    !isDue(known.expiresAt, now, for: token)
                else { continue }
                try compare(known, account, token.address)
                settled.insert(token.token)
            }
            return settled
        }
    }

    private func write(
        _ tokens: [StoredAddress], account: Int64, day: Int64, newPerDay: Int, now: Int64,
        _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Bool {
        var new: [StoredAddress] = []
        for token in tokens where token.purpose == .reverse {
            guard let known = try row(token, connection) else {
                new.append(token)
                continue
            }
            try compare(known, account, token.address)
            _ = try keep(token.token, now, connection)
        }
        if !new.isEmpty {
            let used: Int? = try connection.value(
                """
                SELECT count FROM daily_counters
                WHERE account_id = \(account) AND day = \(day) AND kind = \(CounterKind.addressesStored)
                """)
            guard (used ?? 0) + new.count <= newPerDay else { return false }
            for token in new { try insert(token, account: account, now: now, connection) }
            try connection.count(
                DailyCounter(
                    accountNumber: account, day: day, kind: .addressesStored, count: new.count))
        }
        for token in tokens where token.purpose == .returnPath {
            try insert(token, account: account, now: now, connection)
        }
        return true
    }

    /// Inserts a token. If two hosts, or two messages of one transaction, insert the same token,
    /// the second finds the row of the first.
    private func insert(
        _ token: StoredAddress, account: Int64, now: Int64, _ connection: any DatabaseConnection
    ) throws(StoreFailure) {
        let expiresAt = token.expiresAt.map { $0 + Self.newSenderKept } ?? expiry(now)
        let sealed = try sealer.seal(token.address, .storedToken(token.token), connection)
        let inserted = try connection.row(
            """
            INSERT INTO stored_tokens (token, purpose, account_id, address_key, address_sealed, created_at, expires_at)
            VALUES (\(token.token), \(token.purpose), \(account), \(sealed.key), \(sealed.octets), \(now),
                \(expiresAt)) ON CONFLICT (token) DO NOTHING RETURNING token
            """)
        guard inserted == nil else { return }
        guard let known = try row(token, connection) else {
            throw .permanent(.constraint, "a stored token is in use for another purpose")
        }
        try compare(known, account, token.address)
        guard isDue(known.expiresAt, now, for: token) else { return }
        let keptTo = token.expiresAt.map { $0 + Self.knownSenderKept } ?? expiry(now)
        try connection.run(
            "UPDATE stored_tokens SET expires_at = \(keptTo) WHERE token = \(token.token)")
    }

    /// The row of a token, expired or not.
    private func row(
        _ token: StoredAddress, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> StoredToken? {
        let row = try connection.row(
            """
            SELECT account_id, address_key, address_sealed, expires_at FROM stored_tokens
            WHERE token = \(token.token) AND purpose = \(token.purpose)
            """)
        return try row.map { row throws(StoreFailure) in try stored(row, token.token) }
    }

    private func stored(_ row: SQLRow, _ token: String) throws(StoreFailure) -> StoredToken {
        guard let sealed = try SealedValue(row: row, "address") else {
            throw .permanent(.unexpectedData, "a stored token has no address")
        }
        return try StoredToken(
            accountNumber: row["account_id"],
            address: sealer.openAddress(sealed, .storedToken(token)),
            expiresAt: row["expires_at"])
    }

    private func compare(
        _ known: StoredToken, _ account: Int64, _ address: AddrSpec
    ) throws(StoreFailure) {
        // Compared in the way in which tokens are made: the domain ignores letter case, also beyond
        // ASCII.
        guard known.accountNumber == account, known.address.localPart == address.localPart,
            known.address.domain.lowercased() == address.domain.lowercased()
        else {
            throw .permanent(.constraint, "a stored token stands for another address")
        }
    }

    private func keep(
        _ token: String, _ now: Int64, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Int {
        try connection.run(
            """
            UPDATE stored_tokens SET expires_at = \(expiry(now))
            WHERE token = \(token) AND purpose = \(StoredTokenPurpose.reverse) AND expires_at < \(expiry(now))
            """)
    }

    /// Whole days: the table does not reveal the time of day of a message.
    private func expiry(_ now: Int64) -> Int64 { (Day.number(now) + Self.daysKept + 1) * 86_400 }

    private func isDue(_ expiresAt: Int64, _ now: Int64) -> Bool {
        expiresAt < expiry(now) - Self.daysBetweenWrites * 86_400
    }

    /// Whether the stored row of a token expires before the token does.
    private func isDue(_ expiresAt: Int64, _ now: Int64, for token: StoredAddress) -> Bool {
        guard let needed = token.expiresAt else { return isDue(expiresAt, now) }
        return expiresAt < needed
    }

    /// Deletes expired tokens, at most `limit` at a time. Returns the number.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM stored_tokens WHERE token IN
                    (SELECT token FROM stored_tokens WHERE expires_at <= \(now) LIMIT \(limit))
                """)
        }
    }
}
