// The decision log: written in batches, read by number, by page and by id.

/// Writes and reads logged decisions.
package struct DecisionRepository: Sendable {
    let database: any Database

    /// Rows read at one time while paging.
    private static let batch: Int64 = 500

    /// Writes decisions in one transaction; those that are written already are passed over, and those of teams that are gone.
    package func insert(_ records: [DecisionRecord], durability: Durability = .relaxed) throws {
        guard !records.isEmpty else { return }
        try database.write(durability) { connection in
            for record in records { try connection.insert(record) }
        }
    }

    /// A decision by its id; nil where there is none. With `team`, only that team's.
    package func decision(_ id: String, team: Int64? = nil) throws -> LoggedDecision? {
        try database.read { try $0.decision(id, team: team) }
    }

    /// Decisions by the filter, the newest first, before the place `before`.
    /// - Returns: at most `limit`, and the place to go on before; nil at the end.
    package func newest(_ filter: DecisionFilter, before: Int64? = nil, limit: Int) throws -> ([LoggedDecision], next: Int64?) {
        try page(filter, isAscending: false, from: before ?? Int64.max, limit: limit)
    }

    /// Decisions by the filter, the oldest first, after the place `after`: for whoever walks through the log.
    /// - Returns: at most `limit`, and the place to go on after; nil at the end.
    package func oldest(_ filter: DecisionFilter, after: Int64 = 0, limit: Int) throws -> ([LoggedDecision], next: Int64?) {
        try page(filter, isAscending: true, from: after, limit: limit)
    }

    /// How many decisions are in the filter's time and team, whatever its rule and reason: for progress bars.
    package func count(_ filter: DecisionFilter) throws -> Int {
        try database.read { connection in
            let (condition, arguments) = try Self.condition(filter, connection)
            return Int(try connection.row("SELECT COUNT(*) FROM decisions d WHERE \(condition)", arguments)?.integer(0) ?? 0)
        }
    }

    /// Hashes of the policies that logged decisions refer to.
    package func policyHashes() throws -> Set<String> {
        try database.read { connection in
            Set(try connection.rows("SELECT DISTINCT policy_hash FROM decisions", []).map { try $0.text(0) })
        }
    }

    private static func condition(
        _ filter: DecisionFilter, _ connection: any DatabaseConnection
    ) throws -> (String, [SQLValue]) {
        var conditions = ["d.evaluated_at >= ?1", "d.evaluated_at < ?2"]
        var arguments: [SQLValue] = [.integer(filter.since ?? 0), .integer(filter.until ?? Int64.max)]
        if let team = filter.team {
            arguments.append(.integer(try connection.team(team).number))
            conditions.append("d.team_id = ?3")
        }
        return (conditions.joined(separator: " AND "), arguments)
    }

    /// Rule and reason are looked for here: they are in lists of words.
    private func page(
        _ filter: DecisionFilter, isAscending: Bool, from start: Int64, limit: Int
    ) throws -> ([LoggedDecision], next: Int64?) {
        var found: [LoggedDecision] = []
        var place = start
        while true {
            let rows = try database.read { connection in
                var (condition, arguments) = try Self.condition(filter, connection)
                arguments += [.integer(place), .integer(Self.batch)]
                condition += isAscending ? " AND d.id > ?\(arguments.count - 1)" : " AND d.id < ?\(arguments.count - 1)"
                let rows = try connection.rows(
                    Self.select + " WHERE \(condition) ORDER BY d.id \(isAscending ? "" : "DESC") LIMIT ?\(arguments.count)",
                    arguments)
                return try rows.map { try Self.logged(row: $0) }.map { decision in
                    guard filter.admits(decision.record) else { return (decision, false) }
                    return (try connection.withChecks(decision), true)
                }
            }
            for (decision, isAdmitted) in rows {
                place = decision.number
                if isAdmitted { found.append(decision) }
                if found.count == limit { return (found, place) }
            }
            if rows.count < Int(Self.batch) { return (found, nil) }
        }
    }

    /// Deletes decisions evaluated before a time, at most `limit`; gives the number. Checks and labels of theirs stay with their
    /// own retention.
    package func deleteExpired(before cutoff: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                "DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE evaluated_at < ?1 ORDER BY evaluated_at LIMIT ?2)",
                [.integer(cutoff), .integer(Int64(limit))])
        }
    }

    fileprivate static let select = """
        SELECT d.id, d.decision_id, d.team_id, d.client_id, d.grant_id, d.app_account, d.claimed_event, d.event, d.decision,
            d.challenges, d.reasons, d.wire_reasons, d.asked, d.skips, d.waived, d.missing, d.errors, d.shadow, d.overridden_by,
            d.signals, d.policy_name, d.policy_version, d.policy_hash, d.real_user_status, d.credential_state, d.upgrade_result,
            d.degraded, d.evaluated_at, d.expires_at, t.handle, d.label, d.labelled_at
        FROM decisions d JOIN teams t ON t.id = d.team_id AND t.removed_at IS NULL
        """

    fileprivate static func logged(row: SQLRow) throws -> LoggedDecision {
        func words(_ column: Int) throws -> [String] { try row.text(column).split(separator: " ").map(String.init) }
        let record = DecisionRecord(
            id: try row.text(1), teamNumber: try row.integer(2), clientID: try row.text(3),
            grantNumber: try row.optionalInteger(4), appAccountMark: try row.optionalBlob(5), claimedEvent: try row.text(6),
            event: try row.text(7), decision: try row.text(8), challenges: try words(9), reasons: try words(10),
            wireReasons: try words(11), asked: try words(12), skips: try words(13), waived: try words(14),
            missing: try words(15), errors: try words(16), shadow: try words(17), overriddenBy: try row.optionalText(18),
            signals: try row.text(19), policyName: try row.text(20), policyVersion: try row.text(21),
            policyHash: try row.text(22), realUserStatus: try row.optionalInteger(23).map(Int.init),
            credentialState: try row.text(24), upgradeResult: try row.optionalText(25), isDegraded: try row.bool(26),
            evaluatedAt: try row.integer(27), expiresAt: try row.integer(28))
        return LoggedDecision(
            number: try row.integer(0), record: record, teamID: try row.text(29),
            label: try row.optionalText(30).flatMap(DecisionLabel.init(rawValue:)), labelledAt: try row.optionalInteger(31),
            checks: [])
    }
}

