// Passkeys of users: added and removed on the page, and used for sign-in there.

import Accounts
import Database
import MailCrypto
import Support
import WebAuthn

/// Passkeys, and the challenges that they sign.
package struct PasskeyRepository: Sendable {
    let page: PortalRepository
    let sealer: Sealer

    private var database: any Database { page.database }

    // MARK: Challenges

    /// Octets of the random part and of the expiry time, which precede the code
    /// that authenticates both.
    private static let (randomLength, timeLength) = (16, 8)

    /// A challenge for a browser, identified by its cookie. Nothing is stored until it is used.
    package func challenge(
        _ ceremony: Ceremony, browser: String, now: Int64
    ) throws(StoreFailure) -> [UInt8] {
        let head =
            try SecureRandom.octets(Self.randomLength) + Self.octets(now + PasskeyLimits.challenge)
        return head + code(head, ceremony, browser)
    }

    private static func octets(_ time: Int64) -> [UInt8] {
        (0..<timeLength).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * $0)) }
    }

    private func code(_ head: [UInt8], _ ceremony: Ceremony, _ browser: String) -> [UInt8] {
        page.secrets.hash(
            .passkeyChallenge, browser, context: "\(ceremony.rawValue) \(Hex.encode(head))")
    }

    /// The expiry time of a challenge made here; nil if it is invalid or expired.
    private func expiry(
        _ challenge: [UInt8], _ ceremony: Ceremony, browser: String, now: Int64
    ) -> Int64? {
        let length = Self.randomLength + Self.timeLength
        guard challenge.count > length else { return nil }
        let head = Array(challenge[..<length])
        let expiry = head.suffix(Self.timeLength).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        guard constantTimeEqual(Array(challenge[length...]), code(head, ceremony, browser)),
            expiry > now
        else { return nil }
        return expiry
    }

    /// Records that a challenge was used; returns whether this was the first time.
    private func use(
        _ connection: any DatabaseConnection, _ challenge: [UInt8], expiry: Int64
    ) throws(StoreFailure) -> Bool {
        try connection.run(
            """
            INSERT INTO used_challenges (challenge_hash, expires_at) VALUES (\(SHA256.hash(challenge)), \(expiry))
            ON CONFLICT (challenge_hash) DO NOTHING
            """) == 1
    }

    // MARK: Passkeys of a user

    /// The name by which authenticators know a user: it reveals nothing and never changes.
    package func userHandle(_ user: String) -> [UInt8] { page.secrets.hash(.userHandle, user) }

    /// All passkeys of a user, the oldest first.
    package func passkeys(user id: String) throws(StoreFailure) -> [Passkey] {
        try database.read { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            return try connection.rows(
                """
                SELECT id, credential_id, name_key, name_sealed, backed_up, rp_id, created_at, last_used_at FROM passkeys
                WHERE user_id = \(user) ORDER BY id
                """
            ).map { row throws(StoreFailure) in
                guard let name = try SealedValue(row: row, "name") else {
                    throw .permanent(.unexpectedData, "a passkey has no name")
                }
                return try Passkey(
                    number: row["id"], credentialID: row["credential_id"],
                    name: String(
                        decoding: try sealer.open(name, .passkeyName(user: user)), as: UTF8.self),
                    isBackedUp: row["backed_up"], host: row["rp_id"], createdAt: row["created_at"],
                    lastUsedAt: row["last_used_at"])
            }
        }
    }

    /// Adds the passkey that a browser made.
    /// - Parameter roots: certificates of trusted makers, which can attest a device; the passkey is
    ///   accepted without attestation too.
    /// - Throws: `invalid` for a registration that was not made here, `exists` for a
    ///   known passkey, `limit`.
    package func add(
        user id: String, _ party: RelyingParty, clientData: [UInt8], attestationObject: [UInt8],
        challenge: [UInt8],
        browser: String, name: String, roots: [Certificate] = [], _ change: Change
    ) throws(StoreFailure) {
        guard let expiry = expiry(challenge, .create, browser: browser, now: change.now) else {
            throw .refused(.invalid, "this page was open for too long: reload it and try again")
        }
        let made: RelyingParty.Registration
        do throws(WebAuthnError) {
            made = try Self.register(party, clientData, attestationObject, challenge, roots)
        } catch {
            throw .refused(.invalid, "the passkey cannot be verified: \(error)")
        }
        let name = Self.checkedName(name)
        try page.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            guard try use(connection, challenge, expiry: expiry) else {
                throw .refused(.invalid, "this passkey was added already")
            }
            let count: Int =
                try connection.value(
                    "SELECT COUNT(*) AS count FROM passkeys WHERE user_id = \(user)") ?? 0
            guard count < PasskeyLimits.perUser else {
                throw .refused(
                    .limit, "there are \(PasskeyLimits.perUser) passkeys: remove one first")
            }
            let sealed = try sealer.seal(Array(name.utf8), .passkeyName(user: user), connection)
            let number: Int64? = try connection.value(
                """
                INSERT INTO passkeys (user_id, credential_id, public_key, sign_count, backup_eligible, backed_up, is_attested,
                    rp_id, name_key, name_sealed, created_at)
                VALUES (\(user), \(made.credential.id), \(made.credential.publicKeyOctets), \(Int64(made.authenticatorData.signCount)),
                    \(made.authenticatorData.flags.contains(.backupEligible)),
                    \(made.authenticatorData.flags.contains(.backedUp)), \(made.trust == .rooted),
                    \(party.id), \(sealed.key), \(sealed.octets), \(change.now))
                ON CONFLICT (credential_id) DO NOTHING RETURNING id
                """)
            guard let number else { throw .refused(.exists, "this passkey is known already") }
            // Making it took the device and its PIN, finger or face: a
            // second factor of this session.
            try connection.run(
                """
                UPDATE page_sessions SET second_at = \(change.now)
                WHERE token_hash = \(page.secrets.hash(.session, browser)) AND user_id = \(user)
                """)
            try connection.audit(change, "passkey.add", "user:\(id)", "passkey \(number)")
            try Self.tell(
                tracker, user, "create",
                isSynced: made.authenticatorData.flags.contains(.backupEligible))
            if count == 0 {
                try tracker.note(
                    .assuranceLevelChange, of: .user(user), detail: "mail phr increase")
            }
        }
    }

    /// An attestation that leads to no known root counts neither for nor against the passkey.
    private static func register(
        _ party: RelyingParty, _ clientData: [UInt8], _ attestationObject: [UInt8],
        _ challenge: [UInt8], _ roots: [Certificate]
    ) throws(WebAuthnError) -> RelyingParty.Registration {
        do throws(WebAuthnError) {
            return try party.register(
                clientData: clientData, attestationObject: attestationObject, challenge: challenge,
                roots: roots)
        } catch {
            guard error.step == .trust else { throw error }
            return try party.register(
                clientData: clientData, attestationObject: attestationObject, challenge: challenge)
        }
    }

    /// One line of limited length; a default name if nothing remains.
    private static func checkedName(_ text: String) -> String {
        let lines = PersonText.lines(text).map { PersonText.cleaned($0).text }
        let name = PersonText.withSingleSpaces(lines.joined(separator: " "))
        return name.isEmpty ? "Passkey" : name.withoutControls(limit: PasskeyLimits.nameLength)
    }

    /// Removes a passkey; throws `notFound` for another user's.
    package func remove(user id: String, number: Int64, _ change: Change) throws(StoreFailure) {
        try page.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let user = try connection.userNumber(id)
            let isSynced: Bool? = try connection.value(
                "DELETE FROM passkeys WHERE id = \(number) AND user_id = \(user) RETURNING backup_eligible"
            )
            guard let isSynced else { throw .refused(.notFound, "there is no such passkey") }
            try connection.audit(change, "passkey.remove", "user:\(id)", "passkey \(number)")
            try Self.tell(tracker, user, "delete", isSynced: isSynced)
            if try connection.row("SELECT id FROM passkeys WHERE user_id = \(user) LIMIT 1") == nil
            {
                let app = try connection.row(
                    "SELECT user_id FROM authenticators WHERE user_id = \(user)")
                if app == nil { try connection.endTwoFactors(user: user) }
                let level = app == nil ? "mail" : "mfa"
                try tracker.note(
                    .assuranceLevelChange, of: .user(user), detail: "phr \(level) decrease")
            }
        }
    }

    /// Reports a change of a passkey to streams. A synced passkey counts as one of the platform. A
    /// device-bound one counts as roaming, because no authenticator says for certain which it is.
    private static func tell(
        _ tracker: AccountChangeTracker, _ user: Int64, _ change: String, isSynced: Bool
    ) throws(StoreFailure) {
        try tracker.note(
            .credentialChange, of: .user(user),
            detail: "\(change) \(isSynced ? "fido2-platform" : "fido2-roaming")")
    }

    // MARK: Signing in

    private struct Known {
        let number: Int64
        let user: Int64
        let userID: String
        let credential: RelyingParty.KnownCredential
    }

    private func known(_ credentialID: [UInt8]) throws(StoreFailure) -> Known? {
        let row = try database.row(
            """
            SELECT p.id, p.user_id, u.handle, p.public_key, p.sign_count, p.backup_eligible FROM passkeys p JOIN users u ON u.id = p.user_id
            WHERE p.credential_id = \(credentialID)
            """)
        guard let row else { return nil }
        let (octets, count): ([UInt8], Int64) = try (row["public_key"], row["sign_count"])
        guard let key = try? COSEKey(octets: octets), let count = UInt32(exactly: count) else {
            throw .permanent(.unexpectedData, "a passkey's public key cannot be read")
        }
        return try Known(
            number: row["id"], user: row["user_id"], userID: row["handle"],
            credential: RelyingParty.KnownCredential(
                publicKey: key, signCount: count, isBackupEligible: row["backup_eligible"]))
    }

    /// Signs in with the data that a browser sends.
    /// - Parameters:
    ///   - userHandle: as the authenticator gave it; nil if it gave none.
    ///   - browser: the cookie of the browser that the challenge was for.
    ///   - replacing: the token of a session that the browser has; it ends.
    package func signIn(
        _ party: RelyingParty, credentialID: [UInt8], clientData: [UInt8],
        authenticatorData: [UInt8], signature: [UInt8],
        userHandle: [UInt8]?, challenge: [UInt8], browser: String, replacing old: String?,
        now: Int64
    ) throws(StoreFailure) -> PasskeySignIn {
        guard let expiry = expiry(challenge, .get, browser: browser, now: now) else {
            return .refused(
                userID: nil, reason: "the challenge belongs to another browser, or is too old")
        }
        guard let known = try known(credentialID) else { return .unknown }
        guard userHandle == nil || userHandle == self.userHandle(known.userID) else {
            return .refused(userID: known.userID, reason: "the passkey is for another user")
        }
        let data: AuthenticatorData
        do throws(WebAuthnError) {
            data = try party.authenticate(
                clientData: clientData, authenticatorData: authenticatorData, signature: signature,
                challenge: challenge,
                known: known.credential)
        } catch {
            return .refused(userID: known.userID, reason: error.description)
        }
        let session = try SecretHash.newToken()
        // The write does not wait for the disk: after a power failure, the user signs in again.
        let outcome = try database.write(.relaxed) {
            connection throws(StoreFailure) -> PasskeySignIn in
            guard try use(connection, challenge, expiry: expiry) else {
                return .refused(userID: known.userID, reason: "the challenge was used already")
            }
            // Of two simultaneous sign-ins with the same count, one came from a copied
            // authenticator.
            let changed = try connection.run(
                """
                UPDATE passkeys SET sign_count = \(Int64(data.signCount)), backed_up = \(data.flags.contains(.backedUp)),
                    last_used_at = \(now)
                WHERE id = \(known.number) AND sign_count = \(Int64(known.credential.signCount))
                """)
            guard changed == 1 else {
                return .refused(
                    userID: known.userID, reason: "it was removed or used at the same time")
            }
            let inbox: Int64? = try connection.value(
                "SELECT id FROM inboxes WHERE user_id = \(known.user) AND is_default = 1 AND verified_at IS NOT NULL"
            )
            guard let inbox else {
                return .refused(userID: known.userID, reason: "the user has no confirmed inbox")
            }
            try page.open(
                connection, session, of: (known.user, inbox), by: .passkey, replacing: old, now: now
            )
            return .session(session)
        }
        if case .session = outcome { page.hasSignedIn(known.user) }
        return outcome
    }
}
