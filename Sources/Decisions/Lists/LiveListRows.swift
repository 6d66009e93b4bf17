// The rows of LiveListRepository, inside a transaction.

import Accounts
import Database

extension DatabaseConnection {
    /// The next revision. A transaction that changes a list calls it first. Other transactions then
    /// wait, so that revisions are in the order of the commits.
    func nextListRevision() throws(StoreFailure) -> Int64 {
        try inserted(
            """
            INSERT INTO live_list_revision (id, revision) VALUES (1, 1)
            ON CONFLICT (id) DO UPDATE SET revision = live_list_revision.revision + 1 RETURNING revision
            """)
    }

    /// The number of a team; nil for the installation.
    func listOwner(_ id: String?) throws(StoreFailure) -> Int64? {
        guard let id else { return nil }
        return try team(id).number
    }

    func isOf(_ team: Int64?) -> SQL {
        guard let team else { return "team_id IS NULL" }
        return "team_id = \(team)"
    }

    func liveList(_ team: Int64?, _ name: String) throws(StoreFailure) -> LiveList? {
        try row("\(LiveList.select) AND \(isOf(team)) AND name = \(name)").map {
            row throws(StoreFailure) in
            try LiveList(row: row)
        }
    }

    func knownList(_ team: String?, _ name: String) throws(StoreFailure) -> LiveList {
        guard let list = try liveList(listOwner(team), name) else {
            throw .refused(.notFound, "there is no list \(name)")
        }
        return list
    }

    func checkRoom(_ list: LiveList, _ count: Int64) throws(StoreFailure) {
        guard count <= list.maximumEntries else {
            throw .refused(.limit, "a list has at most \(list.maximumEntries) entries")
        }
    }

    /// Writes entries in their stored form.
    func write(
        _ rows: [LiveListEntry], _ list: LiveList, generation: Int64, revision: Int64,
        _ change: Change
    ) throws(StoreFailure) {
        try insert(
            rows.map {
                [list.number, generation, $0.value, $0.reason, change.now, $0.expiresAt, revision]
            },
            into:
                "live_list_entries (list_id, generation, value, reason, added_at, expires_at, revision)",
            """
            ON CONFLICT (list_id, generation, value) DO UPDATE SET reason = excluded.reason, expires_at = excluded.expires_at,
                added_at = excluded.added_at, removed_at = NULL, revision = excluded.revision
            """)
    }

    func touch(
        _ list: LiveList, by count: Int64, _ revision: Int64, _ change: Change
    ) throws(StoreFailure) {
        try run(
            """
            UPDATE live_lists SET entries = entries + \(count), revision = \(revision), changed_at = \(change.now)
            WHERE id = \(list.number)
            """)
    }
}
