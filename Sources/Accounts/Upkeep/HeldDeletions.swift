// The only place that deletes rows which a hold can keep, and rows with which the database would
// delete or detach such rows. `HeldDeletionTests` reads that no other file does.

import Database

extension DatabaseConnection {
    /// Deletes rows of a table that are past their retention and that no hold keeps.
    /// - Parameters:
    ///   - isPast: the condition for a row `x`.
    ///   - order: the column by which to begin; nil for any order.
    ///   - limit: the most rows that are deleted.
    /// - Returns: the number.
    package func deletePast(
        _ table: HeldTable, where isPast: SQL, from order: String? = nil, limit: Int
    ) throws(StoreFailure) -> Int {
        try run(deletion(table, where: isPast, from: order, limit: limit))
    }

    /// As `deletePast`, for rows whose content goes elsewhere.
    /// - Returns: the rows that were deleted.
    func takePast(
        _ table: HeldTable, where isPast: SQL, limit: Int
    ) throws(StoreFailure) -> [SQLRow] {
        try rows("\(deletion(table, where: isPast, from: nil, limit: limit)) RETURNING *")
    }

    private func deletion(
        _ table: HeldTable, where isPast: SQL, from order: String?, limit: Int
    ) throws(StoreFailure) -> SQL {
        let key = table.comparedKey
        let isFree = try isFree(table)
        let ordered: SQL = order.map { "ORDER BY x.\(raw: $0)" } ?? ""
        return """
            DELETE FROM \(raw: table.name) WHERE (\(raw: key)) IN (SELECT \(raw: key)
                FROM \(raw: table.name) x WHERE \(isPast) AND \(isFree) \(ordered) LIMIT \(limit))
            """
    }

    /// Deletes an account with the rows that depend on it. The caller has deleted those that a hold
    /// can keep (`clearAccount`); an account of which some are left is detached instead.
    func deleteAccount(_ account: Int64) throws(StoreFailure) {
        try run("DELETE FROM accounts WHERE id = \(account)")
    }

    /// Deletes what the end of an account deletes at once although its other rows are held: rows of
    /// kinds that no hold keeps of it.
    /// - Parameter held: the kinds that holds keep of it.
    func deleteUnheld(ofAccount account: Int64, held: Set<String>) throws(StoreFailure) {
        guard !held.isEmpty else { return }
        if !held.contains(HeldTable.statusDecisions.data.name) {
            try run(
                """
                DELETE FROM status_decisions
                WHERE grant_id IN (SELECT id FROM grants WHERE account_id = \(account))
                """)
        }
        if !held.contains(HeldTable.uses.data.name) {
            try run("DELETE FROM uses_by_others WHERE account_id = \(account)")
        }
    }

    /// Ends a consent: its row is deleted, or is revoked and stays if a hold keeps its decisions or
    /// checks.
    func endConsent(_ grant: Int64, ofAccount account: Int64) throws(StoreFailure) {
        if HeldGrants.keeps(try heldData(ofAccount: account)) {
            try run(
                "UPDATE grants SET state = 'revoked', generation = generation + 1 WHERE id = \(grant)"
            )
        } else {
            try run("DELETE FROM grants WHERE id = \(grant)")
        }
    }

    /// Makes two consents of one account to one group of apps one: its decisions, checks and
    /// statuses go to the one that stays.
    func mergeConsent(_ other: Int64, into grant: Int64) throws(StoreFailure) {
        for table in [HeldTable.decisions, .statusDecisions, .checks] {
            try run(
                "UPDATE \(raw: table.name) SET grant_id = \(grant) WHERE grant_id = \(other)")
        }
        try run("DELETE FROM grants WHERE id = \(other)")
    }

    /// Deletes a user without accounts, and does nothing if one is left: its rows may be held.
    func deleteUser(_ user: Int64) throws(StoreFailure) {
        try run(
            """
            DELETE FROM users WHERE id = \(user)
                AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.user_id = \(user))
            """)
    }

    /// Deletes a removed team, unless rows are left that a hold keeps.
    /// - Returns: whether it was deleted.
    func deleteTeam(_ team: Int64) throws(StoreFailure) -> Bool {
        if try hasHold(), try hasHeldRows(ofTeam: team) { return false }
        // Pending events for endpoints of its apps still go there.
        try run(
            """
            UPDATE teams SET loses_apps = 0 WHERE loses_apps = 1
                AND NOT EXISTS (SELECT 1 FROM app_groups p WHERE p.removed_from IS NOT NULL AND p.team_id <> \(team))
            """)
        try run("DELETE FROM teams WHERE id = \(team)")
        return true
    }

    /// Whether rows of a removed team are left that the end of its row would delete.
    private func hasHeldRows(ofTeam team: Int64) throws(StoreFailure) -> Bool {
        if try !heldData(ofTeam: team).isEmpty { return true }
        return try row(
            """
            SELECT 1 AS found FROM teams t WHERE t.id = \(team)
                AND (EXISTS (SELECT 1 FROM decisions d WHERE d.team_id = t.id)
                OR EXISTS (SELECT 1 FROM grants g JOIN app_groups p ON p.id = g.group_id WHERE p.team_id = t.id))
            """) != nil
    }

    /// Records for each hold about an account that it is about another one too, to which a consent
    /// with its decisions and checks moves.
    func followHeld(from old: Int64, to new: Int64) throws(StoreFailure) {
        guard try hasHold() else { return }
        try run(
            """
            INSERT INTO held_accounts (hold_id, account_id)
            SELECT h.id, CAST(\(new) AS BIGINT) FROM holds h
            WHERE h.ended_at IS NULL AND \(HeldTable.isOfHold(account: "\(old)"))
                AND NOT \(HeldTable.isOfHold(account: "\(new)"))
                AND EXISTS (SELECT 1 FROM hold_data k
                    WHERE k.hold_id = h.id AND k.data IN \(list: HeldGrants.data))
            ON CONFLICT DO NOTHING
            """)
    }
}

/// Consents whose rows decisions and checks refer to.
enum HeldGrants {
    fileprivate static let data = [DataClass.decisions, .checks].map(\.name)

    /// Whether holds that keep these kinds of data of an account keep its consents.
    fileprivate static func keeps(_ held: Set<String>) -> Bool {
        data.contains(where: held.contains)
    }

    /// Whether a hold keeps the consents of an account.
    static func isHeld(_ account: SQL) -> SQL {
        """
        EXISTS (SELECT 1 FROM holds h JOIN hold_data k ON k.hold_id = h.id AND k.data IN \(list: data)
            WHERE h.ended_at IS NULL AND \(HeldTable.isOfHold(account: account)))
        """
    }
}
