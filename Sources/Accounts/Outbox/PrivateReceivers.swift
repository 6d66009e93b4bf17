// Streams with a private receiver, created while `events.private_receivers` allowed them. They get
// no events while it does not.

import Database

package enum PrivateReceivers {
    /// The end of the stored reason why such a stream gets no events.
    package static let reason = "and events.private_receivers is no"
}

extension AccountEvents {
    /// The streams that fail for this reason, by `stream_id`, with their audience.
    package func forbiddenStreams() throws(StoreFailure) -> [(stream: String, audience: String)] {
        let pattern: String = "%" + PrivateReceivers.reason
        return try database.rows(
            """
            SELECT s.stream_id, e.audience FROM event_streams s
            JOIN event_endpoints e ON e.id = s.endpoint_id AND e.removed_at IS NULL
            JOIN endpoint_health h ON h.endpoint_id = e.id
            WHERE h.failures > 0 AND h.last_error LIKE \(pattern) ORDER BY s.stream_id
            """
        ).map { row throws(StoreFailure) in
            try (stream: row["stream_id"] as String, audience: row["audience"] as String)
        }
    }
}
