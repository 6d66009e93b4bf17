// Checks that the page carries out: whose they are, the codes that it mails, and their outcome.

import Accounts
import Database
import InternetMessage
import MailCrypto
import SignIn
import Support

/// The person of a decision.
package struct CheckedPerson: Sendable {
    /// Nil if the page has no such user, as for an account of another issuer.
    package let userID: String?
    /// The verified inbox to which the account's mail goes; nil if there is none.
    package let inbox: InboxAddress?
    /// Nil if the decision named no account.
    package let account: CheckedAccount?
}

/// Limits of the codes that the page mails for checks. Only a million codes exist, and the team
/// decides how often a check is required.
package enum CheckCodeLimits {
    /// Messages for one check.
    package static let messages = 3
    /// Wrong codes for one check, however many messages there were.
    package static let tries = 5
    /// Wrong codes for all checks that one team required of a user in a day. Teams are counted
    /// apart, so that none of them can take the checks of another away from a user.
    package static let triesPerDay = 10
    static let day: Int64 = 86_400
    static let hour: Int64 = 3_600
}

/// Why no code is mailed, or none is accepted.
package enum CheckCodeRefusal: Error, Sendable, Hashable {
    /// The check has had its messages.
    case noMoreMessages
    /// The inbox has had its messages of this hour.
    case tooMuchMail
    /// Too many wrong codes were entered for this check.
    case failed
    /// Too many wrong codes were entered for this user today.
    case tooManyToday
}

/// The result of an entered code.
package enum CheckCodeResult: Sendable, Hashable {
    case right
    /// - left: how many tries there are.
    case wrong(left: Int)
    case refused(CheckCodeRefusal)
}

