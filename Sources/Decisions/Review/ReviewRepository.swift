// Decisions for people to review, the story of an account, notes, and snoozed rules.

import Accounts
import Database
import Support

/// Reads and writes for `postern review`.
package struct ReviewRepository: Sendable {
    let database: any Database

    /// Maximum length of a note or reason in UTF-8 octets.
    package static let textOctets = 1_000
    /// The longest snooze of a rule: a year. For a longer time, change the policy.
    package static let longestSnooze: Int64 = 366 * 86_400
    /// Most decisions in a story.
    package static let storyDecisions = 50

    /// The check results of a deleted account are deleted too, so its decisions do not count.
    private static let isIncomplete: SQL = """
        d.decision = 'require_verification' AND (d.grant_id IS NOT NULL OR d.app_account IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM checks c WHERE c.decision_id = d.decision_id AND c.passed_at IS NOT NULL)
        """

    /// The condition of the index of decisions that can be listed.
    private static let isIndexed: SQL = "(d.for_review = 1 OR d.decision = 'require_verification')"

    /// Decisions for review, the newest first.
    package func list(
        _ filter: ReviewFilter, limit: Int, now: Int64
    ) throws(StoreFailure) -> [ReviewItem] {
        try database.read { connection throws(StoreFailure) in
            let incomplete: SQL =
                "(\(Self.isIncomplete) AND d.evaluated_at <= \(now - CheckRecord.timeout))"
            let cause: SQL =
                switch filter.cause {
                case .incomplete: incomplete
                case .rule: "d.for_review = 1"
                case .objection: "o.created_at IS NOT NULL"
                case nil: "(d.for_review = 1 OR o.created_at IS NOT NULL OR \(incomplete))"
                }
            var condition: SQL = "d.evaluated_at >= \(filter.since) AND \(cause)"
            if let team = filter.team {
                condition = "\(condition) AND d.team_id = \(try connection.team(team).number)"
            }
            // Few users object. SQLite keeps the order of a CROSS JOIN.
            let from: SQL =
                filter.cause == .objection
                ? "decision_objections o CROSS JOIN decisions d CROSS JOIN teams t WHERE d.decision_id = o.decision_id"
                : """
                decisions d CROSS JOIN teams t LEFT JOIN decision_objections o ON o.decision_id = d.decision_id
                WHERE 1 = 1
                """
            if !filter.includesLabelled { condition = "\(condition) AND d.label IS NULL" }
            let rows = try connection.rows(
                """
                SELECT d.decision_id, o.created_at AS objected_at, CASE WHEN \(incomplete) THEN 1 ELSE 0 END AS is_incomplete,
                    (SELECT COUNT(*) FROM review_notes n WHERE n.decision_id = d.decision_id) AS notes
                FROM \(from) AND t.id = d.team_id AND t.removed_at IS NULL AND \(Self.isIndexed) AND \(condition)
                ORDER BY d.evaluated_at DESC, d.id DESC LIMIT \(limit)
                """)
            var items: [ReviewItem] = []
            for row in rows {
                guard let decision = try connection.decision(row["decision_id"], team: nil) else {
                    continue
                }
                let (objectedAt, isIncomplete): (Int64?, Bool) = try (
                    row["objected_at"], row["is_incomplete"]
                )
                let causes: [(ReviewCause, Bool)] = [
                    (.incomplete, isIncomplete), (.rule, decision.record.isForReview),
                    (.objection, objectedAt != nil),
                ]
                items.append(
                    try ReviewItem(
                        decision: decision, causes: causes.filter(\.1).map(\.0),
                        objectedAt: objectedAt, notes: row["notes"]))
            }
            return items
        }
    }

    /// The story of the account that a decision is about; nil if the decision does not exist.
    package func story(_ id: String, now: Int64) throws(StoreFailure) -> ReviewStory? {
        try database.read { connection throws(StoreFailure) in
            guard let decision = try connection.decision(id, team: nil) else { return nil }
            let row = try connection.row(
                "SELECT created_at, words FROM decision_objections WHERE decision_id = \(id)")
            let (objectedAt, objection): (Int64?, String?) = try (row?["created_at"], row?["words"])
            guard let grant = decision.record.grantNumber,
                let account = try connection.reviewAccount(
                    grant: grant, team: decision.record.teamNumber, now: now)
            else {
                let notes = try connection.reviewNotes("n.decision_id = \(id)")
                return ReviewStory(
                    decision: decision, objectedAt: objectedAt, objection: objection, account: nil,
                    decisions: [decision],
                    notes: notes, snoozes: [])
            }
            let ids: [String] = try connection.values(
                """
                SELECT decision_id FROM decisions WHERE grant_id = \(grant) AND team_id = \(decision.record.teamNumber)
                ORDER BY id DESC LIMIT \(Self.storyDecisions)
                """)
            var decisions: [LoggedDecision] = []
            // Includes the requested decision of any age.
            for id in ids.contains(id) ? ids : ids + [id] {
                if let decision = try connection.decision(id, team: nil) {
                    decisions.append(decision)
                }
            }
            return ReviewStory(
                decision: decision, objectedAt: objectedAt, objection: objection, account: account,
                decisions: decisions,
                notes: try connection.reviewNotes(
                    "d.grant_id = \(grant) AND d.team_id = \(decision.record.teamNumber)"),
                snoozes: try connection.snoozes(grant: grant, now: now))
        }
    }

    /// Adds a note to a decision. Throws `notFound`, and `invalid` for a text that is empty, too
    /// long or contains an address.
    package func note(decision id: String, text: String, _ change: Change) throws(StoreFailure) {
        let text = try Self.checked(text, "a note")
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.checkReviewed(id)
            try connection.run(
                """
                INSERT INTO review_notes (decision_id, actor, text, created_at)
                VALUES (\(id), \(change.actor), \(text), \(change.now))
                """)
            try connection.audit(change, "decision.note", "decision:\(id)")
        }
    }

    /// Stops a rule from requiring a check of the account of a decision until a time, or ends that
    /// snooze.
    /// - Parameters:
    ///   - rule: a rule of the policy that decided; nil for the rule that required a check.
    ///   - expiresAt: seconds since 1970; nil ends it now.
    /// - Returns: the rule and its policy.
    /// - Throws: `notFound` for a decision, account or snooze that does not exist; `invalid` for
    ///   another rule or time, or a text that is empty, too long or contains an address.
    package func snooze(
        decision id: String, rule: String?, reason: String, until expiresAt: Int64?,
        _ change: Change
    ) throws(StoreFailure) -> (rule: String, policy: String) {
        let reason = expiresAt == nil && reason.isEmpty ? "" : try Self.checked(reason, "a reason")
        if let expiresAt, !(change.now + 1...change.now + Self.longestSnooze).contains(expiresAt) {
            throw .refused(
                .invalid, "a rule can be snoozed until a time in the future, at most a year away")
        }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let record = try connection.checkReviewed(id)
            guard let grant = record.grantNumber else {
                throw .refused(.notFound, "the account of decision \(id) is unknown or was deleted")
            }
            let policy = record.policyName
            let rule = try Self.chosen(rule, of: record, isEnding: expiresAt == nil)
            let ofRule: SQL = "grant_id = \(grant) AND policy_name = \(policy) AND rule = \(rule)"
            let isSnoozed =
                try connection.row(
                    "SELECT 1 FROM rule_snoozes WHERE \(ofRule) AND expires_at > \(change.now)")
                != nil
            try connection.run("DELETE FROM rule_snoozes WHERE \(ofRule)")
            _ = try connection.deleteSnoozes(endedBy: change.now, limit: 100)
            guard let expiresAt else {
                guard isSnoozed else {
                    throw .refused(.notFound, "rule \(rule) is not snoozed for this account")
                }
                try connection.audit(
                    change, "rule.unsnooze", "decision:\(id)", "\(policy) \(rule) \(reason)")
                return (rule, policy)
            }
            try connection.run(
                """
                INSERT INTO rule_snoozes (grant_id, policy_name, rule, reason, created_at, expires_at)
                VALUES (\(grant), \(policy), \(rule), \(reason), \(change.now), \(expiresAt))
                ON CONFLICT (grant_id, policy_name, rule) DO UPDATE
                    SET reason = excluded.reason, created_at = excluded.created_at, expires_at = excluded.expires_at
                """)
            try connection.audit(
                change, "rule.snooze", "decision:\(id)",
                "\(policy) \(rule) until \(UTCTime.text(expiresAt)): \(reason)")
            return (rule, policy)
        }
    }

    /// The rule to snooze: one that required a check or was snoozed.
    private static func chosen(
        _ rule: String?, of record: DecisionRecord, isEnding: Bool
    ) throws(StoreFailure) -> String {
        let asking = record.asked + record.snoozed
        if let rule {
            guard asking.contains(rule) || isEnding else {
                let others = asking.isEmpty ? "no rule did" : asking.joined(separator: ", ")
                throw .refused(.invalid, "rule \(rule) did not require a check: \(others)")
            }
            return rule
        }
        guard let only = asking.first, asking.count == 1 else {
            throw .refused(
                .invalid,
                asking.isEmpty
                    ? "no rule required a check in this decision"
                    : "name the rule: \(asking.joined(separator: ", "))")
        }
        return only
    }

    private static func checked(_ text: String, _ what: String) throws(StoreFailure) -> String {
        let isPlain = PersonText.isPlain(text)
        let text = PersonText.withSingleSpaces(text)
        guard isPlain, !text.isEmpty, text.utf8.count <= textOctets else {
            throw .refused(
                .invalid,
                "\(what) must be one line of 1 to \(textOctets) octets, without invisible characters"
            )
        }
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw .refused(
                .invalid, "\(what) must not contain an address: name the decision or the account")
        }
        return text
    }
}

