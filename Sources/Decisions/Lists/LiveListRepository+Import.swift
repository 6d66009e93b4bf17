// Replaces a whole list in small transactions: its entries form a new generation, which is not read
// until it is complete.

import Accounts
import Database
import Support

/// An import in progress.
package struct LiveListImport: Sendable {
    let list: LiveList
    let team: String?
    let generation: Int64
    /// Number of entries written; a repeated value counts once.
    package fileprivate(set) var count: Int64 = 0
}

extension LiveListRepository {
    /// Begins to replace a list. Entries of an earlier unfinished import become unused.
    package func beginImport(team: String?, name: String) throws(StoreFailure) -> LiveListImport {
        try database.write(.durable) { connection throws(StoreFailure) in
            let list = try connection.knownList(team, name)
            try connection.run(
                "UPDATE live_lists SET staging = staging + 1 WHERE id = \(list.number)")
            return LiveListImport(list: list, team: team, generation: list.staging + 1)
        }
    }

    /// Throws a refusal for an entry that the list cannot contain.
    package func check(_ entry: LiveListEntry, _ running: LiveListImport) throws(StoreFailure) {
        _ = try Self.normal(entry, running.list.kind)
    }

    /// Writes more entries, at most `LiveListLimits.entriesOfChange`. Throws as `add` does, and
    /// `unmet` if another import began in the meantime.
    package func write(
        _ entries: [LiveListEntry], _ running: inout LiveListImport, _ change: Change
    ) throws(StoreFailure) {
        let rows = try rows(entries, running.list)
        let begun = running
        let added = try database.write(.relaxed) { connection throws(StoreFailure) -> Int64 in
            try connection.checkStaging(begun)
            let condition: SQL =
                "list_id = \(begun.list.number) AND generation = \(begun.generation)"
            let present: [String] = try connection.values(for: rows.map(\.value)) { keys in
                "SELECT value FROM live_list_entries WHERE \(condition) AND value IN \(keys)"
            }
            let added = Int64(rows.count - Set(present).count)
            try connection.checkRoom(begun.list, begun.count + added)
            try connection.write(
                rows, begun.list, generation: begun.generation, revision: 0, change)
            return added
        }
        running.count += added
    }

    /// Replaces the old entries by the new ones, in one step.
    package func finish(_ running: LiveListImport, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let revision = try connection.nextListRevision()
            try connection.checkStaging(running)
            try connection.run(
                """
                UPDATE live_lists SET generation = \(running.generation), entries = \(running.count), revision = \(revision),
                    changed_at = \(change.now) WHERE id = \(running.list.number)
                """)
            try connection.audit(
                change, "list.import", Self.subject(running.team, running.list.name),
                Count.text(Int(running.count), "entry", "entries"))
        }
    }

    /// Replaces all entries by these. All entries are checked before any is written; `step` deletes
    /// what a failed attempt has written.
    /// - Throws: as `add` and `write` do.
    package func replace(
        team: String?, name: String, _ entries: [LiveListEntry], _ change: Change
    ) throws(StoreFailure) {
        let known = try list(team: team, name: name)
        guard Int64(entries.count) <= known.maximumEntries else {
            throw .refused(.limit, "a list has at most \(known.maximumEntries) entries")
        }
        _ = try rows(entries, known)
        var running = try beginImport(team: team, name: name)
        do throws(StoreFailure) {
            var rest = entries[...]
            while !rest.isEmpty {
                try write(Array(rest.prefix(LiveListLimits.entriesOfChange)), &running, change)
                rest = rest.dropFirst(LiveListLimits.entriesOfChange)
            }
            try finish(running, change)
        } catch {
            try? abandon(running)
            throw error
        }
    }

    /// Abandons an import: its rows become unused.
    package func abandon(_ running: LiveListImport) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            _ = try connection.run(
                "UPDATE live_lists SET staging = staging + 1 WHERE id = \(running.list.number) AND staging = \(running.generation)"
            )
        }
    }

    // MARK: Cleaning up

    /// Deletes some rows that are not read: of removed lists, of other generations, and of expired
    /// and removed entries. Returns whether there were any. Transactions are small: call it until
    /// it returns false.
    package func step(now: Int64, rows: Int64 = 1_000) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let lists = try connection.rows(
                "SELECT id, generation, staging, removed_at FROM live_lists")
            for row in lists {
                let (list, removedAt): (Int64, Int64?) = try (row["id"], row["removed_at"])
                let (generation, staging): (Int64, Int64) = try (row["generation"], row["staging"])
                let unread: [SQL] =
                    removedAt != nil
                    ? ["generation >= 0"]
                    : [
                        "generation < \(generation)",
                        "generation > \(generation) AND generation < \(staging)",
                    ]
                for condition in unread {
                    let old: Int64? = try connection.value(
                        "SELECT MIN(generation) FROM live_list_entries WHERE list_id = \(list) AND \(condition)"
                    )
                    guard let old else { continue }
                    let part: SQL = "list_id = \(list) AND generation = \(old)"
                    try connection.run(
                        """
                        DELETE FROM live_list_entries WHERE \(part) AND value IN
                            (SELECT value FROM live_list_entries WHERE \(part) LIMIT \(rows))
                        """)
                    return true
                }
                if removedAt != nil {
                    try connection.run("DELETE FROM live_lists WHERE id = \(list)")
                    return true
                }
            }
            return try deleteEnded(connection, now: now, rows: rows)
        }
    }

    /// Hosts ignore expired entries by themselves, so their deletion needs no new revision.
    private func deleteEnded(
        _ connection: any DatabaseConnection, now: Int64, rows: Int64
    ) throws(StoreFailure) -> Bool {
        let before = now - LiveListLimits.removedFor
        let expired = try connection.rows(
            """
            SELECT e.list_id, e.generation, e.value FROM live_list_entries e JOIN live_lists l
                ON l.id = e.list_id AND l.generation = e.generation
            WHERE e.expires_at <= \(before) AND e.removed_at IS NULL LIMIT \(rows)
            """)
        for row in expired {
            let (list, generation, value): (Int64, Int64, String) = try (
                row["list_id"], row["generation"], row["value"]
            )
            try connection.run(
                "DELETE FROM live_list_entries WHERE list_id = \(list) AND generation = \(generation) AND value = \(value)"
            )
            try connection.run("UPDATE live_lists SET entries = entries - 1 WHERE id = \(list)")
        }
        let removed = try connection.rows(
            "SELECT list_id, generation, value FROM live_list_entries WHERE removed_at <= \(before) LIMIT \(rows)"
        )
        for row in removed {
            let (list, generation, value): (Int64, Int64, String) = try (
                row["list_id"], row["generation"], row["value"]
            )
            try connection.run(
                "DELETE FROM live_list_entries WHERE list_id = \(list) AND generation = \(generation) AND value = \(value)"
            )
        }
        return !expired.isEmpty || !removed.isEmpty
    }
}

extension DatabaseConnection {
    fileprivate func checkStaging(_ running: LiveListImport) throws(StoreFailure) {
        let staging: Int64? = try value(
            "SELECT staging FROM live_lists WHERE id = \(running.list.number) AND removed_at IS NULL"
        )
        guard staging == running.generation else {
            throw .refused(
                .overtaken,
                "another import of list \(running.list.name) began, or the list was removed: nothing was changed"
            )
        }
    }
}
