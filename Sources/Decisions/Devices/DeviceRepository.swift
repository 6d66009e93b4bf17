// Devices: their attestations and assertions, and the accounts used with them.

import Accounts
import Database
import MailCrypto
import Support
import WebAuthn

/// Verifies attestations and assertions, and stores the devices.
package struct DeviceRepository: Sendable {
    let database: any Database
    let secrets: SecretHash
    let sealer: Sealer
    let marks: DecisionMarks

    // MARK: Challenges

    /// Octets of randomness and of the expiry time, followed by the code that authenticates both.
    private static let (randomLength, timeLength) = (16, 8)

    /// A challenge for a device of a team's app, and its expiry. Nothing is
    /// stored until it is used.
    package func challenge(
        team: Int64, clientID: String, now: Int64
    ) throws(StoreFailure) -> (text: String, expiresAt: Int64) {
        let app = try database.read { connection throws(StoreFailure) in
            try connection.attestingApp(team: team, clientID: clientID)
        }
        let expiresAt = now + DeviceLimits.challenge
        let time = (0..<Self.timeLength).map {
            UInt8(truncatingIfNeeded: expiresAt >> (56 - 8 * $0))
        }
        let head = try SecureRandom.octets(Self.randomLength) + time
        return (Base64URL.encode(head + code(head, app: app)), expiresAt)
    }

    private func code(_ head: [UInt8], app: Int64) -> [UInt8] {
        secrets.hash(.attestationChallenge, Hex.encode(head), context: "\(app)")
    }

    /// The expiry of a challenge; refuses one of another app and one that expired.
    private func expiry(_ text: String, app: Int64, now: Int64) throws(StoreFailure) -> Int64 {
        let length = Self.randomLength + Self.timeLength
        if let octets = Base64URL.decode(text.utf8), octets.count > length {
            let head = Array(octets[..<length])
            let expiry = head.suffix(Self.timeLength).reduce(Int64(0)) { $0 << 8 | Int64($1) }
            if constantTimeEqual(Array(octets[length...]), code(head, app: app)), expiry > now {
                return expiry
            }
        }
        throw .refused(
            .invalid, "the challenge belongs to another app, or is too old: request a new one")
    }

    /// Records that a challenge was used; refuses a second use.
    private func use(
        _ connection: any DatabaseConnection, _ challenge: String, expiry: Int64
    ) throws(StoreFailure) {
        let isFirst =
            try connection.run(
                """
                INSERT INTO used_challenges (challenge_hash, expires_at) VALUES (\(SHA256.hash(Array(challenge.utf8))), \(expiry))
                ON CONFLICT (challenge_hash) DO NOTHING
                """) == 1
        guard isFirst else {
            throw .refused(.unmet, "the challenge was used before: request a new one")
        }
    }

    // MARK: Attestations and assertions

    /// Verifies an attestation over the text of the challenge, and stores the device. For a
    /// known device nothing changes.
    /// - Throws: `invalid` with the check that failed; `unmet` for a used challenge, or if no app
    ///   id is registered.
    package func attest(
        team: Int64, clientID: String, challenge: String, keyID: [UInt8], attestation: [UInt8],
        now: Int64
    ) throws(StoreFailure) -> AttestedDevice {
        let (app, accepted) = try database.read { connection throws(StoreFailure) in
            let app = try connection.attestingApp(team: team, clientID: clientID)
            return (app, try connection.attestedApps(app: app))
        }
        guard !accepted.isEmpty else {
            throw .refused(
                .unmet,
                "no app id is registered for the app: the operator adds one with postern app attestation add"
            )
        }
        let expiry = try expiry(challenge, app: app, now: now)
        let (key, found) = try verified(
            attestation, accepted, keyID: keyID, challenge: challenge, now: now)
        let mark = marks.device(app: app, keyID: keyID)
        return try database.write(.durable) { connection throws(StoreFailure) in
            try use(connection, challenge, expiry: expiry)
            if let known = try connection.device(app: app, mark: mark) { return known.device }
            let sealed = try sealer.seal(key.point, .deviceKey(mark: mark), connection)
            try connection.run(
                """
                INSERT INTO devices (app_id, mark, name, environment, public_key, public_sealed, counter, assertions, attested_at,
                    seen_at)
                VALUES (\(app), \(mark), \(found.appID), \(found.environment.rawValue), \(sealed.key), \(sealed.octets), 0, 0,
                    \(now), \(now))
                ON CONFLICT (mark) DO UPDATE SET name = excluded.name, environment = excluded.environment,
                    attested_at = excluded.attested_at, seen_at = excluded.seen_at
                """)
            return AttestedDevice(
                id: AttestedDevice.id(mark: mark), appID: found.appID,
                environment: found.environment, assertions: 0,
                attestedAt: now)
        }
    }

    /// The key and the first app id for which the attestation is valid; throws if it is valid for
    /// none.
    private func verified(
        _ attestation: [UInt8], _ accepted: [AttestedApp], keyID: [UInt8], challenge: String,
        now: Int64
    ) throws(StoreFailure) -> (AttestedKey, AttestedApp) {
        var refusal: AppAttestError?
        for app in accepted {
            let expectation = AppAttestExpectation(
                appID: app.appID, environment: app.environment, clientData: Array(challenge.utf8))
            guard let root = try? Certificate(der: app.root) else {
                throw .permanent(.unexpectedData, "a root of App Attest is not a certificate")
            }
            do throws(AppAttestError) {
                let key = try AppAttestation.verify(
                    attestation, expectation, keyID: keyID, roots: [root], now: now)
                return (key, app)
            } catch {
                // A failed check that does not depend on the app id is the better report.
                if refusal == nil || [.appID, .environment].contains(refusal?.check) {
                    refusal = error
                }
            }
        }
        throw .refused(.invalid, "the attestation is refused: \(refusal?.description ?? "")")
    }

    /// Verifies an assertion over client data that contain a challenge, and stores its counter.
    /// - Parameter clientData: a JSON object with a member `challenge`; the app chooses the rest.
    /// - Throws: `invalid` with the check that failed; `notFound` for a key that was not attested;
    ///   `unmet` for a used challenge, and for a counter that did not increase.
    package func assert(
        team: Int64, clientID: String, keyID: [UInt8], assertion: [UInt8], clientData: [UInt8],
        now: Int64
    ) throws(StoreFailure) -> AttestedDevice {
        guard let members = try? StrictJSON.parseObject(clientData, limit: 65_536),
            let challenge = members["challenge"]?.string
        else {
            throw .refused(.invalid, "the client data are not a JSON object with the challenge")
        }
        let (app, known) = try database.read { connection throws(StoreFailure) in
            let app = try connection.attestingApp(team: team, clientID: clientID)
            return (
                app, try connection.device(app: app, mark: marks.device(app: app, keyID: keyID))
            )
        }
        let expiry = try expiry(challenge, app: app, now: now)
        guard let known else {
            throw .refused(.notFound, "this key was not attested, or its device was deleted")
        }
        let point = try sealer.open(known.key, .deviceKey(mark: known.mark))
        let expectation = AppAttestExpectation(
            appID: known.device.appID, environment: known.device.environment, clientData: clientData
        )
        let counter: UInt32
        do throws(AppAttestError) {
            counter = try AppAssertion.verify(
                assertion, expectation, point: point, counter: known.counter)
        } catch {
            throw .refused(
                error.check == .counter ? .unmet : .invalid, "the assertion is refused: \(error)")
        }
        return try database.write(.durable) { connection throws(StoreFailure) in
            try use(connection, challenge, expiry: expiry)
            // Of two concurrent assertions, the later one must have the higher counter.
            let changed = try connection.run(
                """
                UPDATE devices SET counter = \(Int64(counter)), assertions = assertions + 1, seen_at = \(now)
                WHERE id = \(known.number) AND counter < \(Int64(counter))
                """)
            guard changed == 1,
                let device = try connection.device(app: app, mark: known.mark)?.device
            else {
                throw .refused(.unmet, "the assertion is refused: counter: it did not rise")
            }
            return device
        }
    }

    // MARK: Questions

    /// The facts about the device that the request names. From now on the account counts as one of
    /// the device.
    /// - Parameters:
    ///   - app: the store's number.
    ///   - account: any name that the app's team uses for the account, always the same one.
    package func facts(
        device id: String, app: Int64, account: String, now: Int64
    ) throws(StoreFailure) -> DeviceFacts {
        guard let mark = AttestedDevice.mark(id: id) else { return .unknown }
        let account = marks.deviceAccount(app: app, account: account)
        func read(
            _ connection: any DatabaseConnection
        ) throws(StoreFailure) -> (known: KnownDevice, accounts: Int64, seenAt: Int64?)? {
            guard let known = try connection.device(app: app, mark: mark) else { return nil }
            let others: Int64? = try connection.value(
                """
                SELECT COUNT(*) FROM device_accounts WHERE device_id = \(known.number) AND mark <> \(account)
                    AND seen_at > \(now - DeviceLimits.account)
                """)
            let seenAt: Int64? = try connection.value(
                "SELECT seen_at FROM device_accounts WHERE device_id = \(known.number) AND mark = \(account)"
            )
            return (known, (others ?? 0) + 1, seenAt)
        }
        guard
            let found = try database.read({ connection throws(StoreFailure) in try read(connection)
            })
        else { return .unknown }
        if found.seenAt.map({ now - $0 >= DeviceLimits.resolution })
            ?? (found.accounts <= DeviceLimits.accounts)
        {
            try database.write(.durable) { connection throws(StoreFailure) in
                try connection.run(
                    """
                    INSERT INTO device_accounts (device_id, mark, seen_at) VALUES (\(found.known.number), \(account), \(now))
                    ON CONFLICT (device_id, mark) DO UPDATE SET seen_at = excluded.seen_at
                    """)
                try connection.run(
                    "UPDATE devices SET seen_at = \(now) WHERE id = \(found.known.number)")
            }
        }
        return DeviceFacts(
            isAttested: true, assertions: found.known.device.assertions, accounts: found.accounts)
    }

    /// Deletes accounts and devices that were not seen for long, at most 1,000 of each; returns
    /// the larger of both numbers.
    package func deleteExpired(now: Int64) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try [("device_accounts", DeviceLimits.account), ("devices", DeviceLimits.device)].map {
                table, kept throws(StoreFailure) in
                try connection.run(
                    """
                    DELETE FROM \(raw: table) WHERE id IN (SELECT id FROM \(raw: table) WHERE seen_at <= \(now - kept) LIMIT 1000)
                    """)
            }.max() ?? 0
        }
    }
}

