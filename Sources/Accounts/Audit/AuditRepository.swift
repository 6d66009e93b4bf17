// The audit: written in the transaction of each change.

import Database

/// Reads the audit.
package struct AuditRepository: Sendable {
    let database: any Database

    /// Lines that one statement reads at most: after years the table has millions.
    package static let range: Int64 = 10_000
    /// The longest time in seconds between a change's time and the writing of its line. An import
    /// uses its start as the time of all its lines.
    private static let longestChange: Int64 = 86_400

    private static let select: SQL = "SELECT id, at, actor, action, subject, detail FROM audit"

    /// Writes a line for an action that changes nothing else, for example when an administrator
    /// looks at an address.
    package func note(
        _ change: Change, _ action: String, _ subject: String, _ detail: String = ""
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.audit(change, action, subject, detail)
        }
    }

    /// The audit subjects of a user: the user, the user's present and former accounts as far as the
    /// audit names them, and their decisions.
    package func subjects(ofUser user: String) throws(StoreFailure) -> [String] {
        try database.read { connection throws(StoreFailure) in
            let present: [Int64] = try connection.values(
                "SELECT a.id FROM accounts a JOIN users u ON u.id = a.user_id WHERE u.handle = \(user) ORDER BY a.id LIMIT 500"
            )
            let beginning: String = "user:" + user
            let former: [String] = try connection.values(
                """
                SELECT DISTINCT subject FROM audit WHERE SUBSTR(subject, 1, 8) = 'account:'
                    AND (detail = \(beginning) OR SUBSTR(detail, 1, LENGTH(\(beginning)) + 1) = \(beginning + " ")) LIMIT 500
                """)
            let decisions: [String] = try connection.values(
                """
                SELECT DISTINCT l.subject FROM audit l JOIN decisions d ON d.decision_id = SUBSTR(l.subject, 10)
                    JOIN grants g ON g.id = d.grant_id JOIN accounts a ON a.id = g.account_id JOIN users u ON u.id = a.user_id
                WHERE SUBSTR(l.subject, 1, 9) = 'decision:' AND u.handle = \(user) LIMIT 500
                """)
            let accounts = present.map { "account:\($0)" }
            return [beginning] + accounts + former.filter { !accounts.contains($0) } + decisions
        }
    }

    /// The newest entries first, at most `limit`.
    package func entries(limit: Int = 100) throws(StoreFailure) -> [AuditEntry] {
        try database.rows("\(Self.select) ORDER BY id DESC LIMIT \(limit)").map(
            AuditEntry.init(row:))
    }

    /// Whether any entry has this action, or begins with it if it ends in `*`.
    package func hasAction(_ action: String) throws(StoreFailure) -> Bool {
        try database.row("SELECT id FROM audit WHERE \(Self.matching("action", action)) LIMIT 1")
            != nil
    }

    /// A condition: the column equals a text, or begins with it if the text ends in `*`.
    private static func matching(_ column: String, _ text: String) -> SQL {
        guard text.utf8.last == UInt8(ascii: "*") else { return "\(raw: column) = \(text)" }
        let beginning = String(decoding: text.utf8.dropLast(), as: UTF8.self)
        return "SUBSTR(\(raw: column), 1, LENGTH(\(beginning))) = \(beginning)"
    }

    /// Matching entries in a range of lines, the newest first, at most
    /// `limit`. A range may have none.
    /// - Parameters:
    ///   - since: seconds since 1970.
    ///   - actor: exact, or a prefix if it ends in `*`; nil for all. Likewise `action`.
    ///   - before: the number of the line before which to start; nil for the newest.
    ///   - range: how many entry numbers to read.
    /// - Returns: entries, and the number before which to continue; nil at the end.
    package func page(
        since: Int64 = 0, actor: String? = nil, action: String? = nil, subject: String? = nil,
        subjects: [String]? = nil,
        before: Int64? = nil, limit: Int, range: Int64 = range
    ) throws(StoreFailure) -> (rows: [AuditEntry], next: Int64?) {
        try database.read { connection throws(StoreFailure) in
            let ends = try connection.row(
                "SELECT (SELECT MIN(id) FROM audit) AS first, (SELECT MAX(id) FROM audit) AS last")
            guard let ends, let first: Int64 = try ends["first"], let last: Int64 = try ends["last"]
            else { return ([], nil) }
            let end = before ?? last + 1
            let start = end - range
            let inRange: SQL = "id >= \(start) AND id < \(end)"
            var conditions: [SQL] = [inRange, "at >= \(since)"]
            for (column, text) in [("actor", actor), ("action", action), ("subject", subject)] {
                if let text { conditions.append(Self.matching(column, text)) }
            }
            if let subjects {
                // Not a chain of ORs: SQLite accepts at most a thousand.
                let list = subjects.dropFirst().reduce("\(subjects.first ?? "")" as SQL) {
                    "\($0), \($1)"
                }
                conditions.append("subject IN (\(list))")
            }
            let found = try connection.rows(
                "\(Self.select) WHERE \(SQL.all(conditions)) ORDER BY id DESC LIMIT \(limit)"
            )
            .map(AuditEntry.init(row:))
            if found.count == limit { return (found, found.last?.number) }
            if found.isEmpty, since > 0 {
                let newest: Int64? = try connection.value(
                    "SELECT MAX(at) FROM (SELECT at FROM audit WHERE \(inRange) LIMIT \(range)) lines"
                )
                if let newest, newest < since - Self.longestChange { return ([], nil) }
            }
            return (found, start > first ? start : nil)
        }
    }
}

extension AuditEntry {
    /// From the columns of the table.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["id"], at: row["at"], actor: row["actor"], action: row["action"],
            subject: row["subject"],
            detail: row["detail"])
    }
}

extension DatabaseConnection {
    /// Writes a line of the audit. `subject` and `detail` hold identifiers only.
    package func audit(
        _ change: Change, _ action: String, _ subject: String, _ detail: String = ""
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO audit (at, actor, action, subject, detail)
            VALUES (\(change.now), \(change.actor), \(action), \(subject), \(detail))
            """)
    }

    /// Writes lines of the audit.
    package func audit(
        _ change: Change, _ lines: [(action: String, subject: String, detail: String)]
    ) throws(StoreFailure) {
        try insert(
            lines.map { [change.now, change.actor, $0.action, $0.subject, $0.detail] },
            into: "audit (at, actor, action, subject, detail)")
    }
}
