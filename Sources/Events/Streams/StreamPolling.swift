// Polled streams (RFC 8936): the events that a receiver accepted, and those that it gets next. All
// streams share the outbox.

import Accounts
import Database
import SharedSignals

/// The result of a poll.
package struct PollResult: Sendable {
    /// The first event of each account, in the order in which the events were written.
    package let events: [OutboxEvent]
    /// Whether there are more than these.
    package let hasMore: Bool
}

extension OutboxRepository {
    /// SETs in one response: about 100 kB.
    package static let pollLimit = 100

    /// Records which events a receiver accepted and refused. Repetitions, and events of other
    /// streams, change nothing. A refused SET is not sent again, unless the operator retries it.
    package func note(_ request: PollRequest, stream: EventStream, now: Int64) throws(StoreFailure)
    {
        guard !request.acknowledged.isEmpty || !request.refused.isEmpty else { return }
        let ofStream: SQL = "endpoint_id = \(stream.number) AND state = 'pending'"
        try database.write(.durable) { connection throws(StoreFailure) in
            for jti in request.acknowledged {
                try connection.run(
                    """
                    UPDATE outbox SET state = 'delivered', attempts = attempts + 1, last_attempt_at = \(now), ended_at = \(now),
                        last_error = NULL, email = NULL, detail = NULL
                    WHERE jti = \(jti) AND \(ofStream)
                    """)
            }
            for (jti, error) in request.refused {
                let reason = "the receiver refused it" + (error.map { " (\($0.rawValue))" } ?? "")
                try connection.run(
                    "\(Self.parking(now, error: reason)), attempts = attempts + 1 WHERE jti = \(jti) AND \(ofStream)"
                )
            }
            try connection.run(
                "UPDATE endpoint_health SET last_success_at = \(now) WHERE endpoint_id = \(stream.number)"
            )
        }
    }

    /// The events of the next poll response. An account's next event is sent only after the
    /// previous one was accepted. So no receiver gets them in another order, even if it ignores the
    /// order of an object's members.
    /// - Parameter limit: 0 for no events: then the result only says whether events wait.
    package func poll(_ stream: EventStream, limit: Int) throws(StoreFailure) -> PollResult {
        try database.read { connection throws(StoreFailure) in
            let isMoving = try streams.isMoving(connection, endpoint: stream.number)
            var events: [OutboxEvent] = []
            if limit > 0 {
                events =
                    isMoving
                    ? try heads(connection, stream.number, dueAt: .max, limit: limit)
                    : try ofItself(connection, stream.number, now: .max, limit: limit)
            }
            let ofStream: SQL = "endpoint_id = \(stream.number) AND state = 'pending'"
            let given = events.map(\.number)
            let more = try connection.row(
                """
                SELECT id FROM outbox WHERE \(ofStream) AND \(isMoving ? "1 = 1" : "account_id = 0" as SQL)
                ORDER BY account_id, id LIMIT 1 OFFSET \(given.count)
                """)
            return PollResult(events: events.sorted { $0.number < $1.number }, hasMore: more != nil)
        }
    }
}
