// Events that Postern gave up: the teams that have to act, and the number of events.

import Database

/// The events of one team that Postern gave up.
package struct ParkedEvents: Sendable, Hashable {
    /// The team's identifier.
    package let team: String
    package let events: Int
}

extension ParkedEvents {
    /// The events that can still be sent again, by team.
    package static func all(_ database: any Database) throws(StoreFailure) -> [ParkedEvents] {
        try database.rows(
            """
            SELECT t.handle, CAST(SUM(p.events) AS BIGINT) AS events FROM (
                SELECT COALESCE(e.group_id, e.stream_group) AS group_id,
                    (SELECT COUNT(*) FROM outbox o WHERE o.endpoint_id = e.id AND o.state = 'parked') AS events
                FROM event_endpoints e WHERE e.removed_at IS NULL) p
            JOIN app_groups g ON g.id = p.group_id JOIN teams t ON t.id = g.team_id
            WHERE p.events > 0 GROUP BY t.handle ORDER BY t.handle
            """
        ).map { row throws(StoreFailure) in
            try ParkedEvents(team: row["handle"], events: row["events"])
        }
    }
}
