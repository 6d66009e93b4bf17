// The outbox: events wait in it until their endpoint has taken them.

import MailCrypto

/// How an attempt ended that did not deliver.
package struct DeliveryFailure: Sendable, Hashable {
    /// What was wrong, in words of ours: nothing that the endpoint wrote.
    package let reason: String
    /// Whether it says something about the endpoint, and not only about this event.
    package let isEndpoints: Bool
    /// Failures of the endpoint in a row, this one included. Events that fail side by side are one failure.
    package let endpointFailures: Int
    /// When the event may be tried again, seconds since 1970.
    package let retryEventAt: Int64
    /// When the endpoint may be tried again, where it is the endpoint's.
    package let retryEndpointAt: Int64

    package init(reason: String, isEndpoints: Bool, endpointFailures: Int, retryEventAt: Int64, retryEndpointAt: Int64) {
        self.reason = reason
        self.isEndpoints = isEndpoints
        self.endpointFailures = endpointFailures
        self.retryEventAt = retryEventAt
        self.retryEndpointAt = retryEndpointAt
    }
}

/// How one attempt ended.
package struct DeliveryResult: Sendable {
    package let event: OutboxEvent
    /// Nil where the endpoint took it.
    package let failure: DeliveryFailure?

    package init(_ event: OutboxEvent, failure: DeliveryFailure? = nil) { (self.event, self.failure) = (event, failure) }
}