extension DatabaseConnection {
    /// Writes a decision; nothing where it is written already or its team is gone. A grant that is gone becomes none.
    func insert(_ record: DecisionRecord) throws {
        // Most lists are empty or of one word.
        func words(_ list: [String]) -> SQLValue { .text(list.count > 1 ? list.joined(separator: " ") : list.first ?? "") }
        try run(
            """
            INSERT INTO decisions (decision_id, team_id, client_id, grant_id, app_account, claimed_event, event, decision,
                challenges, reasons, wire_reasons, asked, skips, waived, missing, errors, shadow, overridden_by, signals,
                policy_name, policy_version, policy_hash, real_user_status, credential_state, upgrade_result, degraded,
                evaluated_at, expires_at)
            SELECT ?1, t.id, ?3, (SELECT g.id FROM grants g WHERE g.id = ?4), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28
            FROM teams t WHERE t.id = ?2 AND t.removed_at IS NULL
            ON CONFLICT (decision_id) DO NOTHING
            """,
            [
                .text(record.id), .integer(record.teamNumber), .text(record.clientID), .optional(record.grantNumber),
                .optional(record.appAccountMark), .text(record.claimedEvent), .text(record.event), .text(record.decision),
                words(record.challenges), words(record.reasons), words(record.wireReasons), words(record.asked),
                words(record.skips), words(record.waived), words(record.missing), words(record.errors), words(record.shadow),
                .optional(record.overriddenBy), .text(record.signals), .text(record.policyName), .text(record.policyVersion),
                .text(record.policyHash), .optional(record.realUserStatus.map(Int64.init)), .text(record.credentialState),
                .optional(record.upgradeResult), .bool(record.isDegraded), .integer(record.evaluatedAt),
                .integer(record.expiresAt),
            ])
    }

    /// A decision by its id, with what came of it.
    func decision(_ id: String, team: Int64?) throws -> LoggedDecision? {
        guard let row = try row(DecisionRepository.select + " WHERE d.decision_id = ?1", [.text(id)]) else { return nil }
        let decision = try DecisionRepository.logged(row: row)
        guard team == nil || decision.record.teamNumber == team else { return nil }
        return try withChecks(decision)
    }

    /// The same decision with its checks.
    func withChecks(_ decision: LoggedDecision) throws -> LoggedDecision {
        // Without a challenge there is nothing to look for: most decisions.
        guard !decision.record.challenges.isEmpty else { return decision }
        return LoggedDecision(
            number: decision.number, record: decision.record, teamID: decision.teamID, label: decision.label,
            labelledAt: decision.labelledAt, checks: try checks(decision: decision.record.id))
    }

    /// What was reported of a decision's challenges.
    func checks(decision id: String) throws -> [CheckRecord] {
        try rows(
            "SELECT challenge, initiated_at, passed_at, failed_at FROM checks WHERE decision_id = ?1 ORDER BY challenge",
            [.text(id)]
        ).map { row in
            CheckRecord(
                challenge: try row.text(0), initiatedAt: try row.integer(1), passedAt: try row.optionalInteger(2),
                failedAt: try row.optionalInteger(3))
        }
    }
}
