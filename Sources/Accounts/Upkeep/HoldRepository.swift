// Holds in the store: begun, changed and ended by an administrator, and ended by time.

import Database
import InternetMessage
import Support

/// Begins, lists and ends holds. Each has a line in the audit for its beginning, its changes and
/// its end.
package struct HoldRepository: Sendable {
    let addresses: AddressRepository
    private var database: any Database { addresses.events.database }

    /// Begins a hold. Throws `notFound` for an unknown target, `invalid` for terms outside their
    /// limits, and `limit` if too many are in force.
    package func add(
        _ target: HoldTarget, _ terms: HoldTerms, _ change: Change
    ) throws(StoreFailure) -> Hold {
        let possible = DataClass.all.filter { $0.scopes.contains(target.scope) }
        for data in terms.data where !possible.contains(data) {
            throw .refused(
                .invalid,
                "\(data.name) is not kept of \(target.scope == .address ? "an" : "a") \(target.scope.rawValue): there are \(possible.map(\.name).joined(separator: ", "))"
            )
        }
        let data = possible.filter { terms.data.isEmpty || terms.data.contains($0) }
        let reason = try AuditReason.checked(terms.reason)
        try Self.check(endsAt: terms.endsAt, now: change.now)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let count: Int64 =
                try connection.value("SELECT COUNT(*) FROM holds WHERE ended_at IS NULL") ?? 0
            guard count < HoldTerms.maximumHolds else {
                throw .refused(
                    .limit,
                    "\(HoldTerms.maximumHolds) holds are in force, which is the limit: end one first"
                )
            }
            let (number, subject) = try find(target, connection)
            let hold = try connection.inserted(
                """
                INSERT INTO holds (scope, target, subject, reason, is_confidential, created_at, ends_at)
                VALUES (\(target.scope), \(number), \(subject), \(reason), \(terms.isConfidential), \(change.now),
                    \(terms.endsAt)) RETURNING id
                """)
            for data in data {
                try connection.run(
                    "INSERT INTO hold_data (hold_id, data) VALUES (\(hold), \(data.name))")
            }
            try connection.audit(
                change, "hold.add", "hold:\(hold)",
                "\(subject) \(data.map(\.name).joined(separator: ",")) until \(UTCTime.text(terms.endsAt)): \(reason)"
            )
            return try self.hold(hold, connection)
        }
    }

    /// The number of the target, and how the audit names it.
    private func find(
        _ target: HoldTarget, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> (number: Int64, subject: String) {
        switch target {
        case .user(let id): return (try connection.userNumber(id), "user:\(id)")
        case .team(let id): return (try connection.team(id).number, "team:\(id)")
        case .address(let address):
            let account = try addresses.address(connection, address).account.number
            return (account, "account:\(account)")
        }
    }

    /// Gives a hold another end, another reason, or both. Throws `notFound` or `invalid`.
    package func change(
        _ number: Int64, endsAt: Int64?, reason: String?, _ change: Change
    ) throws(StoreFailure) -> Hold {
        if let endsAt { try Self.check(endsAt: endsAt, now: change.now) }
        let reason = try reason.map(AuditReason.checked)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let old = try hold(number, connection)
            let (end, why) = (endsAt ?? old.endsAt, reason ?? old.reason)
            try connection.run(
                "UPDATE holds SET ends_at = \(end), reason = \(why) WHERE id = \(number)")
            try connection.audit(
                change, "hold.change", "hold:\(number)",
                "until \(UTCTime.text(old.endsAt)) to \(UTCTime.text(end)): \(why)")
            return try hold(number, connection)
        }
    }

    /// Ends a hold now. What it alone kept is deleted by the next housekeeping. Throws `notFound`.
    package func end(_ number: Int64, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try end(hold(number, connection), connection, change)
        }
    }

    private func end(
        _ hold: Hold, _ connection: any DatabaseConnection, _ change: Change
    ) throws(StoreFailure) {
        try connection.run("UPDATE holds SET ended_at = \(change.now) WHERE id = \(hold.number)")
        // Their removal continues, and waits again if another hold keeps the rest.
        try connection.run("UPDATE teams SET waits_for_hold = 0 WHERE waits_for_hold = 1")
        try connection.audit(change, "hold.end", "hold:\(hold.number)", hold.subject)
    }

    /// Ends the holds whose time is over. Returns the number.
    package func endDue(now: Int64) throws(StoreFailure) -> Int {
        let isDue: SQL = "ended_at IS NULL AND ends_at <= \(now)"
        guard try database.row("SELECT id FROM holds WHERE \(isDue) LIMIT 1") != nil else {
            return 0
        }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let due: [Int64] = try connection.values("SELECT id FROM holds WHERE \(isDue)")
            for number in due {
                try end(hold(number, connection), connection, Change(actor: "serve", now: now))
            }
            return due.count
        }
    }

    /// Deletes rows of holds that ended, at most `limit`. Returns the number.
    package func deleteEnded(limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let count = try connection.run(
                """
                DELETE FROM held_accounts WHERE (account_id, hold_id) IN
                    (SELECT m.account_id, m.hold_id FROM held_accounts m JOIN holds h ON h.id = m.hold_id
                    WHERE h.ended_at IS NOT NULL LIMIT \(limit))
                """)
            if count < limit { try connection.run("DELETE FROM holds WHERE ended_at IS NOT NULL") }
            return count
        }
    }

    /// The holds in force, the next to end first.
    package func all() throws(StoreFailure) -> [Hold] {
        try database.read { connection throws(StoreFailure) in
            try connection.rows("\(Self.select) WHERE h.ended_at IS NULL ORDER BY h.ends_at, h.id")
                .map { row throws(StoreFailure) in try hold(row, connection) }
        }
    }

    /// A hold in force, or `notFound`.
    package func hold(_ number: Int64) throws(StoreFailure) -> Hold {
        try database.read { connection throws(StoreFailure) in try hold(number, connection) }
    }

    private static let select: SQL = """
        SELECT h.id, h.scope, h.subject, h.reason, h.is_confidential, h.created_at, h.ends_at,
            (SELECT COUNT(*) FROM held_accounts m WHERE m.hold_id = h.id AND NOT EXISTS (
                SELECT 1 FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                WHERE a.id = m.account_id)) AS deleted
        FROM holds h
        """

    private func hold(
        _ number: Int64, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Hold {
        let row = try connection.row(
            "\(Self.select) WHERE h.id = \(number) AND h.ended_at IS NULL")
        guard let row else {
            throw .refused(.notFound, "no hold \(number) is in force: see postern hold list")
        }
        return try hold(row, connection)
    }

    private func hold(
        _ row: SQLRow, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Hold {
        let number: Int64 = try row["id"]
        let names: [String] = try connection.values(
            "SELECT data FROM hold_data WHERE hold_id = \(number)")
        return try Hold(
            number: number, scope: row["scope"], subject: row["subject"],
            data: DataClass.all.filter { names.contains($0.name) }, reason: row["reason"],
            isConfidential: row["is_confidential"], createdAt: row["created_at"],
            endsAt: row["ends_at"], deletedAccounts: row["deleted"])
    }

    // MARK: The held rows

    /// A held row: its columns in the order of the table, without those that are NULL.
    package struct Record: Sendable {
        package let columns: [(name: String, value: SQLValue)]
        fileprivate let key: [SQLValue]
    }

    /// Rows that a hold keeps in a table, in the order of its key.
    /// - Parameter after: the row after which to continue; nil at the beginning.
    package func records(
        _ number: Int64, in table: HeldTable, after: Record? = nil, limit: Int
    ) throws(StoreFailure) -> [Record] {
        let names = table.key + table.others
        let key = table.key.map { "x.\($0)" }.joined(separator: ", ")
        let next: SQL = after.map { "(\(raw: key)) > \(list: $0.key)" } ?? "1 = 1"
        return try database.rows(
            """
            SELECT \(raw: names.map { "x.\($0)" }.joined(separator: ", ")) FROM \(raw: table.name) x
            WHERE \(next) AND EXISTS (SELECT 1 FROM holds h JOIN hold_data k ON k.hold_id = h.id
                AND k.data = \(table.data.name) WHERE h.id = \(number) AND h.ended_at IS NULL AND \(table.isOfHold))
            ORDER BY \(raw: key) LIMIT \(limit)
            """
        ).map { row in
            Record(
                columns: zip(names, row.values).filter { $0.1 != .null },
                key: Array(row.values[..<table.key.count]))
        }
    }

    // MARK: Limits

    private static func check(endsAt: Int64, now: Int64) throws(StoreFailure) {
        guard endsAt > now else {
            throw .refused(.invalid, "the end of a hold must be in the future")
        }
        guard endsAt <= now + Int64(HoldTerms.maximumDays) * 86_400 else {
            throw .refused(
                .invalid,
                "a hold ends after \(HoldTerms.maximumDays) days at the latest: extend it later with postern hold change"
            )
        }
    }
}
