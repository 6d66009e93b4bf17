// How an app is shown to people: a name and an icon that the operator gives.

import Database

/// A square picture of an app: PNG, 64 to 1,024 pixels, at most 200,000 octets.
package struct AppIcon: Sendable, Hashable {
    package let png: [UInt8]

    package static let maximumSize = 200_000
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let end: [UInt8] = [0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

    /// Reads signature, size and end (PNG, third edition, sections 5.2 and 11.2.1). Throws
    /// `refused` with the reason.
    package init(png: [UInt8]) throws(StoreFailure) {
        guard png.count >= 45, png.starts(with: Self.signature),
            Array(png[12..<16]) == Array("IHDR".utf8),
            Array(png.suffix(8)) == Self.end
        else { throw .refused(.invalid, "the icon must be a PNG file") }
        func number(_ place: Int) -> Int { png[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (width, height) = (number(16), number(20))
        guard width == height, (64...1_024).contains(width) else {
            throw .refused(
                .invalid,
                "the icon must be square, 64 to 1024 pixels; this one is \(width) × \(height)")
        }
        guard png.count <= Self.maximumSize else {
            throw .refused(
                .invalid, "the icon has \(png.count) octets; \(Self.maximumSize) is the most")
        }
        self.png = png
    }
}

extension AppRepository {
    /// Gives an app a name and an icon, or removes them.
    /// - Parameters:
    ///   - name: nil keeps the present name, empty removes it.
    ///   - icon: nil keeps the present icon, `.some(nil)` removes it.
    package func setAppearance(
        team id: String, clientID: String, name: String? = nil, icon: AppIcon?? = nil,
        _ change: Change
    ) throws(StoreFailure) {
        let checked = try name.map { name throws(StoreFailure) in
            name.isEmpty ? "" : try Identifier.checkedName(name)
        }
        try database.write(.durable) { connection throws(StoreFailure) in
            _ = try connection.appGroup(team: connection.team(id), clientID: clientID)
            if let checked {
                try connection.run(
                    "UPDATE apps SET name = \(checked.isEmpty ? nil : checked) WHERE client_id = \(clientID)"
                )
            }
            if let icon {
                try connection.run(
                    "UPDATE apps SET icon = \(icon?.png) WHERE client_id = \(clientID)")
            }
            let changed = [name == nil ? nil : "name", icon == nil ? nil : "icon"].compactMap(
                \.self
            ).joined(separator: " ")
            try connection.audit(change, "app.appearance", "team:\(id)", "\(clientID) \(changed)")
        }
    }

    /// The name, icon and team of an app for people; nil if the app does not exist.
    package func appearance(
        clientID: String
    ) throws(StoreFailure) -> (name: String?, hasIcon: Bool, teamName: String)? {
        try database.row(
            """
            SELECT a.name, CASE WHEN a.icon IS NULL THEN 0 ELSE 1 END AS has_icon, t.name AS team_name
            FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            JOIN teams t ON t.id = g.team_id AND t.removed_at IS NULL WHERE a.client_id = \(clientID)
            """
        ).map { row throws(StoreFailure) in try (row["name"], row["has_icon"], row["team_name"]) }
    }

    /// The PNG of an app's icon; nil if the app has none, or does not exist.
    package func icon(clientID: String) throws(StoreFailure) -> [UInt8]? {
        try database.row(
            """
            SELECT a.icon FROM apps a JOIN app_groups g ON g.id = a.group_id AND g.removed_from IS NULL
            WHERE a.client_id = \(clientID) AND a.icon IS NOT NULL
            """
        ).map { row throws(StoreFailure) in try row["icon"] }
    }
}
