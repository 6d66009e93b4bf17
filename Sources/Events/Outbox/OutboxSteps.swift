// Changes many events in steps, so that other writers wait for at most one step. Long searches run
// before each transaction.

import Accounts
import Database

extension Database {
    /// Changes events until an index finds none of them: changed events must not match the search
    /// any longer.
    /// - Parameters:
    ///   - search: selects their numbers, without a limit.
    ///   - change: changes those that are unchanged since the search; returns how many.
    func untilNoneIsLeft(
        _ search: SQL, change: (any DatabaseConnection, [Int64]) throws(StoreFailure) -> Int
    ) throws(StoreFailure) -> Int {
        var count = 0
        while true {
            let events: [Int64] = try values("\(search) LIMIT \(OutboxRepository.step)")
            guard !events.isEmpty else { return count }
            count += try write(.relaxed) { connection throws(StoreFailure) in
                try change(connection, events)
            }
            guard events.count == OutboxRepository.step else { return count }
        }
    }

    /// Changes the events that exist at the beginning.
    /// - Parameters:
    ///   - places: returns the places of the events; read once.
    ///   - change: changes these events if unchanged since the search; returns how many.
    ///     Called at least once.
    /// - Returns: the number of changed events.
    func inSteps(
        _ durability: Durability, _ places: TransactionBody<OutboxPlaces>,
        change: (any DatabaseConnection, [Int64]) throws(StoreFailure) -> Int
    ) throws(StoreFailure) -> Int {
        let (places, last): (OutboxPlaces, Int64) = try read { connection throws(StoreFailure) in
            (
                try places(connection),
                try connection.value("SELECT MAX(id) AS last FROM outbox") ?? 0
            )
        }
        var (count, step, isFirst) = (0, [Int64](), true)
        func write() throws(StoreFailure) {
            count += try self.write(durability) { connection throws(StoreFailure) in
                try change(connection, step)
            }
            (step, isFirst) = ([], false)
        }
        for place in places.conditions {
            var (after, isOver) = (Int64(0), false)
            while !isOver {
                let room = OutboxRepository.step - step.count
                let found: [Int64] = try values(
                    "SELECT o.id FROM outbox o WHERE \(place) AND o.id > \(after) AND o.id <= \(last) ORDER BY o.id LIMIT \(room)"
                )
                (after, isOver) = (found.last ?? after, found.count < room)
                step += found
                if step.count == OutboxRepository.step { try write() }
            }
        }
        if isFirst || !step.isEmpty { try write() }
        return count
    }
}

extension DatabaseConnection {
    /// Makes some events of an endpoint due that would wait longer; returns whether there may be
    /// more.
    /// - Parameter time: only events that were last tried before it; nil for all.
    func makeDue(
        _ endpoint: Int64, at now: Int64, triedBefore time: Int64? = nil
    ) throws(StoreFailure) -> Bool {
        let tried: SQL = if let time { "last_attempt_at < \(time)" } else { "1 = 1" }
        return try run(
            """
            UPDATE outbox SET next_attempt_at = \(now) WHERE id IN (
                SELECT id FROM outbox WHERE endpoint_id = \(endpoint) AND state = 'pending' AND next_attempt_at > \(now) AND \(tried)
                ORDER BY next_attempt_at, id \(SQL.limit(OutboxRepository.step)))
            """) == OutboxRepository.step
    }
}

extension Database {
    /// Makes all waiting events of an endpoint due, because the endpoint was replaced. Other
    /// writers wait for at most one step.
    func makeAllDue(_ endpoint: Int64) throws(StoreFailure) {
        while try write(
            .relaxed,
            { connection throws(StoreFailure) in
                try connection.makeDue(endpoint, at: EventMoment.atOnce)
            })
        {}
    }
}

/// The places of events. Each is a range of an index with events in the order of their numbers
/// (`outbox_endpoint`), or a single event. The outbox itself, which may be long, is not read.
struct OutboxPlaces: Sendable {
    /// Conditions on `outbox o`.
    let conditions: [SQL]

    init(_ conditions: [SQL]) { self.conditions = conditions }

    /// The endpoints of a team, or of all teams, that have events in these states.
    init(
        _ connection: any DatabaseConnection, team: String?, _ states: [OutboxEvent.State]
    ) throws(StoreFailure) {
        let ofTeam: SQL =
            try team.map { id throws(StoreFailure) in
                EndpointRepository.isOf(team: try connection.team(id).number)
            } ?? "1 = 1"
        var conditions: [SQL] = []
        for state in states {
            let endpoints: [Int64] = try connection.values(
                """
                SELECT e.id FROM event_endpoints e WHERE e.removed_at IS NULL AND \(ofTeam) AND \(Self.has(state)) ORDER BY e.id
                """)
            conditions += endpoints.map { "o.endpoint_id = \($0) AND o.state = \(state)" }
        }
        self.conditions = conditions
    }

    /// Whether endpoint `e` has events in a state: one index step instead of a read of all events.
    static func has(_ state: OutboxEvent.State) -> SQL {
        "(SELECT 1 FROM outbox w WHERE w.endpoint_id = e.id AND w.state = \(state) LIMIT 1) IS NOT NULL"
    }

    /// The highest numbers of all places.
    /// - Parameter page: the condition and order in each place, for at most `limit` events.
    func newest(
        _ connection: any DatabaseConnection, _ page: SQL, _ limit: Int
    ) throws(StoreFailure) -> [Int64] {
        var found: [Int64] = []
        for place in conditions {
            found += try connection.values("SELECT o.id FROM outbox o WHERE \(place) AND \(page)")
        }
        return Array(found.sorted(by: >).prefix(limit))
    }
}
