// Streams in the store: created and changed by their receivers, stopped by the operator.

import Accounts
import Database
import MailCrypto
import SharedSignals
import Support

/// Creates, finds, changes and removes streams: one for each group of apps, in
/// addition to its endpoint.
package struct StreamRepository: Sendable {
    let database: any Database
    let sealer: Sealer
    let signal: OutboxSignal

    /// The owner of streams.
    package struct Owner: Sendable, Hashable {
        package let team: String
        /// The group of an app's access token; nil for all groups of the team.
        package let group: Int64?

        package init(team: String, group: Int64?) { (self.team, self.group) = (team, group) }
    }

    /// Rules of an installation.
    package struct Rules: Sendable, Hashable {
        /// Our own `iss`.
        package let issuer: String
        /// Whether receivers may be at addresses that are not globally reachable, and use http.
        package let allowsPrivate: Bool

        package init(issuer: String, allowsPrivate: Bool) {
            (self.issuer, self.allowsPrivate) = (issuer, allowsPrivate)
        }
    }

    /// Verification events that may wait in a stream at the same time.
    static let maximumVerifications = 10

    // MARK: By receivers

    /// Creates a stream.
    /// - Parameter clientID: an app of the group. Nil for the owner's group; without one, for the
    ///   group of consents without an app.
    /// - Throws: `exists` if the group already has a stream.
    package func add(
        _ owner: Owner, app clientID: String?, _ request: StreamRequest, _ rules: Rules,
        _ change: Change
    ) throws(StoreFailure) -> EventStream {
        let id = Base32.characters(fromRandom: try SecureRandom.octets(32))
        let delivery = request.delivery ?? .poll
        let place = try Place(delivery, stream: id, rules)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(owner.team)
            let group: AppGroup
            if let clientID {
                group = try connection.appGroup(team: team, clientID: clientID)
            } else if let number = owner.group {
                let row = try connection.row(
                    "SELECT id AS group_id, primary_client_id FROM app_groups WHERE id = \(number) AND team_id = \(team.number)"
                )
                guard let row else { throw .refused(.notFound, "the app was removed") }
                group = try AppGroup(row: row)
            } else {
                group = try connection.usualGroup(team: team, change)
            }
            guard owner.group == nil || owner.group == group.number else {
                throw .refused(.notFound, "aud is not the requesting app")
            }
            let known = try connection.row(
                "SELECT id FROM event_endpoints WHERE stream_group = \(group.number)")
            guard known == nil else { throw .refused(.exists, "the app has a stream already") }
            let endpoint = try connection.inserted(
                """
                INSERT INTO event_endpoints (stream_group, audience, url, allow_private, dialect, created_at)
                VALUES (\(group.number), \(group.primaryClientID ?? team.id), \(place.url.description), \(rules.allowsPrivate),
                    \(EventDialect.sharedSignals), \(change.now)) RETURNING id
                """)
            try connection.run("INSERT INTO endpoint_health (endpoint_id) VALUES (\(endpoint))")
            let sealed = try seal(place.authorization, id, connection)
            try connection.run(
                """
                INSERT INTO event_streams (endpoint_id, stream_id, team_id, is_polled, requested, types, description,
                    authorization_key, authorization_sealed, refusals_until, created_at)
                VALUES (\(endpoint), \(id), \(team.number), \(place.isPolled), \(Self.text(request.eventsRequested)),
                    \(StreamEvents.types(request.eventsRequested)), \(request.streamDescription), \(sealed?.key),
                    \(sealed?.octets), \(change.now / 3_600 - 1), \(change.now))
                """)
            try connection.audit(
                change, "stream.add", "team:\(team.id)",
                "stream \(id) app:\(group.title) \(place.audited)")
            return try find(connection, owner, id)
        }
    }

    /// All streams of an owner, the oldest first.
    package func streams(_ owner: Owner) throws(StoreFailure) -> [EventStream] {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(owner.team)
            return try connection.rows(
                "\(EventStream.uncounted) WHERE \(Self.isOf(owner, team)) ORDER BY s.endpoint_id"
            ).map(
                EventStream.init(row:))
        }
    }

    /// One stream of an owner; `notFound` for another owner's.
    package func stream(_ owner: Owner, _ id: String) throws(StoreFailure) -> EventStream {
        try database.read { connection throws(StoreFailure) in try find(connection, owner, id) }
    }

    /// Changes a stream: the members in the request or, in a replacement, all
    /// members that the receiver sets.
    /// - Throws: `invalid` for a replacement without `delivery`, and for wrong values of members
    ///   that Postern sets.
    package func update(
        _ owner: Owner, _ request: StreamRequest, isReplacement: Bool, _ rules: Rules,
        _ change: Change
    ) throws(StoreFailure) -> EventStream {
        let id = request.streamID ?? ""
        let place = try request.delivery.map { delivery throws(StoreFailure) in
            try Place(delivery, stream: id, rules)
        }
        let stream = try database.write(.durable) { connection throws(StoreFailure) in
            let was = try find(connection, owner, id)
            if let name = request.falseMember(of: was.configuration(issuer: rules.issuer)) {
                throw .refused(
                    .invalid, "\(name) differs from the stream's value, which cannot be changed")
            }
            guard place != nil || !isReplacement else {
                throw .refused(.invalid, "delivery is missing")
            }
            if let place {
                try connection.run(
                    """
                    UPDATE event_endpoints SET url = \(place.url.description), allow_private = \(rules.allowsPrivate)
                    WHERE id = \(was.number)
                    """)
                let sealed = try seal(place.authorization, id, connection)
                try connection.run(
                    """
                    UPDATE event_streams SET is_polled = \(place.isPolled), authorization_key = \(sealed?.key),
                        authorization_sealed = \(sealed?.octets) WHERE endpoint_id = \(was.number)
                    """)
                try connection.run(
                    "UPDATE endpoint_health SET failures = 0, retry_at = 0, last_error = NULL WHERE endpoint_id = \(was.number)"
                )
            }
            if isReplacement || request.eventsRequested != nil {
                try connection.run(
                    """
                    UPDATE event_streams SET requested = \(Self.text(request.eventsRequested)),
                        types = \(StreamEvents.types(request.eventsRequested)) WHERE endpoint_id = \(was.number)
                    """)
            }
            if isReplacement || request.streamDescription != nil {
                try connection.run(
                    "UPDATE event_streams SET description = \(request.streamDescription) WHERE endpoint_id = \(was.number)"
                )
            }
            try connection.audit(
                change, isReplacement ? "stream.replace" : "stream.change", "team:\(owner.team)",
                "stream \(id) \(place?.audited ?? "")")
            return try find(connection, owner, id)
        }
        // Waiting events go to the new URL at once.
        if place != nil { try database.makeAllDue(stream.number) }
        signal.raise()
        return stream
    }

    /// Removes a stream with all its waiting events.
    package func remove(_ owner: Owner, _ id: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try Self.remove(connection, try find(connection, owner, id), change)
        }
    }

    /// Removes any stream, for the operator.
    package func remove(_ id: String, _ change: Change) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try Self.remove(connection, try find(connection, id), change)
        }
    }

    private static func remove(
        _ connection: any DatabaseConnection, _ stream: EventStream, _ change: Change
    ) throws(StoreFailure) {
        try connection.run("DELETE FROM event_streams WHERE endpoint_id = \(stream.number)")
        try connection.run(
            """
            UPDATE event_endpoints SET group_id = NULL, stream_group = NULL, removed_at = \(change.now)
            WHERE id = \(stream.number)
            """)
        try connection.audit(
            change, "stream.remove", "team:\(stream.teamID ?? "-")", "stream \(stream.id)")
    }

    /// Removes a subject from a stream, or adds it again; at the beginning all are in it. An
    /// unknown subject is ignored, so that no receiver can find out which addresses exist.
    /// - Parameter issuer: our own `iss`, for subjects of format `iss_sub`.
    package func set(
        _ owner: Owner, _ request: SubjectRequest, isIn: Bool, issuer: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let stream = try find(connection, owner, request.streamID)
            let team = try connection.team(owner.team)
            for identifier in request.subject.ofUser {
                guard
                    let account = try Self.account(
                        connection, identifier, team: team.number, issuer: issuer)
                else { continue }
                let key: SQL = "account_id = \(account) AND endpoint_id = \(stream.number)"
                if isIn {
                    try connection.run("DELETE FROM stream_exclusions WHERE \(key)")
                } else {
                    try connection.run(
                        """
                        INSERT INTO stream_exclusions (account_id, endpoint_id) VALUES (\(account), \(stream.number))
                        ON CONFLICT (account_id, endpoint_id) DO NOTHING
                        """)
                }
                try connection.audit(
                    change, isIn ? "stream.add-subject" : "stream.remove-subject",
                    "account:\(account)",
                    "stream \(stream.id)")
            }
        }
    }

    /// The team's account that a subject names.
    private static func account(
        _ connection: any DatabaseConnection, _ subject: SubjectIdentifier, team: Int64,
        issuer: String
    ) throws(StoreFailure) -> Int64? {
        switch subject.subject {
        case .issuerSubject(let named, let sub):
            guard named.utf8.elementsEqual(issuer.utf8) else { return nil }
            return try connection.value(
                "SELECT id FROM accounts WHERE sub = \(sub) AND \(SQL.filter("team_id")) = \(team)")
        case .email(let address):
            guard let at = address.lastIndex(of: "@") else { return nil }
            return try connection.value(
                """
                SELECT a.id FROM relay_addresses r JOIN accounts a ON a.id = r.account_id AND \(SQL.filter("a.team_id")) = \(team)
                WHERE r.local_part = \(address[..<at].lowercased())
                    AND r.domain = \(address[address.index(after: at)...].lowercased())
                """)
        default: return nil
        }
    }

    /// Puts a verification event into a stream; false if `maximumVerifications` already wait.
    package func verify(
        _ owner: Owner, _ request: VerificationRequest, _ change: Change
    ) throws(StoreFailure) -> Bool {
        let isWritten = try database.write(.durable) { connection throws(StoreFailure) in
            let stream = try find(connection, owner, request.streamID)
            guard stream.status != .disabled else {
                throw .refused(.invalid, "the stream is disabled")
            }
            let waiting: Int? = try connection.value(
                """
                SELECT COUNT(*) FROM outbox WHERE endpoint_id = \(stream.number) AND state = 'pending' AND account_id = 0
                    AND type = \(EventType.verification)
                """)
            guard (waiting ?? 0) < Self.maximumVerifications else { return false }
            try connection.postOfItself(.verification, stream, detail: request.state, change.now)
            return true
        }
        signal.raise()
        return isWritten
    }

    // MARK: Status

    /// Sets the status requested by the receiver.
    package func set(
        _ owner: Owner, _ request: StatusRequest, _ change: Change
    ) throws(StoreFailure) -> EventStream {
        try set(request, isOperators: false, change) { connection throws(StoreFailure) in
            try find(connection, owner, request.streamID)
        }
    }

    /// Sets the status requested by the operator, and notifies the receiver (section 8.1.5).
    package func set(_ request: StatusRequest, _ change: Change) throws(StoreFailure) -> EventStream
    {
        try set(request, isOperators: true, change) { connection throws(StoreFailure) in
            try find(connection, request.streamID)
        }
    }

    private func set(
        _ request: StatusRequest, isOperators: Bool, _ change: Change,
        find: TransactionBody<EventStream>
    ) throws(StoreFailure) -> EventStream {
        let was = try database.read(find)
        // A disabled stream keeps no events: new ones are not added, and old ones, if an earlier
        // deletion was interrupted, are deleted here.
        if was.status == .disabled, request.status != .disabled { try discard(was) }
        let stream = try database.write(.durable) { connection throws(StoreFailure) in
            let was = try find(connection)
            try connection.run(
                """
                UPDATE event_streams SET status = \(request.status), reason = \(request.reason)
                WHERE endpoint_id = \(was.number)
                """)
            if isOperators, was.status != request.status {
                var detail: JSONObject = ["status": .string(request.status.rawValue)]
                detail["reason"] = request.reason.map(JSONValue.string)
                try connection.postOfItself(
                    .streamUpdated, was, detail: JSONValue.object(detail).text, change.now)
            }
            try connection.audit(
                change, "stream.status", "stream:\(was.id)", request.status.rawValue)
            return try find(connection)
        }
        if request.status == .disabled { try discard(stream) }
        signal.raise()
        return stream
    }

    /// Deletes the waiting events of a stream, except the one about its status, in steps.
    private func discard(_ stream: EventStream) throws(StoreFailure) {
        var count = OutboxRepository.step
        while count == OutboxRepository.step {
            count = try database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.run(
                    """
                    DELETE FROM outbox WHERE id IN (
                        SELECT id FROM outbox WHERE endpoint_id = \(stream.number) AND state = 'pending'
                            AND type <> \(EventType.streamUpdated) LIMIT \(OutboxRepository.step))
                    """)
            }
        }
    }

    // MARK: Parts

    /// All streams, for the operator.
    package func all() throws(StoreFailure) -> [EventStream] {
        try database.rows("\(EventStream.select) ORDER BY s.endpoint_id").map(
            EventStream.init(row:))
    }

    /// Any stream, for the operator.
    package func stream(_ id: String) throws(StoreFailure) -> EventStream {
        try database.read { connection throws(StoreFailure) in try find(connection, id) }
    }

    /// The Authorization field of a push; nil for none.
    package func authorization(of id: String) throws(StoreFailure) -> String? {
        let row = try database.row(
            "SELECT authorization_key, authorization_sealed FROM event_streams WHERE stream_id = \(id)"
        )
        guard let row, let sealed = try SealedValue(row: row, "authorization") else { return nil }
        return String(decoding: try sealer.open(sealed, .streamAuthorization(id)), as: UTF8.self)
    }

    /// Whether an endpoint accepts all events now; always true for endpoints that are not streams.
    func isMoving(
        _ connection: any DatabaseConnection, endpoint: Int64
    ) throws(StoreFailure) -> Bool {
        let status: StreamStatus? = try connection.value(
            "SELECT status FROM event_streams WHERE endpoint_id = \(endpoint)")
        return status ?? .enabled == .enabled
    }

    private static func isOf(_ owner: Owner, _ team: Team) -> SQL {
        // A key of the team reads its streams even after the app moved to another team. An app's
        // token reads only those of its group.
        if let group = owner.group {
            return "s.team_id = \(team.number) AND e.stream_group = \(group)"
        }
        return "s.team_id = \(team.number)"
    }

    func find(
        _ connection: any DatabaseConnection, _ owner: Owner, _ id: String
    ) throws(StoreFailure) -> EventStream {
        let team = try connection.team(owner.team)
        let row = try connection.row(
            "\(EventStream.uncounted) WHERE s.stream_id = \(id) AND \(Self.isOf(owner, team))")
        guard let row else { throw Self.unknown }
        return try EventStream(row: row)
    }

    private func find(
        _ connection: any DatabaseConnection, _ id: String
    ) throws(StoreFailure) -> EventStream {
        guard let row = try connection.row("\(EventStream.select) WHERE s.stream_id = \(id)") else {
            throw Self.unknown
        }
        return try EventStream(row: row)
    }

    private static let unknown = StoreFailure.refused(
        .notFound, "there is no such stream: see postern stream list")

    private func seal(
        _ authorization: String?, _ id: String, _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> SealedValue? {
        try authorization.map { text throws(StoreFailure) in
            try sealer.seal(text, .streamAuthorization(id), connection)
        }
    }

    private static func text(_ list: [String]?) -> String? {
        list.map { JSONValue.array($0.map(JSONValue.string)).text }
    }
}