/// What the page needs of a decision's check.
package struct HostedCheckRepository: Sendable {
    let database: any Database
    let sealer: Sealer
    let secrets: SecretHash

    /// The person of a decision; nil if the log does not have the decision (any longer).
    package func person(of decision: String) throws(StoreFailure) -> CheckedPerson? {
        let row = try database.row(
            """
            SELECT u.handle, a.sub, e.issuer, e.subject, i.id AS inbox_id, i.user_id AS inbox_user, i.address_key,
                i.address_sealed, i.verified_at
            FROM decisions d
            LEFT JOIN grants g ON g.id = d.grant_id
            LEFT JOIN accounts a ON a.id = g.account_id
            LEFT JOIN users u ON u.id = a.user_id
            LEFT JOIN external_identities e ON e.account_id = a.id
            LEFT JOIN inboxes i ON i.id = a.target_inbox
            WHERE d.decision_id = \(decision)
            """)
        return try row.map { row throws(StoreFailure) in
            let verifiedAt: Int64? = try row["verified_at"]
            let inbox: InboxAddress? =
                verifiedAt == nil ? nil : try sealer.inbox(row, user: row["inbox_user"])
            let (user, sub, issuer, subject): (String?, String?, String?, String?) = try (
                row["handle"], row["sub"], row["issuer"], row["subject"]
            )
            let account: CheckedAccount? =
                if user == nil, let issuer, let subject {
                    CheckedAccount(issuer: issuer, subject: subject)
                } else {
                    sub.map { CheckedAccount(issuer: nil, subject: $0) }
                }
            return CheckedPerson(userID: user, inbox: inbox, account: account)
        }
    }

    // MARK: Codes

    /// A new code for a check; the one before is no longer valid. It is counted whether or not its
    /// message leaves.
    /// - Parameter perHour: the most messages to one user for checks of one team. They are no part
    ///   of the limits of other messages: a team must not use up those that users sign in with.
    package func newCode(
        for check: HostedCheck, user id: String, perHour: Int, now: Int64
    ) throws(StoreFailure) -> Result<String, CheckCodeRefusal> {
        let code = try SecretHash.newCode()
        return try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            if let refusal = try refusal(connection, check, user: user, now: now) {
                return .failure(refusal)
            }
            let sent: Int? = try connection.value(
                "SELECT sent FROM check_codes WHERE decision_id = \(check.decisionID)")
            guard sent ?? 0 < CheckCodeLimits.messages else { return .failure(.noMoreMessages) }
            let ofHour = try sum(
                "sent", connection, check, user: user, since: now - CheckCodeLimits.hour)
            guard ofHour < perHour else { return .failure(.tooMuchMail) }
            try connection.run(
                """
                INSERT INTO check_codes (decision_id, user_id, code_hash, sent, tries, sent_at)
                VALUES \(list: [check.decisionID, user, hash(code, of: check), 1, 0, now])
                ON CONFLICT (decision_id) DO UPDATE
                    SET code_hash = excluded.code_hash, sent = check_codes.sent + 1, sent_at = excluded.sent_at
                """)
            return .success(code)
        }
    }

    /// Takes a code as entered. The try is counted before the comparison, so that many at once are
    /// no more than the limit.
    /// - Parameter code: six digits, already read.
    package func tryCode(
        _ code: String, for check: HostedCheck, now: Int64
    ) throws(StoreFailure) -> CheckCodeResult {
        try database.write(.durable) { connection throws(StoreFailure) in
            let found = try connection.row(
                "SELECT user_id, code_hash, tries FROM check_codes WHERE decision_id = \(check.decisionID)"
            )
            guard let found else { return .wrong(left: CheckCodeLimits.tries) }
            let user: Int64 = try found["user_id"]
            if let refusal = try refusal(connection, check, user: user, now: now) {
                return .refused(refusal)
            }
            let tries: Int? = try connection.value(
                """
                UPDATE check_codes SET tries = tries + 1 WHERE decision_id = \(check.decisionID) RETURNING tries
                """)
            guard constantTimeEqual(try found["code_hash"], hash(code, of: check)) else {
                let left = max(0, CheckCodeLimits.tries - (tries ?? 0))
                return left == 0 ? .refused(.failed) : .wrong(left: left)
            }
            // A right code is no wrong one, and works once.
            try connection.run(
                "DELETE FROM check_codes WHERE decision_id = \(check.decisionID)")
            return .right
        }
    }

    /// Whether a code was mailed for a check.
    package func hasCode(_ check: HostedCheck) throws(StoreFailure) -> Bool {
        try database.row(
            "SELECT 1 FROM check_codes WHERE decision_id = \(check.decisionID)") != nil
    }

    private func refusal(
        _ connection: any DatabaseConnection, _ check: HostedCheck, user: Int64, now: Int64
    ) throws(StoreFailure) -> CheckCodeRefusal? {
        let tries: Int? = try connection.value(
            "SELECT tries FROM check_codes WHERE decision_id = \(check.decisionID)")
        guard tries ?? 0 < CheckCodeLimits.tries else { return .failed }
        let ofDay = try sum(
            "tries", connection, check, user: user, since: now - CheckCodeLimits.day)
        return ofDay < CheckCodeLimits.triesPerDay ? nil : .tooManyToday
    }

    /// The sum of a column over the codes of a user for the team of a check.
    private func sum(
        _ column: SQL, _ connection: any DatabaseConnection, _ check: HostedCheck, user: Int64,
        since: Int64
    ) throws(StoreFailure) -> Int {
        let found: Int? = try connection.value(
            """
            SELECT CAST(SUM(c.\(column)) AS BIGINT) AS sum FROM check_codes c
            JOIN decisions d ON d.decision_id = c.decision_id
            WHERE c.user_id = \(user) AND c.sent_at > \(since)
                AND d.team_id = (SELECT o.team_id FROM decisions o WHERE o.decision_id = \(check.decisionID))
            """)
        return found ?? 0
    }

    private func hash(_ code: String, of check: HostedCheck) -> [UInt8] {
        secrets.hash(.checkCode, code, context: check.decisionID)
    }

    // MARK: Outcomes

    /// Writes what the page saw of a check. A pass is final, and a check that the log does not have
    /// (any longer) has no outcome.
    /// - Returns: whether the decision now has a pass of this challenge.
    package func observe(
        _ outcome: CheckOutcome, _ challenge: HostedChallenge, by method: CheckMethod,
        of check: HostedCheck, now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.durable) { connection throws(StoreFailure) in
            try observe(connection, outcome, challenge, by: method, of: check, now: now)
        }
    }

    /// The same within a transaction.
    package func observe(
        _ connection: any DatabaseConnection, _ outcome: CheckOutcome,
        _ challenge: HostedChallenge, by method: CheckMethod, of check: HostedCheck, now: Int64
    ) throws(StoreFailure) -> Bool {
        guard let decision = try connection.decision(check.decisionID, team: nil) else {
            return false
        }
        var known = decision.check(challenge.rawValue)
        // The page begins a check and ends it at once.
        for step in [CheckOutcome.initiated, outcome] {
            guard
                let next = try? CheckRecord.after(
                    step, challenge: challenge.rawValue, method: method, known: known,
                    of: decision.record, now: now)
            else { continue }
            known = next
            try connection.record(next, of: decision.record)
        }
        return known?.passedAt != nil
    }
}
