// The extra checks that a team required, as the user sees them: their events, reasons and results.
// Also the user's objections.

import Accounts
import Database
import Support

/// A decision that required a check.
package struct AccountCheck: Sendable, Hashable {
    package enum End: Sendable, Hashable { case passed, failed, open }

    /// As in the log of decisions.
    package let decisionID: String
    /// The team's event: `sign_up`, `sign_in` and so on.
    package let event: String
    /// Kinds of checks that the team would accept.
    package let challenges: [String]
    /// Reason codes of the policy.
    package let reasons: [String]
    /// Seconds since 1970.
    package let at: Int64
    package let end: End
    /// When the user objected, seconds since 1970; nil if they did not.
    package let objectedAt: Int64?
    /// The user's words.
    package let objection: String?

    /// Characters.
    package static let maximumObjection = 500
}

extension UserExportRepository {
    /// The checks of an account, the latest first, at most `limit`.
    package func checks(account: Int64, limit: Int = 10) throws(StoreFailure) -> [AccountCheck] {
        try database.rows(
            """
            SELECT d.decision_id, d.event, d.challenges, d.reasons, d.evaluated_at, o.created_at AS objected_at, o.words,
                (SELECT MAX(c.passed_at) FROM checks c WHERE c.decision_id = d.decision_id) AS passed_at,
                (SELECT MAX(c.failed_at) FROM checks c WHERE c.decision_id = d.decision_id) AS failed_at
            FROM decisions d JOIN grants g ON g.id = d.grant_id
            LEFT JOIN decision_objections o ON o.decision_id = d.decision_id
            WHERE g.account_id = \(account) AND d.decision = 'require_verification' ORDER BY d.id DESC LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in
            func words(_ name: String) throws(StoreFailure) -> [String] {
                let text: String = try row[name]
                return text.split(separator: " ").map(String.init)
            }
            let (passed, failed): (Int64?, Int64?) = try (row["passed_at"], row["failed_at"])
            return try AccountCheck(
                decisionID: row["decision_id"], event: row["event"],
                challenges: words("challenges"), reasons: words("reasons"),
                at: row["evaluated_at"],
                end: passed != nil ? .passed : failed != nil ? .failed : .open,
                objectedAt: row["objected_at"], objection: row["words"])
        }
    }

    /// Records the user's objection, once. The audit and `postern review list` show it to the
    /// operator, and the team's endpoint gets an event without the words. Throws `notFound` for a
    /// decision of another account. Throws `invalid` for words that are too long, have invisible
    /// characters, or contain an address: reviewers must see no address.
    /// - Parameter words: the user's words; may be empty.
    package func object(
        account: Int64, decision id: String, words: String = "", _ change: Change
    ) throws(StoreFailure) {
        let lines = PersonText.lines(words)
        let text = lines.joined(separator: "\n")
        guard text.unicodeScalars.count <= AccountCheck.maximumObjection else {
            throw .refused(
                .invalid, "an objection has at most \(AccountCheck.maximumObjection) characters")
        }
        for line in lines { try Identifier.checkText(line) }
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw .refused(
                .invalid, "leave out email addresses: those who read it are not to see them")
        }
        let isEmpty = text.unicodeScalars.allSatisfy(\.properties.isWhitespace)
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let found = try connection.row(
                """
                SELECT g.group_id, d.team_id FROM decisions d JOIN grants g ON g.id = d.grant_id
                WHERE d.decision_id = \(id) AND g.account_id = \(account) AND d.decision = 'require_verification'
                """)
            guard let found else { throw .refused(.notFound, "there is no such check") }
            let added = try connection.run(
                """
                INSERT INTO decision_objections (decision_id, account_id, words, created_at)
                VALUES (\(id), \(account), \(isEmpty ? nil : text), \(change.now))
                ON CONFLICT (decision_id) DO NOTHING
                """)
            guard added > 0 else { return }
            try connection.audit(change, "decision.object", "account:\(account)", id)
            try tracker.note(
                objectionOf: account, group: found["group_id"], team: found["team_id"], decision: id
            )
        }
    }

    /// Withdraws the user's objection. Throws `notFound` if there is none.
    package func withdrawObjection(
        account: Int64, decision id: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let removed = try connection.run(
                "DELETE FROM decision_objections WHERE decision_id = \(id) AND account_id = \(account)"
            )
            guard removed > 0 else { throw .refused(.notFound, "there is no such objection") }
            try connection.audit(change, "decision.withdraw-objection", "account:\(account)", id)
        }
    }
}
