// The decision log: written in batches, read by number, by page and by id.

import Accounts
import Database
import SignIn

/// Writes and reads logged decisions.
package struct DecisionRepository: Sendable {
    let database: any Database

    /// Rows read at one time.
    private static let batch: Int64 = 500

    /// Writes decisions in one transaction; skips those already written and those of deleted teams.
    package func insert(
        _ records: some Collection<DecisionRecord>, durability: Durability = .relaxed
    ) throws(StoreFailure) {
        guard !records.isEmpty else { return }
        do {
            try database.write(durability) { connection throws(StoreFailure) in
                try connection.insert(records)
            }
        } catch  where error.code == .permanent(.constraint) {
            // A grant was deleted after its lookup. Insert one by one, each with its own lookup.
            try database.write(durability) { connection throws(StoreFailure) in
                for record in records { try connection.insert(record) }
            }
        }
    }

    /// A decision by its id; nil if there is none. With `team`, only that team's.
    package func decision(_ id: String, team: Int64? = nil) throws(StoreFailure) -> LoggedDecision?
    {
        try database.read { connection throws(StoreFailure) in
            try connection.decision(id, team: team)
        }
    }

    /// Decisions that match the filter, the newest first, at most `limit`.
    package func newest(
        _ filter: DecisionFilter, limit: Int
    ) throws(StoreFailure) -> [LoggedDecision] {
        var found: [LoggedDecision] = []
        var place: Place?
        repeat {
            let page = try page(filter, isAscending: false, beyond: place)
            found += page.admitted
            place = page.last
        } while found.count < limit && place != nil
        return Array(found.prefix(limit))
    }

    /// Of the newest `limit` decisions since a time, those with context or with an error, the
    /// newest first; without their checks.
    func newestOdd(since: Int64, among limit: Int) throws(StoreFailure) -> [DecisionRecord] {
        try database.read { connection throws(StoreFailure) in
            let oldest: Int64 =
                try connection.value(
                    """
                    SELECT MIN(evaluated_at) FROM (SELECT evaluated_at FROM decisions WHERE evaluated_at >= \(since)
                        ORDER BY evaluated_at DESC LIMIT \(limit)) newest
                    """) ?? since
            let rows = try connection.rows(
                """
                \(Self.select) AND t.id = d.team_id AND d.evaluated_at >= \(oldest)
                    AND (d.errors <> '' OR d.signals LIKE '%"context.%')
                ORDER BY d.evaluated_at DESC, d.id DESC LIMIT \(limit)
                """)
            return try rows.map { row throws(StoreFailure) in try LoggedDecision(row: row).record }
        }
    }

    /// Reads the decisions that match the filter, the oldest first; `body`
    /// gets some of them at a time.
    package func walk(_ filter: DecisionFilter, _ body: ([LoggedDecision]) throws -> Void) throws {
        var place: Place?
        repeat {
            let page = try page(filter, isAscending: true, beyond: place)
            if !page.admitted.isEmpty { try body(page.admitted) }
            place = page.last
        } while place != nil
    }

    /// Number of decisions in the filter's time and team; its rule and reason are ignored.
    /// Reads an index of all of them.
    package func count(_ filter: DecisionFilter) throws(StoreFailure) -> Int {
        try database.read { connection throws(StoreFailure) in
            try connection.value(
                "SELECT COUNT(*) FROM decisions d WHERE \(Self.condition(filter, connection))") ?? 0
        }
    }

    private static func condition(
        _ filter: DecisionFilter, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> SQL {
        var condition: SQL =
            "d.evaluated_at >= \(filter.since ?? 0) AND d.evaluated_at < \(filter.until ?? .max)"
        if let team = filter.team {
            condition = "\(condition) AND d.team_id = \(try connection.team(team).number)"
        }
        if let user = filter.user {
            let number = try connection.userNumber(user)
            condition = """
                \(condition) AND d.grant_id IN
                    (SELECT g.id FROM grants g JOIN accounts a ON a.id = g.account_id WHERE a.user_id = \(number))
                """
        }
        if let account = filter.account {
            condition =
                "\(condition) AND d.grant_id IN (SELECT id FROM grants WHERE account_id = \(account))"
        }
        return condition
    }

    /// The end of a page. Pages are in the order of time, like the rows in an index. In the order
    /// of row numbers, one day of a log of years would require reading or sorting the whole log for
    /// each page.
    private struct Place {
        let time: Int64
        let number: Int64
    }

    /// Rule and reason are matched here, because their columns are lists of words.
    /// - Returns: the decisions of the page that match the filter, and where the page ended;
    ///   nil at the end of the log.
    private func page(
        _ filter: DecisionFilter, isAscending: Bool, beyond place: Place?
    ) throws(StoreFailure) -> (admitted: [LoggedDecision], last: Place?) {
        var filter = filter
        var onward: SQL = ""
        if let place {
            if isAscending { filter.since = place.time } else { filter.until = place.time + 1 }
            onward =
                isAscending
                ? "AND (d.evaluated_at > \(place.time) OR d.id > \(place.number))"
                : "AND (d.evaluated_at < \(place.time) OR d.id < \(place.number))"
        }
        let order: SQL = isAscending ? "d.evaluated_at, d.id" : "d.evaluated_at DESC, d.id DESC"
        return try database.read { connection throws(StoreFailure) in
            let rows = try connection.rows(
                """
                \(Self.select) AND t.id = d.team_id AND \(Self.condition(filter, connection)) \(onward)
                ORDER BY \(order) LIMIT \(Self.batch)
                """)
            let decisions = try rows.map(LoggedDecision.init(row:))
            return (
                try decisions.filter { filter.admits($0.record) }.map {
                    decision throws(StoreFailure) in
                    try connection.withChecks(decision)
                },
                rows.count < Int(Self.batch)
                    ? nil
                    : decisions.last.map { Place(time: $0.record.evaluatedAt, number: $0.number) }
            )
        }
    }

    /// Deletes decisions evaluated before a time, statuses given before it and snoozes that ended
    /// before it, at most `limit` of each; returns how many. Checks and labels of these decisions
    /// have their own retention.
    /// - Parameter limit: rows are long, and each one changes another index page, that of its
    ///   account: some ten milliseconds.
    package func deleteExpired(before cutoff: Int64, limit: Int = 250) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.deletePast(
                .decisions, where: "x.evaluated_at < \(cutoff)", from: "evaluated_at", limit: limit)
                + connection.deletePast(
                    .statusDecisions, where: "x.decided_at < \(cutoff)", from: "decided_at",
                    limit: limit)
                + connection.deleteSnoozes(endedBy: cutoff - 1, limit: limit)
        }
    }

    /// The caller adds the condition that joins the team. CROSS JOIN makes SQLite begin with the
    /// log instead of the few teams, and so keep the order of an index.
    fileprivate static let select: SQL = """
        SELECT d.id, d.decision_id, d.team_id, d.client_id, d.grant_id, d.app_account, d.claimed_event, d.event, d.decision,
            d.challenges, d.reasons, d.wire_reasons, d.asked, d.skips, d.waived, d.missing, d.errors, d.error_texts, d.shadow, d.snoozed, d.for_review, d.overridden_by,
            d.signals, d.policy_name, d.policy_version, d.policy_hash, d.real_user_status, d.credential_state, d.upgrade_result,
            d.degraded, d.evaluated_at, d.expires_at, t.handle AS team, d.label, d.labelled_at
        FROM decisions d CROSS JOIN teams t WHERE t.removed_at IS NULL
        """
}