/// A device as it is stored.
private struct KnownDevice {
    let number: Int64
    let mark: [UInt8]
    let counter: UInt32
    let key: SealedValue
    let device: AttestedDevice
}

extension DatabaseConnection {
    /// A device of an app whose app id is still accepted, with the root that the
    /// device was attested with.
    fileprivate func device(app: Int64, mark: [UInt8]) throws(StoreFailure) -> KnownDevice? {
        let row = try row(
            """
            SELECT d.id, d.name, d.environment, d.public_key, d.public_sealed, d.counter, d.assertions, d.attested_at
            FROM devices d JOIN attested_apps a ON a.app_id = d.app_id AND a.name = d.name AND a.environment = d.environment
                AND d.attested_at >= a.created_at
            WHERE d.mark = \(mark) AND \(SQL.filter("d.app_id")) = \(app)
            """)
        guard let row else { return nil }
        let stored: Int64 = try row["counter"]
        guard let key = try SealedValue(row: row, "public"), let counter = UInt32(exactly: stored)
        else {
            throw .permanent(.unexpectedData, "a device has no key, or no counter")
        }
        return try KnownDevice(
            number: row["id"], mark: mark, counter: counter, key: key,
            device: AttestedDevice(
                id: AttestedDevice.id(mark: mark), appID: row["name"],
                environment: AppAttestExpectation.Environment(stored: row["environment"]),
                assertions: row["assertions"],
                attestedAt: row["attested_at"]))
    }
}