extension DatabaseConnection {
    @discardableResult
    fileprivate func checkReviewed(_ id: String) throws(StoreFailure) -> DecisionRecord {
        guard let decision = try decision(id, team: nil) else {
            throw .refused(
                .notFound, "no decision has the id \(id.prefix(64)): see postern review list")
        }
        return decision.record
    }

    fileprivate func reviewNotes(_ condition: SQL) throws(StoreFailure) -> [ReviewNote] {
        try rows(
            """
            SELECT n.decision_id, n.actor, n.text, n.created_at FROM review_notes n
            JOIN decisions d ON d.decision_id = n.decision_id WHERE \(condition) ORDER BY n.id
            """
        ).map { row throws(StoreFailure) in
            try ReviewNote(
                decisionID: row["decision_id"], actor: row["actor"], text: row["text"],
                at: row["created_at"])
        }
    }

    fileprivate func snoozes(grant: Int64, now: Int64) throws(StoreFailure) -> [RuleSnooze] {
        try rows(
            """
            SELECT policy_name, rule, reason, created_at, expires_at FROM rule_snoozes
            WHERE grant_id = \(grant) AND expires_at > \(now) ORDER BY policy_name, rule
            """
        ).map { row throws(StoreFailure) in
            try RuleSnooze(
                policy: row["policy_name"], rule: row["rule"], reason: row["reason"],
                createdAt: row["created_at"],
                expiresAt: row["expires_at"])
        }
    }

