// The outbox: events wait in it until their endpoint has taken them.

import MailCrypto
import Support

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
    /// After a success, whatever failed before is tried again at once, unless it was tried within this many seconds: an event
    /// that its endpoint never takes must not be tried with every other one.
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

    /// How much waits for delivery.
    package struct Backlog: Sendable, Hashable {
        package let events: Int
        /// When the oldest of them was written, seconds since 1970.
        package let oldest: Int64?
        /// Whether all were counted; otherwise there are more, and perhaps older ones.
        package let isWhole: Bool

        package init(events: Int, oldest: Int64?, isWhole: Bool) {
            (self.events, self.oldest, self.isWhole) = (events, oldest, isWhole)
        }
    }

    /// Events that are counted each second; with more of them counting would keep a processor busy.
    package static let counted = 2_000

    /// How many events wait, and since when the oldest of them does, of at most `limit`.
    package func backlog(limit: Int = counted) throws -> Backlog {
        let row = try database.rows(
            "SELECT COUNT(*), MIN(created_at) FROM (SELECT created_at FROM outbox WHERE state = 'pending' LIMIT ?1) w",
            [.integer(Int64(limit))]
        ).first
        let events = Int(try row?.integer(0) ?? 0)
        return Backlog(events: events, oldest: try row?.optionalInteger(1), isWhole: events < limit)
    }

    /// Endpoints that events wait for.
    /// - Parameter isCounted: without it, `pending` and `parked` are 0: counting takes long where many wait.
    package func waitingEndpoints(isCounted: Bool = true) throws -> [EventEndpoint] {
        try database.rows(
            (isCounted ? EndpointRepository.select : EndpointRepository.uncounted)
                + " WHERE e.removed_at IS NULL AND EXISTS (SELECT 1 FROM outbox w WHERE w.endpoint_id = e.id AND w.state = 'pending') ORDER BY e.id",
            []
        ).map(EventEndpoint.init(row:))
    }

    /// Events that are looked at in the order in which they are due, and accounts that are looked at one by one beyond them.
    package static let window = 1_024

    /// The first pending event of each account for this endpoint that is due, at most `limit`; nil where the lease is another's.
    ///
    /// How many are looked at is bounded: the first ones that are due; where those are of few accounts, the first ones of other
    /// accounts, from a random one on, so that all have their turn.
    /// - Parameters:
    ///   - isProbe: for an endpoint that fails: of those that are looked at, whatever was tried least recently, due or not.
    ///   - window: how many are looked at.
    package func due(
        endpoint: Int64, now: Int64, isProbe: Bool, limit: Int, window: Int = window, under lease: Lease
    ) throws -> [OutboxEvent]? {
        try database.read { connection in
            guard try connection.holds(lease) else { return nil }
            if isProbe {
                let heads = try connection.rows(for: heads(connection, endpoint, window)) {
                    Self.select + " WHERE o.id IN \($0)"
                }
                return try heads.sorted { try ($0.integer(16), $0.integer(0)) < ($1.integer(16), $1.integer(0)) }.prefix(limit)
                    .map(OutboxEvent.init(row:))
            }
            let isDue = "state = 'pending' AND endpoint_id = ?1 AND next_attempt_at <= ?2 ORDER BY next_attempt_at, id LIMIT"
            let arguments: [SQLValue] = [.integer(endpoint), .integer(now)]
            // The window is a separate table, and only one index has the order of the inner query: while many events come to an
            // empty table, its statistics still say that every plan costs the same.
            var found = try connection.rows(
                Self.select(from: "(SELECT * FROM outbox WHERE \(isDue) ?3)") + """
                     WHERE o.id = (
                        SELECT p.id FROM outbox p WHERE p.state = 'pending' AND p.endpoint_id = o.endpoint_id
                            AND p.account_id >= o.account_id ORDER BY p.account_id, p.id LIMIT 1)
                    ORDER BY o.next_attempt_at, o.id LIMIT ?4
                    """, arguments + [.integer(Int64(window)), .integer(Int64(limit))]
            ).map(OutboxEvent.init(row:))
            guard found.count < limit,
                try connection.row("SELECT id FROM outbox WHERE \(isDue) 1 OFFSET ?3", arguments + [.integer(Int64(window))])
                    != nil
            else { return found }
            let known = Set(found.map { SQLValue.integer($0.number) })
            found += try connection.rows(for: heads(connection, endpoint, window).filter { !known.contains($0) }) {
                Self.select + " WHERE o.id IN \($0)"
            }.filter { try $0.integer(12) <= now }.map(OutboxEvent.init(row:)).sorted { $0.number < $1.number }
            return Array(found.prefix(limit))
        }
    }

    /// The first pending event of each of so many accounts, from a random one on: a step in the index for each, however many
    /// wait.
    private func heads(_ connection: any DatabaseConnection, _ endpoint: Int64, _ count: Int) throws -> [SQLValue] {
        let ofEndpoint = "state = 'pending' AND endpoint_id = ?1"
        let last = try connection.row("SELECT MAX(account_id) FROM outbox WHERE \(ofEndpoint)", [.integer(endpoint)])?
            .optionalInteger(0)
        guard let last else { return [] }
        func first(after account: String) -> String {
            "SELECT account_id, id FROM outbox WHERE \(ofEndpoint) AND account_id > \(account) ORDER BY account_id, id LIMIT 1"
        }
        func heads(after account: Int64, _ count: Int) throws -> [SQLValue] {
            try connection.rows(
                """
                WITH RECURSIVE heads (account, event, place) AS (
                    SELECT account_id, id, 1 FROM (\(first(after: "?2"))) f
                    UNION ALL
                    SELECT o.account_id, o.id, h.place + 1
                    FROM heads h JOIN outbox o ON o.id = (SELECT f.id FROM (\(first(after: "h.account"))) f)
                    WHERE h.place < ?3
                )
                SELECT event FROM heads
                """, [.integer(endpoint), .integer(account), .integer(Int64(count))]
            ).map { .integer(try $0.integer(0)) }
        }
        // Account 0 is that of test events.
        let later = try heads(after: Int64.random(in: -1...max(0, last - 1)), count)
        guard later.count < count else { return later }
        let known = Set(later)
        return later + (try heads(after: -1, count - later.count).filter { !known.contains($0) })
    }

    /// Writes down how attempts ended, in the order in which they did; false, and nothing is written, where the lease is
    /// another's.
    package func recordResults(_ results: [DeliveryResult], under lease: Lease, now: Int64) throws -> Bool {
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

    private func markFailed(
        _ event: OutboxEvent, _ failure: DeliveryFailure, _ connection: any DatabaseConnection, _ now: Int64
    ) throws {
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
            [
                .integer(endpoint), .integer(failure.retryEndpointAt), .text(failure.reason),
                .integer(Int64(failure.endpointFailures)),
            ])
    }

    /// What should wait for longer than any schedule says was scheduled by a clock that was wrong: it is due now; how many
    /// events.
    /// - Parameters:
    ///   - event: seconds from now on that an event waits at most.
    ///   - endpoint: that an endpoint does.
    package func endImpossibleWaits(event: Int64, endpoint: Int64, now: Int64) throws -> Int {
        try database.write(.relaxed) { connection in
            // An endpoint may ask for a longer wait than an event has: one with an event that waits too long was told by the same
            // clock.
            try connection.run(
                """
                UPDATE endpoint_health SET retry_at = ?1 WHERE retry_at > ?2 OR retry_at > ?3 AND EXISTS (
                    SELECT 1 FROM outbox o WHERE o.endpoint_id = endpoint_health.endpoint_id AND o.state = 'pending' AND o.next_attempt_at > ?3)
                """, [.integer(now), .integer(now + endpoint), .integer(now + event)])
        }
        return try inSteps(.relaxed) { _ in
            ("o.state = 'pending' AND o.next_attempt_at > ?3", [.integer(now + event)])
        } change: { connection, events in
            try connection.run([.integer(now), .integer(now + event)], for: events) {
                "UPDATE outbox SET next_attempt_at = ?1 WHERE id IN \($0) AND state = 'pending' AND next_attempt_at > ?2"
            }
        }
    }

    /// Parks what waited for three days; how many.
    package func parkExpired(now: Int64) throws -> Int {
        try inSteps(.relaxed) { _ in
            ("o.state = 'pending' AND o.park_at <= ?3", [.integer(now)])
        } change: { connection, events in
            try connection.run([.integer(now)], for: events) {
                "UPDATE outbox SET state = 'parked', ended_at = ?1, \(Self.forgetting) WHERE id IN \($0) AND state = 'pending' AND park_at <= ?1"
            }
        }
    }

    /// Events that one transaction changes: some ten milliseconds, for which other writers wait.
    package static let step = 1_000

    /// Changes many events, some at a time. The search runs before each transaction, so that it does not block other writers.
    /// - Parameters:
    ///   - condition: which ones, of `outbox o` with its endpoint `e`; its parameters begin at `?3`.
    ///   - change: changes those with these numbers that are still as they were found; how many. Called at least once.
    /// - Returns: how many were changed.
    private func inSteps(
        _ durability: Durability, _ condition: (any DatabaseConnection) throws -> (String, [SQLValue]),
        change: (any DatabaseConnection, [SQLValue]) throws -> Int
    ) throws -> Int {
        var (count, after, isOver, isFirst) = (0, Int64(0), false, true)
        while !isOver {
            let events = try database.read { connection in
                let (condition, arguments) = try condition(connection)
                return try connection.rows(
                    """
                    SELECT o.id FROM outbox o JOIN event_endpoints e ON e.id = o.endpoint_id AND e.removed_at IS NULL
                    WHERE o.id > ?1 AND \(condition) ORDER BY o.id LIMIT ?2
                    """, [.integer(after), .integer(Int64(Self.step))] + arguments
                ).map { try $0.integer(0) }
            }
            isOver = events.count < Self.step
            after = events.last ?? after
            guard isFirst || !events.isEmpty else { break }
            isFirst = false
            count += try database.write(durability) { try change($0, events.map(SQLValue.integer)) }
        }
        return count
    }

    /// Deletes what ended long ago, at most `limit`, and marks endpoints of removed groups that nothing waits for as removed; how
    /// many events.
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
                UPDATE event_endpoints SET removed_at = ?1 WHERE group_id IS NULL AND removed_at IS NULL AND NOT EXISTS (
                    SELECT 1 FROM outbox o WHERE o.endpoint_id = event_endpoints.id AND o.state <> 'delivered')
                """, [.integer(now)])
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
        let count = try inSteps(.durable) { connection in
            try selection(connection, "o.state <> 'delivered'", jti: jti, team: team)
        } change: { connection, events in
            let count = try connection.run(
                [.integer(OutboxEvent.atOnce), .integer(change.now + AccountChangeTracker.timeout)], for: events
            ) {
                """
                UPDATE outbox SET state = 'pending', ended_at = NULL, next_attempt_at = ?1, park_at = ?2
                WHERE id IN \($0) AND state <> 'delivered'
                """
            }
            try connection.run([.integer(OutboxEvent.atOnce)], for: events) {
                """
                UPDATE endpoint_health SET retry_at = ?1 WHERE retry_at > ?1
                    AND endpoint_id IN (SELECT endpoint_id FROM outbox WHERE id IN \($0) AND state = 'pending')
                """
            }
            try connection.audit(change, "event.retry", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")", "\(count) events")
            return count
        }
        signal.raise()
        return count
    }

    /// Parks pending events by hand: one, or all of a team's. How many.
    package func park(jti: String? = nil, team: String? = nil, _ change: Change) throws -> Int {
        try inSteps(.durable) { connection in
            try selection(connection, "o.state = 'pending'", jti: jti, team: team)
        } change: { connection, events in
            let count = try connection.run([.integer(change.now)], for: events) {
                "UPDATE outbox SET state = 'parked', ended_at = ?1, \(Self.forgetting) WHERE id IN \($0) AND state = 'pending'"
            }
            try connection.audit(change, "event.park", jti.map { "event:\($0)" } ?? "team:\(team ?? "*")", "\(count) events")
            return count
        }
    }

    /// A condition for `inSteps`.
    private func selection(
        _ connection: any DatabaseConnection, _ state: String, jti: String?, team: String?
    ) throws -> (String, [SQLValue]) {
        if let jti {
            guard try connection.row("SELECT id FROM outbox WHERE jti = ?1", [.text(jti)]) != nil else {
                throw StoreRefusal(.notFound, "there is no event \(jti): see postern event list")
            }
            return ("\(state) AND o.jti = ?3", [.text(jti)])
        }
        guard let team else { return (state, []) }
        return (
            "\(state) AND e.group_id IN (SELECT id FROM app_groups WHERE team_id = ?3)",
            [.integer(try connection.team(team).number)]
        )
    }

    /// Puts an event that means nothing into the outbox, to try the endpoint; its `jti`.
    package func test(_ endpoint: EventEndpoint, _ change: Change) throws -> String {
        let jti = Base32.characters(
            fromRandom: try database.write(.durable) { connection in
                let octets = try connection.freshOctets(32)
                try connection.post(
                    .test, endpoint: endpoint.number, account: 0, sub: "test", email: nil,
                    jti: Base32.characters(fromRandom: octets),
                    at: EventMoment(change.now))
                try connection.audit(change, "event.test", "endpoint:\(endpoint.number)", endpoint.audience)
                return octets
            })
        signal.raise()
        return jti
    }

    private static let select = select(from: "outbox")

    private static func select(from events: String) -> String {
        """
        SELECT o.id, o.jti, o.endpoint_id, e.audience, o.account_id, o.type, o.sub, o.email, o.event_time, o.created_at, o.state,
            o.attempts, o.next_attempt_at, o.park_at, o.last_error, o.ended_at, COALESCE(o.last_attempt_at, 0)
        FROM \(events) o JOIN event_endpoints e ON e.id = o.endpoint_id AND e.removed_at IS NULL
        """
    }
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
            nextAttemptAt: max(try row.integer(12), try row.integer(9)), parkAt: try row.integer(13),
            lastError: try row.optionalText(14),
            endedAt: try row.optionalInteger(15))
    }
}
