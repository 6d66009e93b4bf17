// The outbox: events wait in it until their endpoint has accepted them.

import Accounts
import Database
import MailCrypto
import Support

/// Finds due events and records the results.
package struct OutboxRepository: Sendable {
    /// After a success, earlier failed events are tried again at once, unless they were tried
    /// within this many seconds. Otherwise an event that its endpoint never accepts would be tried
    /// along with every other one.
    private static let wakeAfter: Int64 = 60
    /// Seconds for which delivered events are listed, and for which given-up ones can be retried.
    private static let keepsDelivered: Int64 = 7 * 86_400
    private static let keepsParked: Int64 = 30 * 86_400

    let database: any Database
    package let signal: OutboxSignal
    /// The data of streams, which other endpoints do not have.
    package let streams: StreamRepository

    // MARK: Delivery

    package var leases: LeaseRepository { LeaseRepository(database: database) }
    /// The lease for delivery, which one of all processes has.
    package static let lease = "events"

    /// The events that wait for delivery.
    package struct Backlog: Sendable, Hashable {
        package let events: Int
        /// When the oldest of them was written, in seconds since 1970.
        package let oldest: Int64?
        /// Whether all were counted; otherwise more events wait, and perhaps older ones.
        package let isWhole: Bool

        package init(events: Int, oldest: Int64?, isWhole: Bool) {
            (self.events, self.oldest, self.isWhole) = (events, oldest, isWhole)
        }
    }

    /// The maximum number of events that are counted each second; counting more would keep a
    /// processor busy.
    package static let counted = 2_000

    /// How many events wait for delivery by us, and since when the oldest does, of at most `limit`.
    /// Events that wait for a receiver's poll, or for a paused stream, depend on the receiver. They
    /// are not read, even if they are many.
    package func backlog(limit: Int = counted) throws(StoreFailure) -> Backlog {
        try database.read { connection throws(StoreFailure) in
            var (events, oldest) = (0, Int64?.none)
            // Endpoints with waiting events that accept all events now.
            let waiting: [Int64] = try connection.values(
                """
                SELECT e.id FROM event_endpoints e LEFT JOIN event_streams s ON s.endpoint_id = e.id
                WHERE e.removed_at IS NULL AND (s.endpoint_id IS NULL OR s.is_polled = 0 AND s.status = 'enabled')
                    AND \(OutboxPlaces.has(.pending)) ORDER BY e.id
                """)
            for endpoint in waiting where events < limit {
                let row = try connection.row(
                    """
                    SELECT COUNT(*) AS events, MIN(created_at) AS oldest FROM (SELECT created_at FROM outbox
                        WHERE endpoint_id = \(endpoint) AND state = 'pending' LIMIT \(limit - events)) w
                    """)
                guard let row, let first: Int64 = try row["oldest"] else { continue }
                events += try row["events"]
                oldest = min(oldest ?? first, first)
            }
            return Backlog(events: events, oldest: oldest, isWhole: events < limit)
        }
    }

    /// Endpoints with waiting events, except polled ones. For a stopped stream, only
    /// events about itself are sent.
    /// - Parameter isCounted: if false, `pending` and `parked` are 0, because counting takes long
    ///   if many wait.
    package func waitingEndpoints(isCounted: Bool = true) throws(StoreFailure) -> [EventEndpoint] {
        try database.rows(
            """
            \(isCounted ? EndpointRepository.select : EndpointRepository.uncounted)
            WHERE e.removed_at IS NULL AND (s.endpoint_id IS NULL OR s.is_polled = 0)
                AND (COALESCE(s.status, 'enabled') = 'enabled'
                    AND EXISTS (SELECT 1 FROM outbox w WHERE w.endpoint_id = e.id AND w.state = 'pending')
                    OR EXISTS (SELECT 1 FROM outbox w WHERE w.endpoint_id = e.id AND w.state = 'pending' AND w.account_id = 0))
            ORDER BY e.id
            """
        ).map(EventEndpoint.init(row:))
    }

    /// Records results of attempts, in the order in which they ended. If another process has the
    /// lease, writes nothing and returns false.
    package func recordResults(
        _ results: [DeliveryResult], under lease: Lease, now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            guard try connection.holds(lease) else { return false }
            try markDelivered(results.filter { $0.failure == nil }.map(\.event), connection, now)
            for result in results {
                if let failure = result.failure {
                    try markFailed(result.event, failure, connection, now)
                }
            }
            // Events that ended together are one result for their endpoint: the last one. A refused
            // event counts only if there is no other.
            for (endpoint, words) in Dictionary(grouping: results, by: \.event.endpointNumber)
                .sorted(by: { $0.key < $1.key })
            {
                let word = words.last { $0.failure?.isEndpoints != false }
                if let failure = word?.failure {
                    try noteFailure(of: endpoint, failure, connection)
                } else {
                    try noteAnswer(
                        of: endpoint, refusal: word == nil ? words.last?.failure?.reason : nil,
                        connection, now)
                }
            }
            return true
        }
    }

    private func markDelivered(
        _ events: [OutboxEvent], _ connection: any DatabaseConnection, _ now: Int64
    ) throws(StoreFailure) {
        try connection.run(for: events.map(\.number)) {
            """
            UPDATE outbox SET state = 'delivered', attempts = attempts + 1, last_attempt_at = \(now), ended_at = \(now),
                last_error = NULL, email = NULL, detail = NULL
            WHERE id IN \($0)
            """
        }
    }

    private func markFailed(
        _ event: OutboxEvent, _ failure: DeliveryFailure, _ connection: any DatabaseConnection,
        _ now: Int64
    ) throws(StoreFailure) {
        try connection.run(
            """
            UPDATE outbox SET attempts = attempts + 1, last_attempt_at = \(now), next_attempt_at = \(failure.retryEventAt),
                last_error = \(failure.reason)
            WHERE id = \(event.number) AND state = 'pending'
            """)
    }

    /// Records that the endpoint works, even if it refuses an event with a reason. After failures,
    /// some events that wait for it become due.
    private func noteAnswer(
        of endpoint: Int64, refusal reason: String?, _ connection: any DatabaseConnection,
        _ now: Int64
    ) throws(StoreFailure) {
        let row = try connection.row(
            "SELECT failures, retry_at, last_success_at FROM endpoint_health WHERE endpoint_id = \(endpoint)"
        )
        guard let row else { return }
        let (failures, retryAt, lastSuccess): (Int, Int64, Int64?) = try (
            row["failures"], row["retry_at"], row["last_success_at"]
        )
        // A refusal of an event that was sent before the failure says nothing about the time after
        // it.
        if reason != nil, failures == 0 || retryAt > now { return }
        let success = reason == nil ? now : lastSuccess
        guard failures > 0 || lastSuccess != success else { return }
        try connection.run(
            """
            UPDATE endpoint_health SET failures = 0, last_error = \(reason), last_success_at = \(success)
            WHERE endpoint_id = \(endpoint)
            """)
        if failures > 0 { try wake(connection, endpoint, now) }
    }

    @discardableResult
    private func wake(
        _ connection: any DatabaseConnection, _ endpoint: Int64, _ now: Int64
    ) throws(StoreFailure) -> Bool {
        try connection.makeDue(endpoint, at: now, triedBefore: now - Self.wakeAfter + 1)
    }

    /// Makes more events of an endpoint due that wait because it failed, now that it works. Returns
    /// whether there may be more. Does nothing if another process has the lease.
    package func wake(endpoint: Int64, under lease: Lease, now: Int64) throws(StoreFailure) -> Bool
    {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            guard try connection.holds(lease) else { return false }
            return try wake(connection, endpoint, now)
        }
    }

    private func noteFailure(
        of endpoint: Int64, _ failure: DeliveryFailure, _ connection: any DatabaseConnection
    ) throws(StoreFailure) {
        try connection.run(
            """
            UPDATE endpoint_health SET failures = CASE WHEN failures < \(failure.endpointFailures) THEN \(failure.endpointFailures)
                    ELSE failures END, retry_at = \(failure.retryEndpointAt), last_error = \(failure.reason)
            WHERE endpoint_id = \(endpoint)
            """)
    }

    /// Makes events due now that wait longer than any schedule allows, because a wrong clock
    /// scheduled them. Returns how many events.
    /// - Parameters:
    ///   - event: maximum wait of an event in seconds from now.
    ///   - endpoint: maximum wait of an endpoint.
    package func endImpossibleWaits(
        event: Int64, endpoint: Int64, now: Int64
    ) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            // An endpoint may request a longer wait than an event has. If one of its events waits
            // too long, the same wrong clock set both.
            try connection.run(
                """
                UPDATE endpoint_health SET retry_at = \(now)
                WHERE retry_at > \(now + endpoint) OR retry_at > \(now + event) AND EXISTS (
                    SELECT 1 FROM outbox o WHERE o.endpoint_id = endpoint_health.endpoint_id AND o.state = 'pending'
                        AND o.next_attempt_at > \(now + event))
                """)
        }
        return try database.untilNoneIsLeft(
            """
            SELECT o.id FROM event_endpoints e CROSS JOIN outbox o
            WHERE e.removed_at IS NULL AND o.endpoint_id = e.id AND o.state = 'pending' AND o.next_attempt_at > \(now + event)
            """
        ) { connection, events throws(StoreFailure) in
            try connection.run(for: events) {
                """
                UPDATE outbox SET next_attempt_at = \(now)
                WHERE id IN \($0) AND state = 'pending' AND next_attempt_at > \(now + event)
                """
            }
        }
    }

    /// Gives up events that waited for three days; returns how many.
    package func parkExpired(now: Int64) throws(StoreFailure) -> Int {
        try database.untilNoneIsLeft(
            "SELECT id FROM outbox WHERE state = 'pending' AND park_at <= \(now)"
        ) {
            connection, events throws(StoreFailure) in
            try connection.run(for: events) {
                "\(Self.parking(now)) WHERE id IN \($0) AND state = 'pending' AND park_at <= \(now)"
            }
        }
    }

    /// Events changed in one transaction: some ten milliseconds during which other writers wait.
    package static let step = 1_000

    /// Deletes events that ended long ago, at most `limit`. Marks endpoints of removed groups as
    /// removed when no event waits for them. Returns how many events.
    package func deleteEnded(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let count = try connection.run(
                """
                DELETE FROM outbox WHERE id IN (
                    SELECT id FROM outbox WHERE ended_at <= \(now - Self.keepsDelivered)
                        AND ended_at <= CASE WHEN state = 'delivered' THEN \(now - Self.keepsDelivered)
                            ELSE \(now - Self.keepsParked) END LIMIT \(limit))
                """)
            try connection.run(
                """
                UPDATE event_endpoints SET removed_at = \(now) WHERE group_id IS NULL AND stream_group IS NULL AND removed_at IS NULL AND NOT EXISTS (
                    SELECT 1 FROM outbox o WHERE o.endpoint_id = event_endpoints.id AND o.state IN ('pending', 'parked'))
                """)
            return count
        }
    }

    /// SQL that gives up an event. It removes the addresses if the account was deleted in the
    /// meantime.
    /// - Parameter error: the reason, if it is not stored yet.
    static func parking(_ now: Int64, error: String? = nil) -> SQL {
        let isThere: SQL =
            "(account_id = 0 OR EXISTS (SELECT 1 FROM accounts a WHERE a.id = outbox.account_id))"
        return """
            UPDATE outbox SET state = 'parked', ended_at = \(now), last_error = COALESCE(\(error), last_error),
                email = CASE WHEN \(isThere) THEN email ELSE NULL END, detail = CASE WHEN \(isThere) THEN detail ELSE NULL END
            """
    }

    // MARK: Administration

    /// Events, the newest first.
    /// - Parameter before: only those with a lower number.
    package func events(
        team: String? = nil, state: OutboxEvent.State? = nil, account: Int64? = nil,
        jti: String? = nil, before: Int64? = nil,
        limit: Int = 100
    ) throws(StoreFailure) -> [OutboxEvent] {
        try database.read { connection throws(StoreFailure) in
            let page: SQL = "o.id < \(before ?? .max) ORDER BY o.id DESC LIMIT \(limit)"
            if jti == nil, account == nil, team != nil || state != nil {
                let places = try OutboxPlaces(
                    connection, team: team, state.map { [$0] } ?? OutboxEvent.State.allCases)
                return try connection.rows(for: places.newest(connection, page, limit)) {
                    "\(Self.select) WHERE o.id IN \($0)"
                }
                .map(OutboxEvent.init(row:)).sorted { $0.number > $1.number }
            }
            var conditions: [SQL] = []
            if let team {
                conditions.append(EndpointRepository.isOf(team: try connection.team(team).number))
            }
            if let state { conditions.append("o.state = \(state)") }
            if let account { conditions.append("o.account_id = \(account)") }
            if let jti { conditions.append("o.jti = \(jti)") }
            return try connection.rows("\(Self.select) WHERE \(SQL.all(conditions + [page]))").map(
                OutboxEvent.init(row:))
        }
    }

    /// Makes given-up events pending again, for three more days: one, or all of a team. Returns how
    /// many.
    package func retry(
        jti: String? = nil, team: String? = nil, _ change: Change
    ) throws(StoreFailure) -> Int {
        // Also if a later step fails, because the events of earlier steps are due.
        defer { signal.raise() }
        return try database.inSteps(.durable) { connection throws(StoreFailure) in
            try places(connection, [.pending, .parked], jti: jti, team: team)
        } change: { connection, events throws(StoreFailure) in
            let count = try connection.run(for: events) {
                """
                UPDATE outbox SET state = 'pending', ended_at = NULL, next_attempt_at = \(EventMoment.atOnce),
                    park_at = \(change.now + AccountChangeTracker.timeout)
                WHERE id IN \($0) AND state <> 'delivered'
                """
            }
            try connection.run(for: events) {
                """
                UPDATE endpoint_health SET retry_at = \(EventMoment.atOnce) WHERE retry_at > \(EventMoment.atOnce)
                    AND endpoint_id IN (SELECT endpoint_id FROM outbox WHERE id IN \($0) AND state = 'pending')
                """
            }
            try connection.audit(
                change, "event.retry", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")",
                "\(count) events")
            return count
        }
    }

    /// Gives up pending events on request: one, or all of a team. Returns how many.
    package func park(
        jti: String? = nil, team: String? = nil, _ change: Change
    ) throws(StoreFailure) -> Int {
        try database.inSteps(.durable) { connection throws(StoreFailure) in
            try places(connection, [.pending], jti: jti, team: team)
        } change: { connection, events throws(StoreFailure) in
            let count = try connection.run(for: events) {
                "\(Self.parking(change.now)) WHERE id IN \($0) AND state = 'pending'"
            }
            try connection.audit(
                change, "event.park", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")",
                "\(count) events")
            return count
        }
    }

    /// The events that `park` and `retry` change.
    private func places(
        _ connection: any DatabaseConnection, _ states: [OutboxEvent.State], jti: String?,
        team: String?
    ) throws(StoreFailure) -> OutboxPlaces {
        guard let jti else { return try OutboxPlaces(connection, team: team, states) }
        guard try connection.row("\(Self.select) WHERE o.jti = \(jti)") != nil else {
            throw .refused(.notFound, "there is no event \(jti): see postern event list")
        }
        return OutboxPlaces(states.map { "o.jti = \(jti) AND o.state = \($0)" })
    }

    /// Puts a test event into the outbox, to try the endpoint; returns its `jti`.
    package func test(_ endpoint: EventEndpoint, _ change: Change) throws(StoreFailure) -> String {
        let jti = Base32.characters(
            fromRandom: try database.write(.durable) { connection throws(StoreFailure) in
                let octets = try SecureRandom.octets(32)
                try connection.post(
                    .test, endpoint: endpoint.number, account: 0, sub: "test", email: nil,
                    jti: Base32.characters(fromRandom: octets),
                    at: EventMoment(change.now))
                try connection.audit(
                    change, "event.test", "endpoint:\(endpoint.number)", endpoint.audience)
                return octets
            })
        signal.raise()
        return jti
    }

    static let select: SQL = select(from: "outbox")

    static func select(from events: SQL) -> SQL {
        """
        SELECT o.id, o.jti, o.endpoint_id, e.audience, o.account_id, o.type, o.sub, o.email, o.decision_id, o.detail, o.txn, o.event_time, o.created_at,
            o.state, o.attempts, o.next_attempt_at, o.park_at, o.last_error, o.ended_at, o.last_attempt_at
        FROM \(events) o JOIN event_endpoints e ON e.id = o.endpoint_id AND e.removed_at IS NULL
        """
    }
}

extension OutboxEvent {
    /// From the columns of `OutboxRepository.select`.
    init(row: SQLRow) throws(StoreFailure) {
        let createdAt: Int64 = try row["created_at"]
        try self.init(
            number: row["id"], jti: row["jti"], endpointNumber: row["endpoint_id"],
            audience: row["audience"],
            accountNumber: row["account_id"], type: row["type"], sub: row["sub"],
            email: row["email"],
            decisionID: row["decision_id"], detail: row["detail"], transaction: row["txn"],
            eventTime: row["event_time"],
            createdAt: createdAt, state: row["state"],
            attempts: row["attempts"],
            lastAttemptAt: row["last_attempt_at"] ?? 0,
            nextAttemptAt: max(row["next_attempt_at"], createdAt),
            parkAt: row["park_at"], lastError: row["last_error"], endedAt: row["ended_at"])
    }
}
