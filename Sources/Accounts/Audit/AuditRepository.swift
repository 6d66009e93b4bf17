// The audit: written in the transaction of each change.

import Database

/// Reads the audit.
package struct AuditRepository: Sendable {
    let database: any Database

    /// The newest entries first, at most `limit`.
    package func entries(limit: Int = 100) throws(StoreFailure) -> [AuditEntry] {
        try database.rows("SELECT id, at, actor, action, subject, detail FROM audit ORDER BY id DESC LIMIT \(limit)").map {
            row throws(StoreFailure) in
            try AuditEntry(
                number: row["id"], at: row["at"], actor: row["actor"], action: row["action"], subject: row["subject"],
                detail: row["detail"])
        }
    }
}

extension DatabaseConnection {
    /// Writes a line of the audit. `subject` and `detail` hold identifiers only.
    package func audit(_ change: Change, _ action: String, _ subject: String, _ detail: String = "") throws(StoreFailure) {
        try run(
            """
            INSERT INTO audit (at, actor, action, subject, detail)
            VALUES (\(change.now), \(change.actor), \(action), \(subject), \(detail))
            """)
    }

    /// Writes lines of the audit.
    package func audit(_ change: Change, _ lines: [(action: String, subject: String, detail: String)]) throws(StoreFailure) {
        try insert(
            lines.map { [change.now, change.actor, $0.action, $0.subject, $0.detail] },
            into: "audit (at, actor, action, subject, detail)")
    }
}
