// How long data is kept: the settings of this installation, or the standard.

import Database

package struct RetentionRepository: Sendable {
    let database: any Database

    package init(database: any Database) { self.database = database }

    /// Every kind of data.
    package func all() throws(StoreFailure) -> [Retention] {
        try database.read { connection throws(StoreFailure) in
            try DataClass.all.map { data throws(StoreFailure) in
                Retention(dataClass: data, days: try days(data, connection))
            }
        }
    }

    /// Days for which one kind is kept.
    package func days(_ dataClass: DataClass) throws(StoreFailure) -> Int {
        try database.read { connection throws(StoreFailure) in try days(dataClass, connection) }
    }

    private func days(
        _ dataClass: DataClass, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Int {
        let value: String? = try connection.value(
            "SELECT value FROM settings WHERE name = \(Self.setting(dataClass))")
        return value.flatMap { Int($0) } ?? dataClass.standardDays
    }

    /// Sets how long a kind is kept; older data is deleted by the next housekeeping.
    package func set(_ name: String, days: Int, _ change: Change) throws(StoreFailure) -> Retention
    {
        guard let dataClass = DataClass.all.first(where: { $0.name == name }) else {
            throw .refused(
                .notFound,
                "\(name.prefix(64)) is not a kind of data: the kinds are \(DataClass.all.map(\.name).joined(separator: ", "))"
            )
        }
        guard dataClass.range.contains(days) else {
            throw .refused(
                .invalid,
                "\(name) must be kept for \(dataClass.range.lowerBound) to \(dataClass.range.upperBound) days"
            )
        }
        return try database.write(.durable) { connection throws(StoreFailure) in
            let old = try self.days(dataClass, connection)
            try connection.run(
                """
                INSERT INTO settings (name, value) VALUES (\(Self.setting(dataClass)), \("\(days)")) ON CONFLICT (name)
                DO UPDATE SET value = excluded.value
                """)
            try connection.audit(change, "retention.set", "data:\(name)", "\(old) to \(days) days")
            return Retention(dataClass: dataClass, days: days)
        }
    }

    private static func setting(_ dataClass: DataClass) -> String { "retention.\(dataClass.name)" }
}

extension AuditRepository {
    /// Deletes lines from before a time, at most `limit`. Returns the number.
    package func deleteExpired(before time: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.deletePast(.audit, where: "x.at < \(time)", limit: limit)
        }
    }
}
