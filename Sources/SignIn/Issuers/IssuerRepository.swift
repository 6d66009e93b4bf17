// Issuers of identity tokens, and the last good keys of each.

import Accounts
import Database

/// Registers issuers and keeps the keys fetched from them.
package struct IssuerRepository: Sendable {
    /// A larger list would be more than an operator can oversee.
    package static let maximumCount = 100

    let database: any Database

    /// Adds an issuer. Refused if its name or `iss` is in use.
    package func add(_ issuer: Issuer, _ change: Change) throws(StoreFailure) -> Issuer {
        let name = try Identifier.checked(issuer.name, "an issuer's name")
        return try database.write(.durable) { connection throws(StoreFailure) in
            guard
                try connection.value("SELECT COUNT(*) AS count FROM issuers") ?? 0
                    < Self.maximumCount
            else {
                throw .refused(
                    .limit, "there are \(Self.maximumCount) issuers, which is the maximum")
            }
            let row = try connection.row(
                """
                INSERT INTO issuers (name, iss, source, location, allows_http, algorithms, nonce_form, leeway, created_at)
                VALUES (\(name), \(issuer.iss), \(issuer.source), \(issuer.location), \(issuer.allowsHTTP),
                    \(issuer.algorithms.joined(separator: ",")), \(issuer.nonceForm), \(issuer.leeway), \(change.now))
                ON CONFLICT DO NOTHING RETURNING id
                """)
            guard row != nil else {
                let other: String? = try connection.value(
                    "SELECT name FROM issuers WHERE iss = \(issuer.iss)")
                throw .refused(
                    .exists,
                    other.map { "issuer \($0) already has this iss" }
                        ?? "issuer \(name) already exists")
            }
            try connection.audit(
                change, "issuer.add", "issuer:\(name)",
                "\(issuer.source.rawValue) \(issuer.algorithms.joined(separator: ","))")
            return try self.issuer(connection, name)
        }
    }

    /// All issuers by name.
    package func issuers() throws(StoreFailure) -> [Issuer] {
        try database.rows("\(Self.select) ORDER BY name").map(Issuer.init(row:))
    }

    /// The issuer with this name; throws `notFound`.
    package func issuer(_ name: String) throws(StoreFailure) -> Issuer {
        try database.read { connection throws(StoreFailure) in try issuer(connection, name) }
    }

    /// Removes an issuer and its stored keys.
    package func remove(_ name: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let issuer = try issuer(connection, name)
            guard try !configured(connection).contains(issuer.name) else {
                throw .refused(
                    .unmet,
                    "issuer \(issuer.name) is configured in postern.yaml: remove it there, under issuers"
                )
            }
            try connection.run("DELETE FROM issuer_keys WHERE issuer_id = \(issuer.number)")
            try connection.run("DELETE FROM issuer_polls WHERE issuer = \(issuer.name)")
            try connection.run("DELETE FROM issuers WHERE id = \(issuer.number)")
            try connection.audit(change, "issuer.remove", "issuer:\(issuer.name)")
        }
    }

    // MARK: Configured issuers

    /// The names of the issuers in the configuration; the others were added by command.
    package func configured() throws(StoreFailure) -> Set<String> { try database.read(configured) }

    private func configured(
        _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> Set<String> {
        let value: String? = try connection.value(
            "SELECT value FROM settings WHERE name = \(Self.configuredSetting)")
        return Set((value ?? "").split(separator: " ").map(String.init))
    }

    private static let configuredSetting = "issuers.configured"

    /// Updates the store's issuers to those of the configuration: adds, changes and removes
    /// configured issuers, and leaves those added by command. Writes only if something
    /// differs. Throws `exists` for a name or an `iss` that was added by command: each
    /// issuer is defined in one place.
    package func configure(_ wanted: [Issuer], _ change: Change) throws(StoreFailure) {
        let wanted = try wanted.map { issuer throws(StoreFailure) in
            _ = try Identifier.checked(issuer.name, "an issuer's name")
            return issuer
        }
        let isSettled = try database.read { connection throws(StoreFailure) in
            let present = try connection.rows(Self.select).map(Issuer.init(row:))
            return try configured(connection) == Set(wanted.map(\.name))
                && wanted.allSatisfy { issuer in present.contains { $0.isSame(as: issuer) } }
        }
        guard !isSettled else { return }
        try database.write(.durable) { connection throws(StoreFailure) in
            let old = try configured(connection)
            let names = Set(wanted.map(\.name))
            for name in old.subtracting(names).sorted() {
                try connection.run(
                    "DELETE FROM issuer_keys WHERE issuer_id IN (SELECT id FROM issuers WHERE name = \(name))"
                )
                try connection.run("DELETE FROM issuers WHERE name = \(name)")
                try connection.audit(change, "issuer.remove", "issuer:\(name)", "postern.yaml")
            }
            for issuer in wanted {
                let present = try connection.rows(
                    "\(Self.select) WHERE name = \(issuer.name) OR iss = \(issuer.iss)"
                ).map(Issuer.init(row:))
                if let other = present.first(where: {
                    !old.contains($0.name) || ($0.name != issuer.name && names.contains($0.name))
                }) {
                    throw .refused(
                        .exists,
                        old.contains(other.name)
                            ? "issuers \(other.name) and \(issuer.name) of postern.yaml have the same iss"
                            : "issuer \(issuer.name) is configured in postern.yaml, and issuer \(other.name) with the same name or iss was added by "
                                + "command: remove it from the file, run postern issuer remove \(other.name) --yes, and add it again"
                    )
                }
                if present.contains(where: { $0.isSame(as: issuer) }) { continue }
                try replace(connection, present, by: issuer, now: change.now)
                try connection.audit(
                    change, present.isEmpty ? "issuer.add" : "issuer.change",
                    "issuer:\(issuer.name)",
                    "postern.yaml \(issuer.source.rawValue) \(issuer.algorithms.joined(separator: ","))"
                )
            }
            try connection.run(
                """
                INSERT INTO settings (name, value) VALUES (\(Self.configuredSetting), \(names.sorted().joined(separator: " ")))
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """)
        }
    }

    /// The stored keys of a changed issuer are deleted, because they do not belong to the new one.
    private func replace(
        _ connection: any DatabaseConnection, _ old: [Issuer], by issuer: Issuer, now: Int64
    ) throws(StoreFailure) {
        for issuer in old {
            try connection.run("DELETE FROM issuer_keys WHERE issuer_id = \(issuer.number)")
            try connection.run("DELETE FROM issuers WHERE id = \(issuer.number)")
        }
        try connection.run(
            """
            INSERT INTO issuers (name, iss, source, location, allows_http, algorithms, nonce_form, leeway, created_at)
            VALUES (\(issuer.name), \(issuer.iss), \(issuer.source), \(issuer.location), \(issuer.allowsHTTP),
                \(issuer.algorithms.joined(separator: ",")), \(issuer.nonceForm), \(issuer.leeway),
                \(old.first?.createdAt ?? now))
            """)
    }

    /// The stored keys of an issuer, if they came from this source.
    package func keys(of name: String, location: String) throws(StoreFailure) -> IssuerKeys? {
        try database.row(
            """
            SELECT k.document, k.fetched_at, k.fresh_until FROM issuer_keys k JOIN issuers i ON i.id = k.issuer_id
            WHERE i.name = \(name) AND i.location = \(location)
            """
        ).map { row throws(StoreFailure) in
            try IssuerKeys(
                document: row["document"], fetchedAt: row["fetched_at"],
                freshUntil: row["fresh_until"])
        }
    }

    /// Stores the keys of an issuer, unless newer keys are stored or the issuer's source has
    /// changed.
    package func keep(_ keys: IssuerKeys, of name: String, location: String) throws(StoreFailure) {
        _ = try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO issuer_keys (issuer_id, document, fetched_at, fresh_until)
                SELECT id, \(keys.document), \(keys.fetchedAt), \(keys.freshUntil) FROM issuers
                WHERE name = \(name) AND location = \(location)
                ON CONFLICT (issuer_id) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at,
                    fresh_until = excluded.fresh_until
                WHERE issuer_keys.fetched_at <= excluded.fetched_at
                """)
        }
    }

    private static let select: SQL =
        "SELECT id, name, iss, source, location, allows_http, algorithms, nonce_form, leeway, created_at FROM issuers"

    private func issuer(
        _ connection: any DatabaseConnection, _ name: String
    ) throws(StoreFailure) -> Issuer {
        guard let row = try connection.row("\(Self.select) WHERE name = \(name)") else {
            throw .refused(.notFound, "there is no issuer \(name): see postern issuer list")
        }
        return try Issuer(row: row)
    }
}

extension Issuer {
    /// From the columns of `IssuerRepository.select`.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        let algorithms: String = try row["algorithms"]
        try self.init(
            number: row["id"], name: row["name"], iss: row["iss"], source: row["source"],
            location: row["location"],
            allowsHTTP: row["allows_http"],
            algorithms: algorithms.split(separator: ",").map(String.init),
            nonceForm: row["nonce_form"], leeway: row["leeway"], createdAt: row["created_at"])
    }
}

extension Issuer {
    /// Whether both are equal apart from number and age.
    fileprivate func isSame(as other: Issuer) -> Bool {
        name == other.name && iss == other.iss && source == other.source
            && location == other.location
            && allowsHTTP == other.allowsHTTP && algorithms == other.algorithms
            && nonceForm == other.nonceForm
            && leeway == other.leeway
    }
}
