// Selects the next events: the first of each account, even if many wait.

import Accounts
import Database

extension OutboxRepository {
    /// The maximum number of events that are examined in the order in which they are due, and of
    /// accounts that are examined one by one after them.
    package static let window = 1_024

    /// The first pending event of each account for this endpoint that is due, at most `limit`; nil
    /// if another process has the lease.
    ///
    /// The number of examined events is limited. First come the events that are due first. If these
    /// belong to few accounts, the first events of other accounts follow, beginning at a random
    /// account, so that all accounts get their turn.
    /// - Parameters:
    ///   - isProbe: for a failing endpoint: selects those of the examined events that were tried
    ///     least recently, due or not.
    ///   - window: the maximum number of examined events.
    package func due(
        endpoint: Int64, now: Int64, isProbe: Bool, limit: Int, window: Int = window,
        under lease: Lease
    ) throws(StoreFailure) -> [OutboxEvent]? {
        try database.read { connection throws(StoreFailure) in
            guard try connection.holds(lease) else { return nil }
            guard try streams.isMoving(connection, endpoint: endpoint) else {
                return try ofItself(connection, endpoint, now: now, limit: limit)
            }
            if isProbe {
                let heads = try connection.rows(for: heads(connection, endpoint, window)) {
                    "\(Self.select) WHERE o.id IN \($0)"
                }.map(OutboxEvent.init(row:))
                return Array(
                    heads.sorted { ($0.lastAttemptAt, $0.number) < ($1.lastAttemptAt, $1.number) }
                        .prefix(limit))
            }
            return try heads(connection, endpoint, dueAt: now, limit: limit, window: window)
        }
    }

    /// The first event about an endpoint itself, which is sent even while a stream is stopped.
    func ofItself(
        _ connection: any DatabaseConnection, _ endpoint: Int64, now: Int64, limit: Int
    ) throws(StoreFailure) -> [OutboxEvent] {
        try connection.rows(
            """
            \(Self.select) WHERE o.id = (SELECT p.id FROM outbox p WHERE p.state = 'pending' AND p.endpoint_id = \(endpoint)
                AND p.account_id = 0 ORDER BY p.id LIMIT 1) AND o.next_attempt_at <= \(now)
            """
        ).map(OutboxEvent.init(row:)).prefix(limit).map(\.self)
    }

    /// The first pending event of each account for an endpoint, at most `limit`.
    /// - Parameters:
    ///   - time: the latest time at which they are due.
    ///   - window: the maximum number of examined events.
    func heads(
        _ connection: any DatabaseConnection, _ endpoint: Int64, dueAt time: Int64, limit: Int,
        window: Int = window
    ) throws(StoreFailure) -> [OutboxEvent] {
        let isDue: SQL = """
            state = 'pending' AND endpoint_id = \(endpoint) AND next_attempt_at <= \(time) ORDER BY next_attempt_at, id LIMIT
            """
        // The window is a separate table, and only one index has the order of the inner query.
        // While many events come to an empty table, its statistics still give every plan the same
        // cost.
        var found = try connection.rows(
            """
            \(Self.select(from: "(SELECT * FROM outbox WHERE \(isDue) \(window))")) WHERE o.id = (
                SELECT p.id FROM outbox p WHERE p.state = 'pending' AND p.endpoint_id = o.endpoint_id
                    AND p.account_id >= o.account_id ORDER BY p.account_id, p.id LIMIT 1)
            ORDER BY o.next_attempt_at, o.id LIMIT \(limit)
            """
        ).map(OutboxEvent.init(row:))
        guard found.count < limit,
            try connection.row("SELECT id FROM outbox WHERE \(isDue) 1 OFFSET \(window)") != nil
        else { return found }
        let known = Set(found.map(\.number))
        found += try connection.rows(
            for: heads(connection, endpoint, window).filter { !known.contains($0) }
        ) {
            "\(Self.select) WHERE o.id IN \($0) AND o.next_attempt_at <= \(time)"
        }.map(OutboxEvent.init(row:)).sorted { $0.number < $1.number }
        return Array(found.prefix(limit))
    }

    /// The first pending event of each of `count` accounts, beginning at a random one: one index
    /// step for each, even if many wait.
    private func heads(
        _ connection: any DatabaseConnection, _ endpoint: Int64, _ count: Int
    ) throws(StoreFailure) -> [Int64] {
        let ofEndpoint: SQL = "state = 'pending' AND endpoint_id = \(endpoint)"
        let last: Int64? = try connection.value(
            "SELECT MAX(account_id) AS last FROM outbox WHERE \(ofEndpoint)")
        guard let last else { return [] }
        func first(after account: SQL) -> SQL {
            "SELECT account_id, id FROM outbox WHERE \(ofEndpoint) AND account_id > \(account) ORDER BY account_id, id LIMIT 1"
        }
        func heads(after account: Int64, _ count: Int) throws(StoreFailure) -> [Int64] {
            try connection.values(
                """
                WITH RECURSIVE heads (account, event, place) AS (
                    SELECT account_id, id, 1 FROM (\(first(after: "\(account)"))) f
                    UNION ALL
                    SELECT o.account_id, o.id, h.place + 1
                    FROM heads h JOIN outbox o ON o.id = (SELECT f.id FROM (\(first(after: "h.account"))) f)
                    WHERE h.place < \(count)
                )
                SELECT event FROM heads
                """)
        }
        // Test events have account 0.
        let later = try heads(after: Int64.random(in: -1...max(0, last - 1)), count)
        guard later.count < count else { return later }
        let known = Set(later)
        return later + (try heads(after: -1, count - later.count).filter { !known.contains($0) })
    }
}
