// The audit: written in the transaction of each change.

/// Reads the audit.
package struct AuditRepository: Sendable {
    let database: any Database

    /// The newest entries first, at most `limit`.
    package func entries(limit: Int = 100) throws -> [AuditEntry] {
        try database.read { connection in
            try connection.rows(
                "SELECT id, at, actor, action, subject, detail FROM audit ORDER BY id DESC LIMIT ?1", [.integer(Int64(limit))]
            ).map {
                AuditEntry(
                    number: try $0.integer(0), at: try $0.integer(1), actor: try $0.text(2), action: try $0.text(3),
                    subject: try $0.text(4), detail: try $0.text(5))
            }
        }
    }
}

extension DatabaseConnection {
    /// Writes a line of the audit. `subject` and `detail` hold identifiers only.
    func audit(_ change: Change, _ action: String, _ subject: String, _ detail: String = "") throws {
        try run(
            "INSERT INTO audit (at, actor, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
            [.integer(change.now), .text(change.actor), .text(action), .text(subject), .text(detail)])
    }
}