    /// - Parameter team: the team whose decisions are counted: the app may have belonged to another
    ///   team before.
    fileprivate func reviewAccount(
        grant: Int64, team: Int64, now: Int64
    ) throws(StoreFailure) -> ReviewAccount? {
        func decisions(_ condition: SQL) -> SQL {
            "(SELECT COUNT(*) FROM decisions d WHERE d.grant_id = g.id AND d.team_id = \(team) AND \(condition))"
        }
        func daily(_ kind: CounterKind) -> SQL {
            """
            (SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM daily_counters c
                WHERE c.account_id = g.account_id AND c.kind = \(kind.rawValue) AND c.day > \(Day.number(now) - 30))
            """
        }
        let row = try row(
            """
            SELECT g.account_id, g.state, g.first_authorized_at, g.revoked_at, g.real_user_status, g.signup_check,
                \(decisions("1 = 1")) AS questions, \(decisions("d.decision = 'require_verification'")) AS asked,
                \(decisions("d.label = 'legitimate'")) AS legitimate, \(decisions("d.label = 'fraudulent'")) AS fraudulent,
                (SELECT COUNT(DISTINCT c.decision_id) FROM checks c WHERE c.grant_id = g.id AND c.passed_at IS NOT NULL) AS passed,
                (SELECT COUNT(*) FROM decision_objections o JOIN decisions d ON d.decision_id = o.decision_id
                    WHERE d.grant_id = g.id AND d.team_id = \(team)) AS objections,
                \(daily(.replied)) AS replies, \(daily(.bouncedPermanently)) AS bounces, \(daily(.rejoined)) AS rejoins
            FROM grants g WHERE g.id = \(grant)
            """)
        return try row.map { row throws(StoreFailure) in
            let state: Grant.State = try row["state"]
            return try ReviewAccount(
                number: row["account_id"], isAuthorized: state == .authorized,
                firstAuthorizedAt: row["first_authorized_at"],
                revokedAt: row["revoked_at"], realUserStatus: row["real_user_status"],
                signUpCheck: row["signup_check"],
                questions: row["questions"], asked: row["asked"], passed: row["passed"],
                legitimate: row["legitimate"],
                fraudulent: row["fraudulent"], objections: row["objections"],
                replies: row["replies"], bounces: row["bounces"],
                rejoins: row["rejoins"])
        }
    }
}