/// The place to which a stream's events go.
private struct Place {
    let isPolled: Bool
    let url: EndpointURL
    let authorization: String?

    /// Throws `invalid` for a URL that is not allowed.
    init(
        _ delivery: StreamDelivery, stream: String, _ rules: StreamRepository.Rules
    ) throws(StoreFailure) {
        switch delivery {
        case .poll:
            isPolled = true
            url = try EndpointURL(TransmitterMetadata.pollURL(issuer: rules.issuer, stream: stream))
            authorization = nil
        case .push(let text, let authorization):
            isPolled = false
            url = try EndpointURL(text)
            self.authorization = authorization
            guard url.isSecure || rules.allowsPrivate else {
                throw .refused(.invalid, "endpoint_url must begin with https://")
            }
        }
    }

    var audited: String { isPolled ? "polled" : "pushed to \(url)" }
}

extension DatabaseConnection {
    /// Puts an event about a stream itself into it.
    fileprivate func postOfItself(
        _ type: EventType, _ stream: EventStream, detail: String?, _ now: Int64
    ) throws(StoreFailure) {
        let jti = Base32.characters(fromRandom: try SecureRandom.octets(32))
        try post(
            type, endpoint: stream.number, account: 0, sub: stream.id, email: nil, detail: detail,
            jti: jti, txn: jti,
            at: EventMoment(now))
    }
}
