// A status that a policy gave, with its reasons: for the operator only.

import Database

/// The status that a policy decided at an authorization.
package struct GivenStatus: Sendable, Hashable {
    /// 0 … 2, as in identity tokens.
    package let status: Int
    /// Codes of the rules; they never leave the installation.
    package let reasons: [String]
    /// The signals that were known: a JSON object.
    package let signals: String
    package let policyName: String
    package let policyVersion: String
    package let policyHash: String

    package init(
        status: Int, reasons: [String], signals: String, policyName: String, policyVersion: String,
        policyHash: String
    ) {
        self.status = status
        self.reasons = reasons
        self.signals = signals
        self.policyName = policyName
        self.policyVersion = policyVersion
        self.policyHash = policyHash
    }
}

extension DatabaseConnection {
    /// Sets the status of a grant that has none, and stores the reasons. A status from before a
    /// revocation is not lowered.
    func give(_ given: GivenStatus, grant: Int64, now: Int64) throws(StoreFailure) {
        let changed = try run(
            """
            UPDATE grants SET real_user_status = CASE WHEN prior_status > \(given.status) THEN prior_status
                ELSE CAST(\(given.status) AS BIGINT) END
            WHERE id = \(grant) AND real_user_status IS NULL
            """)
        guard changed > 0 else { return }
        try run(
            """
            INSERT INTO status_decisions
                (grant_id, status, reasons, signals, policy_name, policy_version, policy_hash, decided_at)
            VALUES (\(grant), \(given.status), \(given.reasons.joined(separator: " ")), \(given.signals), \(given.policyName),
                \(given.policyVersion), \(given.policyHash), \(now))
            """)
    }
}

extension GrantRepository {
    /// The latest policy status of each grant of an account, by
    /// `Grant.number`: for the operator only.
    package func givenStatuses(account: Int64) throws(StoreFailure) -> [Int64: GivenStatus] {
        var statuses: [Int64: GivenStatus] = [:]
        let rows = try addresses.database.rows(
            """
            SELECT s.grant_id, s.status, s.reasons, s.signals, s.policy_name, s.policy_version, s.policy_hash
            FROM status_decisions s JOIN grants g ON g.id = s.grant_id WHERE g.account_id = \(account) ORDER BY s.id
            """)
        for row in rows {
            let reasons: String = try row["reasons"]
            statuses[try row["grant_id"]] = try GivenStatus(
                status: row["status"], reasons: reasons.split(separator: " ").map(String.init),
                signals: row["signals"],
                policyName: row["policy_name"], policyVersion: row["policy_version"],
                policyHash: row["policy_hash"])
        }
        return statuses
    }
}