extension DatabaseConnection {
    /// Deletes snoozes that ended, at most `limit`; returns how many. They have no further use.
    func deleteSnoozes(endedBy time: Int64, limit: Int) throws(StoreFailure) -> Int {
        try run(
            """
            DELETE FROM rule_snoozes WHERE (policy_name, rule, grant_id) IN (
                SELECT policy_name, rule, grant_id FROM rule_snoozes WHERE expires_at <= \(time) LIMIT \(limit))
            """)
    }
}

extension LoggedDecision {
    /// From the columns of `DecisionRepository.select`, without its checks.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        func words(_ column: String) throws(StoreFailure) -> [String] {
            try (row[column] as String).split(separator: " ").map(String.init)
        }
        func lines(_ column: String) throws(StoreFailure) -> [String] {
            try (row[column] as String).split(separator: "\n").map(String.init)
        }
        let record = try DecisionRecord(
            id: row["decision_id"], teamNumber: row["team_id"], clientID: row["client_id"],
            grantNumber: row["grant_id"],
            appAccountMark: row["app_account"], claimedEvent: row["claimed_event"],
            event: row["event"],
            decision: row["decision"], challenges: words("challenges"), reasons: words("reasons"),
            wireReasons: words("wire_reasons"), asked: words("asked"), skips: words("skips"),
            waived: words("waived"),
            missing: words("missing"), errors: words("errors"), errorTexts: lines("error_texts"),
            shadow: words("shadow"),
            snoozed: words("snoozed"),
            isForReview: row["for_review"], overriddenBy: row["overridden_by"],
            signals: row["signals"], policyName: row["policy_name"],
            policyVersion: row["policy_version"],
            policyHash: row["policy_hash"], realUserStatus: row["real_user_status"],
            credentialState: row["credential_state"],
            upgradeResult: row["upgrade_result"], isDegraded: row["degraded"],
            evaluatedAt: row["evaluated_at"],
            expiresAt: row["expires_at"])
        try self.init(
            number: row["id"], record: record, teamID: row["team"], label: row["label"],
            labelledAt: row["labelled_at"],
            checks: [])
    }
}

