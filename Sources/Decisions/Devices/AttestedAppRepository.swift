// For each app, the app ids that devices may attest, and the root certificates.

import Accounts
import Database
import MailCrypto
import WebAuthn

/// Registers app ids of App Attest.
package struct AttestedAppRepository: Sendable {
    let database: any Database

    /// Accepts attestations of an app id, with this root, from now on. Devices that attested it
    /// with another root, or before it was removed, must attest again.
    /// - Parameter root: DER.
    /// - Throws: `invalid` for text that is not `TEAMID.bundle.id` and for data that is not a
    ///   certificate, `notFound`, `limit`.
    package func add(
        team id: String, clientID: String, appID: String,
        environment: AppAttestExpectation.Environment, root: [UInt8],
        _ change: Change
    ) throws(StoreFailure) {
        let parts = appID.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let isPlain = appID.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        guard parts.count == 2, parts[0].utf8.count == 10, !parts[1].isEmpty,
            appID.utf8.count <= 255, isPlain
        else {
            throw .refused(
                .invalid,
                "an app id is TEAMID.bundle.id, with the ten characters of Apple's team first")
        }
        guard (try? Certificate(der: root)) != nil else {
            throw .refused(.invalid, "the root is not a certificate")
        }
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.attestingApp(
                team: connection.team(id).number, clientID: clientID)
            let count: Int? = try connection.value(
                "SELECT COUNT(*) FROM attested_apps WHERE app_id = \(app)")
            guard count ?? 0 < DeviceLimits.appIDs else {
                throw .refused(
                    .limit,
                    "app \(clientID) has \(DeviceLimits.appIDs) app ids, which is the maximum")
            }
            try connection.run(
                """
                INSERT INTO attested_apps (app_id, name, environment, root, created_at)
                VALUES (\(app), \(appID), \(environment.rawValue), \(root), \(change.now))
                ON CONFLICT (app_id, name, environment) DO UPDATE SET root = excluded.root,
                    created_at = CASE WHEN attested_apps.root = excluded.root THEN attested_apps.created_at
                        ELSE excluded.created_at END
                """)
            try connection.audit(
                change, "app.attestation.add", "team:\(id)",
                "\(clientID) \(appID) \(environment.rawValue)")
        }
    }

    /// Removes an app id: devices that attested it no longer count as attested.
    package func remove(
        team id: String, clientID: String, appID: String,
        environment: AppAttestExpectation.Environment, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let app = try connection.attestingApp(
                team: connection.team(id).number, clientID: clientID)
            let removed = try connection.run(
                """
                DELETE FROM attested_apps WHERE app_id = \(app) AND name = \(appID) AND environment = \(environment.rawValue)
                """)
            guard removed > 0 else {
                throw .refused(.notFound, "app \(clientID) has no such app id")
            }
            try connection.audit(
                change, "app.attestation.remove", "team:\(id)",
                "\(clientID) \(appID) \(environment.rawValue)")
        }
    }

    /// App ids of an app, in alphabetical order.
    package func appIDs(team id: String, clientID: String) throws(StoreFailure) -> [AttestedApp] {
        try database.read { connection throws(StoreFailure) in
            try connection.attestedApps(
                app: connection.attestingApp(team: connection.team(id).number, clientID: clientID))
        }
    }
}

extension DatabaseConnection {
    /// The store's number of a team's app; `notFound` also for another team's app.
    func attestingApp(team: Int64, clientID: String) throws(StoreFailure) -> Int64 {
        let number: Int64? = try value(
            """
            SELECT a.id FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            WHERE a.client_id = \(clientID) AND g.team_id = \(team)
            """)
        guard let number else { throw .refused(.notFound, "the team has no such app") }
        return number
    }

    func attestedApps(app: Int64) throws(StoreFailure) -> [AttestedApp] {
        try rows(
            "SELECT name, environment, root, created_at FROM attested_apps WHERE app_id = \(app) ORDER BY name, environment"
        ).map { row throws(StoreFailure) in
            try AttestedApp(
                appID: row["name"],
                environment: AppAttestExpectation.Environment(stored: row["environment"]),
                root: row["root"],
                createdAt: row["created_at"])
        }
    }
}

extension AppAttestExpectation.Environment {
    init(stored text: String) throws(StoreFailure) {
        guard let known = Self(rawValue: text) else {
            throw .permanent(.unexpectedData, "an unknown environment of App Attest")
        }
        self = known
    }
}
