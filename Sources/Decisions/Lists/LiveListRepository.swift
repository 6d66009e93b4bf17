// Lists that policies read: creating, changing and showing them. Reads by hosts are in
// LiveListRepository+Reading.

import Accounts
import CEL
import Database
import MailCrypto
import Support

/// Stores live lists. A team is given by its identifier, nil for the installation.
package struct LiveListRepository: Sendable {
    let database: any Database
    let marks: DecisionMarks

    // MARK: Lists

    /// Creates an empty list. Throws `invalid`, `exists`, `limit`, `notFound`.
    package func create(
        team id: String?, name: String, kind: LiveListKind, _ change: Change
    ) throws(StoreFailure) {
        let isName =
            (1...64).contains(name.utf8.count)
            && name.utf8.first.map { !(0x30...0x39).contains($0) } == true
            && name.utf8.allSatisfy {
                (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
                    || $0 == UInt8(ascii: "_")
            }
        guard isName else {
            throw .refused(
                .invalid,
                "a list's name is 1 to 64 letters, digits and _, and does not begin with a digit")
        }
        guard !ExpressionWords.isKeyword(name) else {
            throw .refused(
                .invalid,
                "\(name) is a word of conditions, in which lists.\(name) could not be written: choose another name"
            )
        }
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.listOwner(id)
            let revision = try connection.nextListRevision()
            guard try connection.liveList(team, name) == nil else {
                throw .refused(.exists, "list \(name) already exists")
            }
            let limit =
                team == nil ? LiveListLimits.listsOfInstallation : LiveListLimits.listsOfTeam
            let count: Int64 =
                try connection.value(
                    "SELECT COUNT(*) FROM live_lists WHERE removed_at IS NULL AND \(connection.isOf(team))"
                ) ?? 0
            guard count < limit else {
                throw .refused(.limit, "there are \(limit) lists, which is the maximum")
            }
            try connection.run(
                """
                INSERT INTO live_lists (team_id, name, kind, revision, created_at, changed_at)
                VALUES (\(team), \(name), \(kind.rawValue), \(revision), \(change.now), \(change.now))
                """)
            try connection.audit(change, "list.create", Self.subject(id, name), kind.rawValue)
        }
    }

    /// Lists of a team or of the installation, in alphabetical order.
    package func lists(team id: String?) throws(StoreFailure) -> [LiveList] {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.listOwner(id)
            return try connection.rows(
                "\(LiveList.select) AND \(connection.isOf(team)) ORDER BY name"
            ).map(LiveList.init(row:))
        }
    }

    /// One list. Throws `notFound`.
    package func list(team id: String?, name: String) throws(StoreFailure) -> LiveList {
        try database.read { connection throws(StoreFailure) in try connection.knownList(id, name) }
    }

    /// Removes a list: it is immediately empty for every policy that names it.
    /// `step` deletes its entries.
    package func removeList(team id: String?, name: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let revision = try connection.nextListRevision()
            let list = try connection.knownList(id, name)
            try connection.run(
                "UPDATE live_lists SET removed_at = \(change.now), revision = \(revision) WHERE id = \(list.number)"
            )
            try connection.audit(
                change, "list.remove-list", Self.subject(id, name),
                Count.text(Int(list.entries), "entry", "entries"))
        }
    }

    // MARK: Entries

    /// Adds entries; for an existing one, reason and expiry are replaced. Returns how many are new.
    /// - Parameter entries: at most `LiveListLimits.entriesOfChange`.
    /// - Throws: `invalid` for an entry that the list's kind cannot contain, `limit`, `notFound`.
    @discardableResult
    package func add(
        team id: String?, name: String, _ entries: [LiveListEntry], _ change: Change
    ) throws(StoreFailure) -> Int64 {
        try Self.checkCount(entries.count, "import a file instead")
        return try database.write(.durable) { connection throws(StoreFailure) in
            let revision = try connection.nextListRevision()
            let list = try connection.knownList(id, name)
            let rows = try rows(entries, list)
            let values = rows.map(\.value)
            let present: [String] = try connection.values(for: values) { keys in
                """
                SELECT value FROM live_list_entries
                WHERE list_id = \(list.number) AND generation = \(list.generation) AND removed_at IS NULL AND value IN \(keys)
                """
            }
            let added = Int64(rows.count - Set(present).count)
            try connection.checkRoom(list, list.entries + added)
            try connection.write(
                rows, list, generation: list.generation, revision: revision, change)
            try connection.touch(list, by: added, revision, change)
            try connection.audit(
                change, "list.add", Self.subject(id, name),
                Count.text(rows.count, "entry", "entries"))
            return added
        }
    }

    /// Removes entries; returns how many existed.
    /// - Parameter values: as written when they were added, or in their normal form.
    @discardableResult
    package func remove(
        team id: String?, name: String, _ values: [String], _ change: Change
    ) throws(StoreFailure) -> Int64 {
        try Self.checkCount(
            values.count, "remove them in several steps, or import a file with those that stay")
        return try database.write(.durable) { connection throws(StoreFailure) in
            let revision = try connection.nextListRevision()
            let list = try connection.knownList(id, name)
            let kept = try rows(values.map { LiveListEntry($0) }, list).map(\.value)
            let removed = Int64(
                try connection.run(for: kept) { keys in
                    """
                    UPDATE live_list_entries SET removed_at = \(change.now), revision = \(revision)
                    WHERE list_id = \(list.number) AND generation = \(list.generation) AND removed_at IS NULL AND value IN \(keys)
                    """
                })
            try connection.touch(list, by: -removed, revision, change)
            try connection.audit(
                change, "list.remove", Self.subject(id, name),
                Count.text(Int(removed), "entry", "entries"))
            return removed
        }
    }

    /// Some entries that are in force, in the order of their values.
    /// - Parameter after: entries begin after this value.
    package func entries(
        team id: String?, name: String, after: String = "", limit: Int, now: Int64
    ) throws(StoreFailure) -> [KeptListEntry] {
        try database.read { connection throws(StoreFailure) in
            let list = try connection.knownList(id, name)
            return try connection.rows(
                """
                SELECT value, reason, added_at, expires_at FROM live_list_entries
                WHERE list_id = \(list.number) AND generation = \(list.generation) AND value > \(after) AND removed_at IS NULL
                    AND (expires_at IS NULL OR expires_at > \(now))
                ORDER BY value LIMIT \(limit)
                """
            ).map { row throws(StoreFailure) in
                try KeptListEntry(
                    value: row["value"], reason: row["reason"], addedAt: row["added_at"],
                    expiresAt: row["expires_at"])
            }
        }
    }

    /// The entries in force that match a text: for a range the ranges that contain it, for a domain
    /// itself and its parents. Throws `invalid` for a text that no list of this kind could match.
    package func matching(
        team id: String?, name: String, _ text: String, now: Int64
    ) throws(StoreFailure) -> [KeptListEntry] {
        try database.read { connection throws(StoreFailure) in
            let list = try connection.knownList(id, name)
            let normal = try Self.normal(LiveListEntry(text), list.kind)
            let values =
                list.kind == .personal
                ? [Self.mark(marks, list.team, normal)]
                : LiveListEntries.normalEntries(thatMatch: normal, list.kind)
            var found: [KeptListEntry] = []
            for value in values {
                let rows = try connection.rows(
                    """
                    SELECT value, reason, added_at, expires_at FROM live_list_entries
                    WHERE list_id = \(list.number) AND generation = \(list.generation) AND value = \(value) AND removed_at IS NULL
                        AND (expires_at IS NULL OR expires_at > \(now))
                    """)
                for row in rows {
                    found.append(
                        try KeptListEntry(
                            value: row["value"], reason: row["reason"], addedAt: row["added_at"],
                            expiresAt: row["expires_at"]))
                }
            }
            return found
        }
    }

    /// Number of entries of a list that have ended and are not deleted yet.
    package func ended(_ list: LiveList, now: Int64) throws(StoreFailure) -> Int64 {
        try database.read { connection throws(StoreFailure) in
            try connection.value(
                """
                SELECT COUNT(*) FROM live_list_entries
                WHERE list_id = \(list.number) AND generation = \(list.generation) AND expires_at <= \(now) AND removed_at IS NULL
                """) ?? 0
        }
    }

    // MARK: Forms

    static func subject(_ team: String?, _ name: String) -> String {
        team.map { "list:\($0)/\(name)" } ?? "list:\(name)"
    }

    private static func checkCount(_ count: Int, _ remedy: String) throws(StoreFailure) {
        guard count <= LiveListLimits.entriesOfChange else {
            throw .refused(
                .limit, "a change has at most \(LiveListLimits.entriesOfChange) entries: \(remedy)")
        }
    }

    /// Entries as stored; of equal values, the last one counts. Messages never
    /// contain a personal value.
    func rows(_ entries: [LiveListEntry], _ list: LiveList) throws(StoreFailure) -> [LiveListEntry]
    {
        // Two values that look alike are two entries: they are compared by octets.
        var rows: [ExactString: LiveListEntry] = [:]
        for entry in entries {
            let normal = try Self.normal(entry, list.kind)
            let value = list.kind == .personal ? Self.mark(marks, list.team, normal) : normal
            rows[ExactString(value)] = LiveListEntry(
                value, reason: entry.reason, expiresAt: entry.expiresAt)
        }
        return rows.values.sorted { $0.value < $1.value }
    }

    /// The entry's value in its normal form. Throws a refusal for a value that a list of this kind
    /// cannot contain.
    static func normal(_ entry: LiveListEntry, _ kind: LiveListKind) throws(StoreFailure) -> String
    {
        let shown =
            kind == .personal || entry.value.utf8.contains(UInt8(ascii: "@"))
            ? "the value" : "'\(PersonText.cleaned(Self.beginning(entry.value)).text)'"
        guard PersonText.isPlain(entry.value), PersonText.isPlain(entry.reason) else {
            throw .refused(
                .invalid,
                "\(shown) or its reason has invisible characters, such as a tab or a line break")
        }
        guard entry.value.utf8.count <= LiveListLimits.valueOctets else {
            throw .refused(
                .limit,
                "\(shown) is longer than \(LiveListLimits.valueOctets) octets, which is the maximum"
            )
        }
        guard entry.reason.utf8.count <= LiveListLimits.reasonOctets else {
            throw .refused(
                .limit,
                "the reason of \(shown) is longer than \(LiveListLimits.reasonOctets) octets")
        }
        let at = UInt8(ascii: "@")
        guard !entry.value.utf8.contains(at) || kind == .personal, !entry.reason.utf8.contains(at)
        else {
            throw .refused(
                .invalid, "email addresses belong in a list of kind personal, and not in a reason")
        }
        guard let normal = LiveListEntries.normal(entry.value, kind) else {
            throw .refused(
                .invalid,
                "\(shown) cannot be an entry of a list of kind \(kind.rawValue): \(kind.hint)")
        }
        return normal
    }

    /// The first 64 scalars of a text, at most.
    private static func beginning(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(64)))
    }

    /// The mark of a personal value in its normal form, as it is stored.
    static func mark(_ marks: DecisionMarks, _ team: Int64?, _ normal: String) -> String {
        String(decoding: Base32.encode(marks.listed(team: team ?? 0, value: normal)), as: UTF8.self)
    }
}