/// A decision as a row of the log.
private enum DecisionRow {
    static let columns = """
        decision_id, team_id, client_id, grant_id, app_account, claimed_event, event, decision, challenges, reasons, wire_reasons, asked,
        skips, waived, missing, errors, error_texts, shadow, snoozed, for_review, overridden_by, signals, policy_name, policy_version, policy_hash,
        real_user_status, credential_state, upgrade_result, degraded, evaluated_at, expires_at
        """

    /// Values of the columns after the grant in `columns`.
    static func values(_ record: DecisionRecord) -> [any SQLBindable] {
        // Most lists are empty or have one word.
        func words(_ list: [String]) -> String {
            list.count > 1 ? list.joined(separator: " ") : list.first ?? ""
        }
        return [
            record.appAccountMark, record.claimedEvent, record.event, record.decision,
            words(record.challenges),
            words(record.reasons), words(record.wireReasons), words(record.asked),
            words(record.skips), words(record.waived),
            words(record.missing), words(record.errors), record.errorTexts.joined(separator: "\n"),
            words(record.shadow),
            words(record.snoozed), record.isForReview,
            record.overriddenBy, record.signals,
            record.policyName, record.policyVersion, record.policyHash, record.realUserStatus,
            record.credentialState,
            record.upgradeResult, record.isDegraded, record.evaluatedAt, record.expiresAt,
        ]
    }
}

extension DatabaseConnection {
    /// Writes a decision; does nothing if it is already written or its team is deleted. A deleted
    /// grant is written as no grant.
    func insert(_ record: DecisionRecord) throws(StoreFailure) {
        try run(
            """
            INSERT INTO decisions (\(raw: DecisionRow.columns))
            SELECT \(record.id), t.id, \(record.clientID), (SELECT g.id FROM grants g WHERE g.id = \(record.grantNumber)),
                \(each: DecisionRow.values(record))
            FROM teams t WHERE t.id = \(record.teamNumber) AND t.removed_at IS NULL
            ON CONFLICT (decision_id) DO NOTHING
            """)
    }

    /// The same for many decisions in a few statements.
    func insert(_ records: some Collection<DecisionRecord>) throws(StoreFailure) {
        let teams: Set<Int64> = Set(
            try values(for: Array(Set(records.map(\.teamNumber)))) {
                "SELECT id FROM teams WHERE removed_at IS NULL AND id IN \($0)"
            })
        let grants: Set<Int64> = Set(
            try values(for: Array(Set(records.compactMap(\.grantNumber)))) {
                "SELECT id FROM grants WHERE id IN \($0)"
            })
        let rows = records.filter { teams.contains($0.teamNumber) }.map { record in
            let grant = record.grantNumber.flatMap { grants.contains($0) ? $0 : nil }
            let head: [any SQLBindable] = [record.id, record.teamNumber, record.clientID, grant]
            return head + DecisionRow.values(record)
        }
        try insert(
            rows, into: "decisions (\(DecisionRow.columns))", "ON CONFLICT (decision_id) DO NOTHING"
        )
    }

    /// A decision by its id, with its outcomes.
    func decision(_ id: String, team: Int64?) throws(StoreFailure) -> LoggedDecision? {
        guard
            let row = try row(
                "\(DecisionRepository.select) AND t.id = \(SQL.filter("d.team_id")) AND d.decision_id = \(id)"
            )
        else { return nil }
        let decision = try LoggedDecision(row: row)
        guard team == nil || decision.record.teamNumber == team else { return nil }
        return try withChecks(decision)
    }

    /// The same decision with its checks.
    func withChecks(_ decision: LoggedDecision) throws(StoreFailure) -> LoggedDecision {
        // Most decisions have no challenge, so no lookup is needed.
        guard !decision.record.challenges.isEmpty else { return decision }
        return LoggedDecision(
            number: decision.number, record: decision.record, teamID: decision.teamID,
            label: decision.label,
            labelledAt: decision.labelledAt, checks: try checks(decision: decision.record.id))
    }

    /// The reports about a decision's challenges.
    func checks(decision id: String) throws(StoreFailure) -> [CheckRecord] {
        try rows(
            "SELECT challenge, method, initiated_at, passed_at, failed_at FROM checks WHERE decision_id = \(id) ORDER BY challenge"
        ).map { row throws(StoreFailure) in
            try CheckRecord(
                challenge: row["challenge"], method: row["method"],
                initiatedAt: row["initiated_at"], passedAt: row["passed_at"],
                failedAt: row["failed_at"])
        }
    }
}
