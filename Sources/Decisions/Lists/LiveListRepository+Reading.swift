// The data that a host reads about live lists: whether anything changed, and the changes.

import CEL
import Database

/// An entry in a host's memory.
struct ReadListEntry: Sendable {
    let value: String
    let expiresAt: Int64?
    let isRemoved: Bool
}

extension LiveListRepository {
    /// Increases with every change of any list; 0 before the first.
    func revision() throws(StoreFailure) -> Int64 {
        try database.row("SELECT revision FROM live_list_revision").map {
            row throws(StoreFailure) in try row["revision"]
        } ?? 0
    }

    /// All lists.
    func heads() throws(StoreFailure) -> [LiveList] {
        try database.rows("\(LiveList.select) ORDER BY id").map(LiveList.init(row:))
    }

    /// Entries for each statement: some megabytes.
    private static let page = 5_000

    /// Reads all entries of a list except removed ones, page by page. Returns false if the list was
    /// replaced or removed during the read.
    func load(_ list: LiveList, _ take: ([ReadListEntry]) -> Void) throws(StoreFailure) -> Bool {
        var after = ""
        while true {
            let rows = try database.rows(
                """
                SELECT value, expires_at, removed_at FROM live_list_entries
                WHERE list_id = \(list.number) AND generation = \(list.generation) AND value > \(after) AND removed_at IS NULL
                ORDER BY value LIMIT \(Self.page)
                """
            ).map(Self.entry)
            take(rows)
            guard rows.count == Self.page, let last = rows.last else { break }
            after = last.value
        }
        // Old generations are deleted when a new one is in force.
        let present = try database.rows("\(LiveList.select) AND id = \(list.number)").map(
            LiveList.init(row:))
        return present.first?.generation == list.generation
    }

    /// The changes of a list after a revision.
    func changes(_ list: LiveList, after revision: Int64) throws(StoreFailure) -> [ReadListEntry] {
        try database.rows(
            """
            SELECT value, expires_at, removed_at FROM live_list_entries
            WHERE list_id = \(list.number) AND generation = \(list.generation) AND revision > \(revision)
            """
        ).map(Self.entry)
    }

    private static func entry(_ row: SQLRow) throws(StoreFailure) -> ReadListEntry {
        let removedAt: Int64? = try row["removed_at"]
        return try ReadListEntry(
            value: row["value"], expiresAt: row["expires_at"], isRemoved: removedAt != nil)
    }
}
