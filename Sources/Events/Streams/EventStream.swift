// A stream of the Shared Signals Framework, through which a group of apps receives changes as
// security event tokens.

import Accounts
import Database
import SharedSignals
import Support

extension StreamStatus: SQLCodable {}

/// The properties of a stream that delivery needs.
package struct StreamState: Sendable, Hashable {
    /// `stream_id`.
    package let id: String
    /// Whether its receiver fetches the events (RFC 8936).
    package let isPolled: Bool
    package let status: StreamStatus

    /// From the columns `stream_id`, `is_polled` and `status`; nil if they are NULL.
    init?(row: SQLRow) throws(StoreFailure) {
        guard let id: String = try row["stream_id"] else { return nil }
        self.id = id
        (isPolled, status) = try (row["is_polled"], row["status"])
    }
}

/// A stream as its receiver configured it.
package struct EventStream: Sendable, Hashable {
    /// The endpoint in the store.
    package let number: Int64
    package let id: String
    /// The team that created the stream.
    package let teamID: String?
    /// `client_id` of the group's primary app, or the team's identifier if there is none.
    package let audience: String
    package let isPolled: Bool
    /// The URL to which SETs are pushed, or from which they are polled.
    package let url: String
    package let status: StreamStatus
    package let reason: String?
    /// Nil if the receiver named none: then it gets all events.
    package let requested: [String]?
    package let description: String?
    package let createdAt: Int64
    /// Events that wait, and events that were given up.
    package let pending: Int
    package let parked: Int

    /// `events_delivered`.
    package var delivered: [String] { StreamEvents.delivered(requested) }

    /// The stream configuration (SSF 1.0 section 8.1.1). The receiver's value for the Authorization
    /// field is never returned.
    /// - Parameter issuer: our own `iss`.
    package func configuration(issuer: String) -> JSONObject {
        func list(_ items: [String]) -> JSONValue { .array(items.map(JSONValue.string)) }
        var configuration: JSONObject = [
            "stream_id": .string(id), "iss": .string(issuer), "aud": .string(audience),
            "events_supported": list(EventType.supportedURIs),
        ]
        configuration["events_requested"] = requested.map(list)
        configuration["events_delivered"] = list(delivered)
        configuration["delivery"] = .object([
            "method": .string(isPolled ? StreamDelivery.pollMethod : StreamDelivery.pushMethod),
            "endpoint_url": .string(url),
        ])
        configuration["description"] = description.map(JSONValue.string)
        return configuration
    }

    /// The status (section 8.1.2).
    package var statusObject: JSONObject {
        var object: JSONObject = ["stream_id": .string(id), "status": .string(status.rawValue)]
        object["reason"] = reason.map(JSONValue.string)
        return object
    }
}

extension EventStream {
    /// The columns for `init(row:)`, from `event_streams s`, its endpoint `e` and
    /// the team `t` of the stream.
    static let select = select(
        pending:
            "(SELECT COUNT(*) FROM outbox o WHERE o.endpoint_id = e.id AND o.state = 'pending')",
        parked: "(SELECT COUNT(*) FROM outbox o WHERE o.endpoint_id = e.id AND o.state = 'parked')")
    /// Without the counts: receivers do not see them, and request streams often.
    static let uncounted = select(pending: "0", parked: "0")

    private static func select(pending: SQL, parked: SQL) -> SQL {
        """
        SELECT s.endpoint_id, s.stream_id, t.handle, e.audience, s.is_polled, e.url, s.status, s.reason, s.requested, s.description,
            s.created_at, \(pending) AS pending, \(parked) AS parked
        FROM event_streams s JOIN event_endpoints e ON e.id = s.endpoint_id AND e.removed_at IS NULL
        LEFT JOIN teams t ON t.id = s.team_id
        """
    }

    init(row: SQLRow) throws(StoreFailure) {
        let requested: [String]?
        do {
            requested = try (row["requested"] as String?).map { text in
                try StrictJSON.parse(Array(text.utf8), limit: text.utf8.count).array?.compactMap(
                    \.string) ?? []
            }
        } catch let failure as StoreFailure {
            throw failure
        } catch {
            throw .permanent(.unexpectedData, "what a stream requests cannot be read")
        }
        try self.init(
            number: row["endpoint_id"], id: row["stream_id"], teamID: row["handle"],
            audience: row["audience"],
            isPolled: row["is_polled"], url: row["url"], status: row["status"],
            reason: row["reason"], requested: requested,
            description: row["description"], createdAt: row["created_at"], pending: row["pending"],
            parked: row["parked"])
    }
}
