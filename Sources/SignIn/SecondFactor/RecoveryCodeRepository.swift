// Recovery codes: each takes the place of a second factor once, for users who lost theirs.

import Accounts
import Database
import MailCrypto
import Support

/// Makes recovery codes, and takes them.
package struct RecoveryCodeRepository: Sendable {
    /// Codes that are made at once.
    package static let count = 10
    /// Characters of base32: 80 random bits, so that guessing needs no limit.
    private static let length = 16

    let page: PortalRepository

    private var database: any Database { page.database }

    /// How many codes a user has left.
    package func left(user id: String) throws(StoreFailure) -> Int {
        try database.value(
            """
            SELECT COUNT(*) AS count FROM recovery_codes r JOIN users u ON u.id = r.user_id
            WHERE u.handle = \(id)
            """) ?? 0
    }

    /// New codes in place of all earlier ones, which are not shown again.
    /// - Throws: `unmet` if the user has no second factor.
    package func renew(user id: String, _ change: Change) throws(StoreFailure) -> [String] {
        var codes: [String] = []
        for _ in 0..<Self.count {
            codes.append(Base32.characters(fromRandom: try SecureRandom.octets(Self.length)))
        }
        let made = codes
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let factor = try connection.row(
                """
                SELECT 1 FROM users u WHERE u.id = \(user)
                    AND (EXISTS (SELECT 1 FROM authenticators a WHERE a.user_id = u.id)
                        OR EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = u.id))
                """)
            guard factor != nil else {
                throw .refused(.unmet, "add a passkey or an authenticator app first")
            }
            try connection.run("DELETE FROM recovery_codes WHERE user_id = \(user)")
            for code in made {
                try connection.run(
                    """
                    INSERT INTO recovery_codes (user_id, code_hash, created_at)
                    VALUES (\(user), \(hash(code, of: id)), \(change.now))
                    """)
            }
            try connection.audit(change, "recovery-codes.make", "user:\(id)")
        }
        return codes.map(Self.grouped)
    }

    /// Takes a code as the second factor of a session; it does not count again, on any host.
    /// - Parameter code: as typed.
    package func use(session: PageSession, code: String, now: Int64) throws(StoreFailure) -> Bool {
        guard let code = Self.characters(code) else { return false }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(session.userID)
            let used = try connection.run(
                """
                DELETE FROM recovery_codes
                WHERE user_id = \(user) AND code_hash = \(hash(code, of: session.userID))
                """)
            guard used == 1 else { return false }
            try connection.run(
                "UPDATE page_sessions SET second_at = \(now), is_recovered = 1 WHERE id = \(session.number)"
            )
            let subject = "user:\(session.userID)"
            try connection.audit(Change(actor: subject, now: now), "recovery-codes.use", subject)
            return true
        }
    }

    private func hash(_ code: String, of user: String) -> [UInt8] {
        page.secrets.hash(.recoveryCode, code, context: user)
    }

    /// The characters of a typed code in lower case, without spaces and hyphens; nil for what
    /// cannot be a code.
    private static func characters(_ text: String) -> String? {
        guard text.utf8.count <= 256 else { return nil }
        let octets = text.utf8.filter { $0 != 0x20 && $0 != 0x2D }.map(\.asciiLowercased)
        guard octets.count == length, Base32.isEncoded(octets) else { return nil }
        return String(decoding: octets, as: UTF8.self)
    }

    /// - Parameter code: ASCII.
    private static func grouped(_ code: String) -> String {
        let octets = Array(code.utf8)
        return stride(from: 0, to: octets.count, by: 4)
            .map { String(decoding: octets[$0..<min($0 + 4, octets.count)], as: UTF8.self) }
            .joined(separator: "-")
    }
}

extension DatabaseConnection {
    /// Ends what belongs to a second factor, once a user has none.
    /// - Parameter user: the store's number.
    func endTwoFactors(user: Int64) throws(StoreFailure) {
        try run("UPDATE users SET two_factor = 0 WHERE id = \(user)")
        try run("DELETE FROM recovery_codes WHERE user_id = \(user)")
        try run("DELETE FROM recovery_waits WHERE user_id = \(user)")
    }
}
