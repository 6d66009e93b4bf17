// How long data is kept: settings of this installation, the standard where there is none.

package struct RetentionRepository: Sendable {
    let database: any Database

    /// Every kind of data.
    package func all() throws -> [Retention] {
        try database.read { connection in
            try DataClass.all.map { Retention(dataClass: $0, days: try days($0, connection)) }
        }
    }

    /// Days for which one kind is kept.
    package func days(_ dataClass: DataClass) throws -> Int { try database.read { try days(dataClass, $0) } }

    private func days(_ dataClass: DataClass, _ connection: any DatabaseConnection) throws -> Int {
        let row = try connection.row("SELECT value FROM settings WHERE name = ?1", [.text(Self.setting(dataClass))])
        return try row.flatMap { Int(try $0.text(0)) } ?? dataClass.standardDays
    }

    /// Sets how long a kind is kept; what is older goes with the next housekeeping.
    package func set(_ name: String, days: Int, _ change: Change) throws -> Retention {
        guard let dataClass = DataClass.all.first(where: { $0.name == name }) else {
            throw StoreRefusal(
                .notFound,
                "\(name.prefix(64)) is not a kind of data: the kinds are \(DataClass.all.map(\.name).joined(separator: ", "))")
        }
        guard dataClass.range.contains(days) else {
            throw StoreRefusal(
                .invalid, "\(name) must be kept for \(dataClass.range.lowerBound) to \(dataClass.range.upperBound) days")
        }
        return try database.write(.durable) { connection in
            let old = try self.days(dataClass, connection)
            try connection.run(
                "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [.text(Self.setting(dataClass)), .text("\(days)")])
            try connection.audit(change, "retention.set", "data:\(name)", "\(old) to \(days) days")
            return Retention(dataClass: dataClass, days: days)
        }
    }

    private static func setting(_ dataClass: DataClass) -> String { "retention.\(dataClass.name)" }
}

extension AuditRepository {
    /// Deletes lines from before a time, at most `limit`; how many.
    package func deleteExpired(before time: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 LIMIT ?2)",
                [.integer(time), .integer(Int64(limit))])
        }
    }

    /// The newest entries first, at most `limit`.
    /// - Parameters:
    ///   - since: seconds since 1970.
    ///   - actor: exactly, or the beginning where it ends in `*`; nil for all. Likewise `action`.
    package func entries(since: Int64, actor: String?, action: String?, limit: Int) throws -> [AuditEntry] {
        var conditions = ["at >= ?1"]
        var arguments: [SQLValue] = [.integer(since)]
        for (column, text) in [("actor", actor), ("action", action)] {
            guard let text else { continue }
            arguments.append(.text(text.hasSuffix("*") ? String(text.dropLast()) : text))
            let place = "?\(arguments.count)"
            conditions.append(text.hasSuffix("*") ? "SUBSTR(\(column), 1, LENGTH(\(place))) = \(place)" : "\(column) = \(place)")
        }
        arguments.append(.integer(Int64(limit)))
        let sql =
            "SELECT id, at, actor, action, subject, detail FROM audit WHERE " + conditions.joined(separator: " AND ")
            + " ORDER BY id DESC LIMIT ?\(arguments.count)"
        return try database.read { connection in
            try connection.rows(sql, arguments).map {
                AuditEntry(
                    number: try $0.integer(0), at: try $0.integer(1), actor: try $0.text(2), action: try $0.text(3),
                    subject: try $0.text(4), detail: try $0.text(5))
            }
        }
    }
}
