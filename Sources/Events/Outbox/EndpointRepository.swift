// Endpoints: the URLs at which groups of apps receive changes.

import Accounts
import Database

/// Sets, shows and removes event endpoints: one for each group of apps.
package struct EndpointRepository: Sendable {
    let database: any Database
    let signal: OutboxSignal

    /// Sets the endpoint of an app's group and replaces the earlier one; waiting events go to the
    /// new one at once.
    /// - Parameters:
    ///   - clientID: any app of the group; nil for the group that gets consents without a named
    ///     app.
    ///   - allowsHTTP: whether `http` is accepted too.
    ///   - allowsPrivate: whether addresses that are not globally reachable are accepted.
    ///   - dialect: the form of its notifications; nil keeps the present one, which is Apple's at
    ///     first. Streams have a separate repository.
    package func set(
        team id: String, app clientID: String?, url: EndpointURL, allowsHTTP: Bool = false,
        allowsPrivate: Bool = false,
        dialect: EventDialect? = nil, _ change: Change
    ) throws(StoreFailure) -> EventEndpoint {
        guard url.isSecure || allowsHTTP else {
            throw .refused(
                .invalid,
                "events are sent only over https: over http anyone on the network path can read and change the traffic"
            )
        }
        guard dialect != .sharedSignals else {
            throw .refused(.invalid, "a stream is created by its receiver, at /ssf/stream")
        }
        let number = try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            let group: AppGroup
            if let clientID {
                group = try connection.appGroup(team: team, clientID: clientID)
            } else {
                group = try connection.usualGroup(team: team, change)
            }
            try connection.run(
                """
                INSERT INTO event_endpoints (group_id, audience, url, allow_private, dialect, created_at)
                VALUES (\(group.number), \(group.primaryClientID ?? team.id), \(url.description), \(allowsPrivate),
                    \(dialect ?? .apple), \(change.now))
                ON CONFLICT (group_id) DO UPDATE SET url = excluded.url, allow_private = excluded.allow_private,
                    dialect = COALESCE(\(dialect), event_endpoints.dialect)
                """)
            try connection.run(
                """
                INSERT INTO endpoint_health (endpoint_id) SELECT id FROM event_endpoints WHERE group_id = \(group.number)
                ON CONFLICT (endpoint_id) DO UPDATE SET failures = 0, retry_at = 0, last_error = NULL
                """)
            let endpoint = try find(connection, Self.uncounted, group: group, team: id)
            try connection.audit(change, "endpoint.set", "team:\(id)", "app:\(group.title) \(url)")
            return endpoint.number
        }
        try database.makeAllDue(number)
        signal.raise()
        guard let row = try database.row("\(Self.select) WHERE e.id = \(number)") else {
            throw .refused(
                .notFound, "the endpoint was removed in the meantime: see postern endpoint show")
        }
        return try EventEndpoint(row: row)
    }

    /// Records the result of a test delivery. The endpoint's pause and its waiting events stay
    /// unchanged, because the response to a test says nothing about them.
    /// - Parameter reason: the reason of a failure; nil if the endpoint accepted the event.
    package func noteTest(
        _ endpoint: EventEndpoint, failure reason: String?, now: Int64
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                reason == nil
                    ? """
                    UPDATE endpoint_health SET last_success_at = \(now),
                        last_error = CASE WHEN failures = 0 THEN NULL ELSE last_error END
                    WHERE endpoint_id = \(endpoint.number)
                    """
                    : "UPDATE endpoint_health SET last_error = \(reason) WHERE endpoint_id = \(endpoint.number)"
            )
        }
    }

    /// The endpoint of an app's group; `notFound` if it has none.
    package func endpoint(
        team id: String, app clientID: String?
    ) throws(StoreFailure) -> EventEndpoint {
        try database.read { connection throws(StoreFailure) in
            try find(
                connection, group: group(connection, team: connection.team(id), app: clientID),
                team: id)
        }
    }

    /// The endpoints of a team, or all endpoints. Endpoints of removed groups that still have
    /// events are only in the list of all.
    /// - Parameter isCounted: if false, `pending` and `parked` are 0, because counting reads the
    ///   outbox.
    package func endpoints(
        team id: String? = nil, isCounted: Bool = true
    ) throws(StoreFailure) -> [EventEndpoint] {
        let select = isCounted ? Self.select : Self.uncounted
        return try database.read { connection throws(StoreFailure) in
            guard let id else {
                return try connection.rows("\(select) WHERE e.removed_at IS NULL ORDER BY e.id")
                    .map(
                        EventEndpoint.init(row:))
            }
            let team = try connection.team(id)
            return try connection.rows(
                "\(select) WHERE \(Self.isOf(team: team.number)) AND e.removed_at IS NULL ORDER BY e.id"
            ).map(EventEndpoint.init(row:))
        }
    }

    /// Removes the endpoint with all its waiting events: no more events are delivered to it. The
    /// events, which may be many, stay until `RemovalRepository` has deleted them, but no query
    /// finds them.
    /// - Parameter isOfMailAlone: if no app is named, whether to remove the endpoint of consents
    ///   from before the team had apps.
    package func remove(
        team id: String, app clientID: String?, isOfMailAlone: Bool = false, _ change: Change
    ) throws(StoreFailure) {
        func group(_ connection: any DatabaseConnection) throws(StoreFailure) -> AppGroup {
            let team = try connection.team(id)
            guard isOfMailAlone else {
                return try self.group(connection, team: team, app: clientID)
            }
            let row = try connection.row(
                """
                SELECT id AS group_id, primary_client_id FROM app_groups
                WHERE team_id = \(team.number) AND primary_client_id IS NULL ORDER BY id LIMIT 1
                """)
            guard let row else { throw Self.unknown(id) }
            return try AppGroup(row: row)
        }
        // Counted before the transaction, because other writers wait for the transaction.
        let pending = try database.read { connection throws(StoreFailure) in
            try find(connection, group: group(connection), team: id).pending
        }
        try database.write(.durable) { connection throws(StoreFailure) in
            let group = try group(connection)
            let endpoint = try find(connection, Self.uncounted, group: group, team: id)
            try connection.run(
                "UPDATE event_endpoints SET group_id = NULL, removed_at = \(change.now) WHERE id = \(endpoint.number)"
            )
            try connection.audit(
                change, "endpoint.remove", "team:\(id)",
                "app:\(group.title) with \(pending) pending events")
        }
    }

    private func group(
        _ connection: any DatabaseConnection, team: Team, app clientID: String?
    ) throws(StoreFailure) -> AppGroup {
        if let clientID { return try connection.appGroup(team: team, clientID: clientID) }
        guard let group = try connection.knownUsualGroup(team: team) else {
            throw Self.unknown(team.id)
        }
        return group
    }

    private func find(
        _ connection: any DatabaseConnection, _ select: SQL = select, group: AppGroup, team: String
    ) throws(StoreFailure) -> EventEndpoint {
        let row = try connection.row("\(select) WHERE e.group_id = \(group.number)")
        guard let row else { throw Self.unknown(team) }
        return try EventEndpoint(row: row)
    }

    /// Whether endpoint `e` belongs to an app of a team, streams included.
    static func isOf(team: Int64) -> SQL {
        """
        (e.group_id IN (SELECT id FROM app_groups WHERE team_id = \(team))
            OR e.stream_group IN (SELECT id FROM app_groups WHERE team_id = \(team)))
        """
    }

    private static func unknown(_ team: String) -> StoreFailure {
        .refused(.notFound, "team \(team) has no such endpoint: see postern endpoint show \(team)")
    }

    static let select = select(
        pending:
            "(SELECT COUNT(*) FROM outbox o WHERE o.endpoint_id = e.id AND o.state = 'pending')",
        parked: "(SELECT COUNT(*) FROM outbox o WHERE o.endpoint_id = e.id AND o.state = 'parked')")
    static let uncounted = select(pending: "0", parked: "0")

    private static func select(pending: SQL, parked: SQL) -> SQL {
        """
        SELECT e.id, COALESCE(e.group_id, e.stream_group) AS group_id, e.audience, e.url, e.allow_private, e.dialect, h.failures,
            h.retry_at, h.last_error, h.last_success_at, e.created_at, s.stream_id, s.is_polled, s.status,
            \(pending) AS pending, \(parked) AS parked
        FROM event_endpoints e JOIN endpoint_health h ON h.endpoint_id = e.id
        LEFT JOIN event_streams s ON s.endpoint_id = e.id
        """
    }
}

extension EventEndpoint {
    /// From the columns of `EndpointRepository.select`.
    init(row: SQLRow) throws(StoreFailure) {
        let url: EndpointURL
        do { url = try EndpointURL(row["url"]) } catch  where error.isRefusal {
            throw .permanent(.unexpectedData, "an endpoint's URL cannot be read")
        }
        try self.init(
            number: row["id"], groupNumber: row["group_id"], audience: row["audience"], url: url,
            allowsPrivate: row["allow_private"], failures: row["failures"],
            retryAt: row["retry_at"],
            lastError: row["last_error"], lastSuccessAt: row["last_success_at"],
            createdAt: row["created_at"],
            pending: row["pending"], parked: row["parked"], dialect: row["dialect"],
            stream: StreamState(row: row))
    }
}