/// Finds what is due and writes down how it went.
package struct OutboxRepository: Sendable {
    /// After a success, whatever failed before is tried again at once, unless it was tried within this many seconds: an event that
    /// its endpoint never takes must not be tried with every other one.
    private static let wakeAfter: Int64 = 60
    /// Delivered events are listed for so long; parked ones can be retried for so long. Seconds.
    private static let keepsDelivered: Int64 = 7 * 86_400
    private static let keepsParked: Int64 = 30 * 86_400

    let database: any Database
    package let signal: OutboxSignal

    // MARK: Delivery

    package var leases: LeaseRepository { LeaseRepository(database: database) }
    /// The lease of whoever delivers, one of all processes.
    package static let lease = "events"

    /// How many events wait, and since when the oldest of them does (seconds since 1970).
    package func backlog() throws -> (events: Int, oldest: Int64?) {
        try database.read { connection in
            let row = try connection.row("SELECT COUNT(*), MIN(created_at) FROM outbox WHERE state = 'pending'", [])
            return (Int(try row?.integer(0) ?? 0), try row?.optionalInteger(1))
        }
    }

    /// Endpoints that events wait for.
    /// - Parameter isCounted: without it, `pending` and `parked` are 0: counting takes long where many wait.
    package func waitingEndpoints(isCounted: Bool = true) throws -> [EventEndpoint] {
        try database.rows(
            (isCounted ? EndpointRepository.select : EndpointRepository.uncounted)
                + " WHERE EXISTS (SELECT 1 FROM outbox w WHERE w.endpoint_id = e.id AND w.state = 'pending') ORDER BY e.id", []
        ).map(EventEndpoint.init(row:))
    }

    /// The first pending event of each account for this endpoint that is due, at most `limit`; nil where the lease is another's.
    /// - Parameter isProbe: for an endpoint that fails: whatever was tried least recently, due or not.
    package func due(endpoint: Int64, now: Int64, isProbe: Bool, limit: Int, under lease: Lease) throws -> [OutboxEvent]? {
        try database.read { connection in
            guard try connection.holds(lease) else { return nil }
            return try connection.rows(
                Self.select + """
                     WHERE o.state = 'pending' AND o.endpoint_id = ?1 AND o.next_attempt_at <= ?2 AND NOT EXISTS (
                        SELECT 1 FROM outbox p WHERE p.state = 'pending' AND p.endpoint_id = o.endpoint_id
                            AND p.account_id = o.account_id AND p.id < o.id)
                    ORDER BY \(isProbe ? "o.last_attempt_at" : "o.next_attempt_at"), o.id LIMIT ?3
                    """, [.integer(endpoint), .integer(isProbe ? Int64.max : now), .integer(Int64(limit))]
            ).map(OutboxEvent.init(row:))
        }
    }

    /// Writes down how attempts ended, in the order in which they did; false, and nothing is written, where the lease is another's.
    package func settle(_ results: [DeliveryResult], under lease: Lease, now: Int64) throws -> Bool {
        try database.write(.relaxed) { connection in
            guard try connection.holds(lease) else { return false }
            try markDelivered(results.filter { $0.failure == nil }.map(\.event), connection, now)
            // Events that ended together are one word of their endpoint: the last.
            var latest: [Int64: DeliveryResult] = [:]
            for result in results {
                if let failure = result.failure { try markFailed(result.event, failure, connection, now) }
                if result.failure?.isEndpoints != false { latest[result.event.endpointNumber] = result }
            }
            for (endpoint, result) in latest.sorted(by: { $0.key < $1.key }) {
                if let failure = result.failure {
                    try noteFailure(of: endpoint, failure, connection)
                } else {
                    try noteSuccess(of: endpoint, connection, now)
                }
            }
            return true
        }
    }

    /// Numbers in one statement. Few sizes, so that few statements are prepared; the last number fills up what is left.
    private static let chunks = [64, 8, 1]

    private func markDelivered(_ events: [OutboxEvent], _ connection: any DatabaseConnection, _ now: Int64) throws {
        var rest = events.map(\.number)[...]
        while let last = rest.last {
            let size = Self.chunks.last { $0 >= rest.count } ?? Self.chunks[0]
            let part = Array(rest.prefix(size)) + Array(repeating: last, count: max(0, size - rest.count))
            rest = rest.dropFirst(size)
            let numbers = part.indices.map { "?\($0 + 2)" }.joined(separator: ", ")
            try connection.run(
                """
                UPDATE outbox SET state = 'delivered', attempts = attempts + 1, last_attempt_at = ?1, ended_at = ?1,
                    last_error = NULL, email = NULL
                WHERE id IN (\(numbers))
                """, [.integer(now)] + part.map(SQLValue.integer))
        }
    }

    private func markFailed(_ event: OutboxEvent, _ failure: DeliveryFailure, _ connection: any DatabaseConnection, _ now: Int64) throws {
        try connection.run(
            """
            UPDATE outbox SET attempts = attempts + 1, last_attempt_at = ?2, next_attempt_at = ?3, last_error = ?4
            WHERE id = ?1 AND state = 'pending'
            """, [.integer(event.number), .integer(now), .integer(failure.retryEventAt), .text(failure.reason)])
    }

    /// It works. What waits because it failed becomes due.
    private func noteSuccess(of endpoint: Int64, _ connection: any DatabaseConnection, _ now: Int64) throws {
        let row = try connection.row(
            "SELECT failures, last_success_at FROM endpoint_health WHERE endpoint_id = ?1", [.integer(endpoint)])
        guard let row, try row.integer(0) > 0 || row.optionalInteger(1) != now else { return }
        try connection.run(
            "UPDATE endpoint_health SET failures = 0, last_error = NULL, last_success_at = ?2 WHERE endpoint_id = ?1",
            [.integer(endpoint), .integer(now)])
        guard try row.integer(0) > 0 else { return }
        try connection.run(
            """
            UPDATE outbox SET next_attempt_at = ?2
            WHERE endpoint_id = ?1 AND state = 'pending' AND next_attempt_at > ?2 AND last_attempt_at <= ?3
            """, [.integer(endpoint), .integer(now), .integer(now - Self.wakeAfter)])
    }

    private func noteFailure(of endpoint: Int64, _ failure: DeliveryFailure, _ connection: any DatabaseConnection) throws {
        try connection.run(
            """
            UPDATE endpoint_health SET failures = CASE WHEN failures < ?4 THEN ?4 ELSE failures END, retry_at = ?2, last_error = ?3
            WHERE endpoint_id = ?1
            """,
            [.integer(endpoint), .integer(failure.retryEndpointAt), .text(failure.reason), .integer(Int64(failure.endpointFailures))])
    }

    /// What should wait for longer than any schedule says was scheduled by a clock that was wrong: it is due now; how many events.
    /// - Parameters:
    ///   - event: seconds from now on that an event waits at most.
    ///   - endpoint: that an endpoint does.
    package func endImpossibleWaits(event: Int64, endpoint: Int64, now: Int64) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run("UPDATE endpoint_health SET retry_at = ?1 WHERE retry_at > ?2", [.integer(now), .integer(now + endpoint)])
            return try connection.run(
                "UPDATE outbox SET next_attempt_at = ?1 WHERE state = 'pending' AND next_attempt_at > ?2",
                [.integer(now), .integer(now + event)])
        }
    }

    /// Parks what waited for three days; how many.
    package func parkExpired(now: Int64) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                "UPDATE outbox SET state = 'parked', ended_at = ?1, \(Self.forgetting) WHERE state = 'pending' AND park_at <= ?1",
                [.integer(now)])
        }
    }

    /// Deletes what ended long ago, at most `limit`, and endpoints of removed groups that nothing waits for; how many events.
    package func deleteEnded(now: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            let count = try connection.run(
                """
                DELETE FROM outbox WHERE id IN (
                    SELECT id FROM outbox WHERE ended_at IS NOT NULL
                        AND ended_at <= CASE WHEN state = 'delivered' THEN ?1 ELSE ?2 END LIMIT ?3)
                """,
                [.integer(now - Self.keepsDelivered), .integer(now - Self.keepsParked), .integer(Int64(limit))])
            try connection.run(
                """
                DELETE FROM event_endpoints WHERE group_id IS NULL AND NOT EXISTS (
                    SELECT 1 FROM outbox o WHERE o.endpoint_id = event_endpoints.id AND o.state <> 'delivered')
                """, [])
            return count
        }
    }

    /// The address of an account that was deleted meanwhile is not kept any longer than its event.
    private static let forgetting =
        "email = CASE WHEN EXISTS (SELECT 1 FROM accounts a WHERE a.id = outbox.account_id) THEN email ELSE NULL END"

    // MARK: Administration

    /// Events, the newest first.
    /// - Parameter before: only those with a lower number.
    package func events(
        team: String? = nil, state: OutboxEvent.State? = nil, account: Int64? = nil, jti: String? = nil, before: Int64? = nil,
        limit: Int = 100
    ) throws -> [OutboxEvent] {
        try database.read { connection in
            var conditions: [String] = []
            var arguments: [SQLValue] = [.integer(Int64(limit))]
            if let team {
                arguments.append(.integer(try connection.team(team).number))
                conditions.append("e.group_id IN (SELECT id FROM app_groups WHERE team_id = ?\(arguments.count))")
            }
            if let state {
                arguments.append(.text(state.rawValue))
                conditions.append("o.state = ?\(arguments.count)")
            }
            if let account {
                arguments.append(.integer(account))
                conditions.append("o.account_id = ?\(arguments.count)")
            }
            if let jti {
                arguments.append(.text(jti))
                conditions.append("o.jti = ?\(arguments.count)")
            }
            if let before {
                arguments.append(.integer(before))
                conditions.append("o.id < ?\(arguments.count)")
            }
            let condition = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
            return try connection.rows(Self.select + condition + " ORDER BY o.id DESC LIMIT ?1", arguments)
                .map(OutboxEvent.init(row:))
        }
    }

    /// Makes parked events pending again, for three more days: one, or all of a team's. How many.
    package func retry(jti: String? = nil, team: String? = nil, _ change: Change) throws -> Int {
        let count = try database.write(.durable) { connection in
            let (condition, argument) = try selection(connection, jti: jti, team: team, parameter: 3)
            let count = try connection.run(
                """
                UPDATE outbox SET state = 'pending', ended_at = NULL, next_attempt_at = ?1, park_at = ?2
                WHERE state <> 'delivered' AND \(condition)
                """,
                [.integer(OutboxEvent.atOnce), .integer(change.now + AccountWatch.patience)] + argument)
            let chosen = try selection(connection, jti: jti, team: team, parameter: 2)
            try connection.run(
                """
                UPDATE endpoint_health SET retry_at = ?1 WHERE retry_at > ?1
                    AND endpoint_id IN (SELECT endpoint_id FROM outbox WHERE state = 'pending' AND next_attempt_at = ?1 AND \(chosen.condition))
                """, [.integer(OutboxEvent.atOnce)] + chosen.arguments)
            try connection.audit(change, "event.retry", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")", "\(count) events")
            return count
        }
        signal.raise()
        return count
    }

    /// Parks pending events by hand: one, or all of a team's. How many.
    package func park(jti: String? = nil, team: String? = nil, _ change: Change) throws -> Int {
        try database.write(.durable) { connection in
            let (condition, argument) = try selection(connection, jti: jti, team: team, parameter: 2)
            let count = try connection.run(
                """
                UPDATE outbox SET state = 'parked', ended_at = ?1, \(Self.forgetting)
                WHERE state = 'pending' AND \(condition)
                """, [.integer(change.now)] + argument)
            try connection.audit(change, "event.park", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")", "\(count) events")
            return count
        }
    }

    private func selection(
        _ connection: any DatabaseConnection, jti: String?, team: String?, parameter: Int
    ) throws -> (condition: String, arguments: [SQLValue]) {
        if let jti {
            guard try connection.row("SELECT id FROM outbox WHERE jti = ?1", [.text(jti)]) != nil else {
                throw StoreRefusal(.notFound, "there is no event \(jti): see postern event list")
            }
            return ("jti = ?\(parameter)", [.text(jti)])
        }
        guard let team else { return ("1 = 1", []) }
        let number = try connection.team(team).number
        return (
            """
            endpoint_id IN (SELECT e.id FROM event_endpoints e JOIN app_groups g ON g.id = e.group_id WHERE g.team_id = ?\(parameter))
            """, [.integer(number)]
        )
    }

    /// Puts an event that means nothing into the outbox, to try the endpoint; its `jti`.
    package func test(_ endpoint: EventEndpoint, _ change: Change) throws -> String {
        let jti = Base32.characters(fromRandom: try database.write(.durable) { connection in
            let octets = try connection.freshOctets(32)
            try connection.post(
                .test, endpoint: endpoint.number, account: 0, sub: "test", email: nil, jti: Base32.characters(fromRandom: octets),
                at: EventMoment(change.now))
            try connection.audit(change, "event.test", "endpoint:\(endpoint.number)", endpoint.audience)
            return octets
        })
        signal.raise()
        return jti
    }

    private static let select = """
        SELECT o.id, o.jti, o.endpoint_id, e.audience, o.account_id, o.type, o.sub, o.email, o.event_time, o.created_at, o.state,
            o.attempts, o.next_attempt_at, o.park_at, o.last_error, o.ended_at
        FROM outbox o JOIN event_endpoints e ON e.id = o.endpoint_id
        """
}

extension OutboxEvent {
    fileprivate init(row: SQLRow) throws {
        guard let type = EventType(rawValue: try row.text(5)), let state = State(rawValue: try row.text(10)) else {
            throw PermanentStoreError(.unexpectedData, "an event of an unknown type or state")
        }
        self.init(
            number: try row.integer(0), jti: try row.text(1), endpointNumber: try row.integer(2), audience: try row.text(3),
            accountNumber: try row.integer(4), type: type, sub: try row.text(6), email: try row.optionalText(7),
            eventTime: try row.integer(8), createdAt: try row.integer(9), state: state, attempts: Int(try row.integer(11)),
            nextAttemptAt: max(try row.integer(12), try row.integer(9)), parkAt: try row.integer(13), lastError: try row.optionalText(14),
            endedAt: try row.optionalInteger(15))
    }
}
