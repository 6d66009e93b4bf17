// The limit by consequence in the store: standings, the reviews that change them, and decisions of
// administrators.

import Database
import MailCrypto
import RelayCore
import Support

extension DeliveryStanding: SQLCodable {}
extension DeliveryCause: SQLCodable {}

/// What an administrator decided about a team's mail to a provider.
package enum DeliveryDecision: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case allow, hold
}

/// The standing of a team at a provider, with what it is based on.
package struct DeliveryLimit: Sendable, Hashable {
    /// The team's identifier.
    package let team: String
    package let provider: ProviderFamily
    /// The standing by the figures. `inForce` is the one that counts.
    package let standing: DeliveryStanding
    /// When it began, in seconds since 1970.
    package let since: Int64
    package let cause: DeliveryCause?
    /// Messages, complaints or refusals, and different users, of seven days up to the last step.
    package let messages: Int
    package let events: Int
    package let users: Int
    package let decision: DeliveryDecision?
    /// Nil: until it is lifted.
    package let decisionUntil: Int64?
    package let decisionReason: String?

    /// Whether the administrator's decision counts at a time.
    package func isDecided(now: Int64) -> Bool {
        decision != nil && decisionUntil.map { $0 > now } ?? true
    }

    /// The standing that counts at a time.
    package func inForce(now: Int64) -> DeliveryStanding {
        guard isDecided(now: now) else { return standing }
        return decision == .hold ? .held : .open
    }

    /// The figures of the last step in words.
    package var figures: String {
        guard let cause else { return "" }
        return
            "\(events) \(cause.rawValue) of \(users) users among \(messages) messages in \(DeliveryRules.days) days"
    }

    /// The state for `postern status`, and whether all mail waits; nil if mail is open.
    package func sentence(now: Int64) -> (text: String, isHeld: Bool)? {
        let state = inForce(now: now)
        guard state != .open else { return nil }
        let mail = "mail of team \(team) to \(provider) is \(state.rawValue) (451)"
        guard isDecided(now: now) else { return ("\(mail) after \(figures)", state == .held) }
        let end = decisionUntil.map { "until \(UTCTime.text($0))" } ?? "until it is lifted"
        return (
            "\(mail) \(end), as an administrator decided (\(decisionReason ?? ""))", state == .held
        )
    }

    init(row: SQLRow) throws(StoreFailure) {
        team = try row["handle"]
        provider = try row["provider"]
        standing = try row["standing"]
        since = try row["since"]
        cause = try row["cause"]
        messages = try row["messages"]
        events = try row["events"]
        users = try row["users"]
        decision = try row["decision"]
        decisionUntil = try row["decision_until"]
        decisionReason = try row["decision_reason"]
    }
}

/// A change of a standing.
package struct DeliveryStep: Sendable, Hashable {
    package let team: String
    package let provider: ProviderFamily
    package let standing: DeliveryStanding
    package let cause: DeliveryCause?
    package let messages: Int
    package let events: Int
    package let users: Int
}

extension DeliveryRepository {
    /// All standings that are not open, and all decisions; few.
    package func limits(now: Int64) throws(StoreFailure) -> [DeliveryLimit] {
        try database.rows(
            """
            SELECT t.handle, s.provider, s.standing, s.since, s.cause, s.messages, s.events, s.users, s.decision,
                s.decision_until, s.decision_reason
            FROM delivery_standings s JOIN teams t ON t.id = s.team_id AND t.removed_at IS NULL
            ORDER BY t.handle, s.provider
            """
        ).map(DeliveryLimit.init(row:)).filter { $0.standing != .open || $0.isDecided(now: now) }
    }

    /// Forwards of a team to a provider within an hour (since 1970).
    func forwarded(
        team: String, provider: ProviderFamily, hour: Int64
    ) throws(StoreFailure) -> Int {
        try database.value(
            """
            SELECT x.count FROM delivery_results x JOIN teams t ON t.id = x.team_id
            WHERE t.handle = \(team) AND x.hour = \(hour) AND x.provider = \(provider)
                AND x.outcome = \(DeliveryOutcome.forwarded)
            """) ?? 0
    }

    /// Compares the figures of all teams with the rules, and changes standings: each with a line in
    /// the audit and an event to the team. Any host may call it, also side by side.
    /// - Returns: what changed.
    package func review(
        _ rules: DeliveryRules, now: Int64
    ) throws(StoreFailure) -> [DeliveryStep] {
        let today = Day.number(now)
        let (week, latest, limits) = try database.read { connection throws(StoreFailure) in
            try (
                connection.evidence(sinceDay: today - DeliveryRules.days + 1),
                connection.evidence(sinceDay: today - 1), connection.standings()
            )
        }
        var steps: [DeliveryStep] = []
        for key in Set(week.keys).union(limits.keys).sorted(by: { $0.order < $1.order }) {
            let known = limits[key]
            let evidence = week[key] ?? DeliveryEvidence()
            guard
                let next = rules.review(
                    known?.standing ?? .open, since: known?.since ?? 0, week: evidence,
                    latest: latest[key] ?? DeliveryEvidence(), now: now)
            else { continue }
            let figures = (next.cause ?? known?.cause).map(evidence.count) ?? (0, 0)
            let step = try events.database.write(.durable) { connection throws(StoreFailure) in
                try connection.step(
                    key, from: known, to: next.standing, cause: next.cause,
                    messages: evidence.messages, figures: figures, now: now)
            }
            guard let step else { continue }
            steps.append(step)
            events.signal.raise()
        }
        return steps
    }

    /// Records an administrator's decision.
    /// - Parameters:
    ///   - until: seconds since 1970; nil until it is lifted.
    ///   - reason: a text for the audit and `postern delivery show`.
    package func decide(
        _ decision: DeliveryDecision, team: Team, provider: ProviderFamily, until: Int64?,
        reason: String, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO delivery_standings (team_id, provider, standing, since, messages, events, users, decision,
                    decision_until, decision_reason)
                VALUES (\(team.number), \(provider), \(DeliveryStanding.open), \(change.now), 0, 0, 0, \(decision), \(until),
                    \(reason))
                ON CONFLICT (team_id, provider) DO UPDATE SET decision = excluded.decision,
                    decision_until = excluded.decision_until, decision_reason = excluded.decision_reason
                """)
            try connection.audit(
                change, "delivery.\(decision.rawValue)", "team:\(team.id)",
                "\(provider) \(until.map { "until \($0)" } ?? "until lifted"): \(reason)")
        }
    }

    /// Ends an administrator's decision; the figures count again. Refused if there is none.
    package func lift(
        team: Team, provider: ProviderFamily, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard
                try connection.run(
                    """
                    UPDATE delivery_standings SET decision = NULL, decision_until = NULL, decision_reason = NULL
                    WHERE team_id = \(team.number) AND provider = \(provider) AND decision IS NOT NULL
                    """) > 0
            else {
                throw .refused(
                    .notFound, "nothing was decided about mail of \(team.id) to \(provider)")
            }
            try connection.run(
                """
                DELETE FROM delivery_standings WHERE team_id = \(team.number) AND provider = \(provider)
                    AND standing = \(DeliveryStanding.open)
                """)
            try connection.audit(
                change, "delivery.lift", "team:\(team.id)", provider.rawValue)
        }
    }
}

/// A team, by its number, at a provider.
private struct LimitKey: Hashable {
    let team: Int64
    let provider: ProviderFamily

    var order: (Int64, String) { (team, provider.rawValue) }
}

private struct KnownStanding: Hashable {
    let standing: DeliveryStanding
    let since: Int64
    let cause: DeliveryCause?
}

extension DatabaseConnection {
    /// The figures of the days since one (since 1970), of teams and providers with any mark.
    fileprivate func evidence(
        sinceDay day: Int64
    ) throws(StoreFailure) -> [LimitKey: DeliveryEvidence] {
        var found: [LimitKey: DeliveryEvidence] = [:]
        for row in try rows(
            """
            SELECT x.team_id, x.provider, x.what, COUNT(*) AS events, COUNT(DISTINCT x.user_id) AS users
            FROM \(DeliveryMark.all) x JOIN teams t ON t.id = x.team_id AND t.removed_at IS NULL
            WHERE x.day >= \(day) GROUP BY x.team_id, x.provider, x.what
            """)
        {
            let key = try LimitKey(team: row["team_id"], provider: row["provider"])
            let (events, users): (Int, Int) = try (row["events"], row["users"])
            switch try row["what"] as DeliveryMark {
            case .complaint:
                found[key, default: DeliveryEvidence()].complaints = events
                found[key]?.complainingUsers = users
            case .reputation:
                found[key, default: DeliveryEvidence()].refusals = events
                found[key]?.refusedUsers = users
            }
        }
        for key in found.keys {
            found[key]?.messages =
                try value(
                    """
                    SELECT CAST(SUM(count) AS BIGINT) FROM delivery_results
                    WHERE team_id = \(key.team) AND hour >= \(day * 24) AND provider = \(key.provider)
                        AND outcome = \(DeliveryOutcome.forwarded)
                    """) ?? 0
        }
        return found
    }

    fileprivate func standings() throws(StoreFailure) -> [LimitKey: KnownStanding] {
        var found: [LimitKey: KnownStanding] = [:]
        for row in try rows(
            "SELECT team_id, provider, standing, since, cause FROM delivery_standings WHERE standing <> 'open'"
        ) {
            found[try LimitKey(team: row["team_id"], provider: row["provider"])] =
                try KnownStanding(
                    standing: row["standing"], since: row["since"], cause: row["cause"])
        }
        return found
    }

    /// Changes a standing, unless another host changed it. Returns nil if it did.
    fileprivate func step(
        _ key: LimitKey, from known: KnownStanding?, to standing: DeliveryStanding,
        cause: DeliveryCause?, messages: Int, figures: (events: Int, users: Int), now: Int64
    ) throws(StoreFailure) -> DeliveryStep? {
        let row = try row(
            """
            SELECT t.handle, s.standing FROM teams t
            LEFT JOIN delivery_standings s ON s.team_id = t.id AND s.provider = \(key.provider)
            WHERE t.id = \(key.team) AND t.removed_at IS NULL
            """)
        guard let row,
            (try row["standing"] as DeliveryStanding? ?? .open) == known?.standing ?? .open
        else { return nil }
        let team: String = try row["handle"]
        try run(
            """
            INSERT INTO delivery_standings (team_id, provider, standing, since, cause, messages, events, users)
            VALUES (\(key.team), \(key.provider), \(standing), \(now), \(cause), \(messages), \(figures.events), \(figures.users))
            ON CONFLICT (team_id, provider) DO UPDATE SET standing = excluded.standing, since = excluded.since,
                cause = excluded.cause, messages = excluded.messages, events = excluded.events, users = excluded.users
            """)
        if standing == .open {
            try run(
                """
                DELETE FROM delivery_standings WHERE team_id = \(key.team) AND provider = \(key.provider) AND decision IS NULL
                """)
        }
        let shown = cause ?? known?.cause
        let words =
            "\(figures.events) \(shown?.rawValue ?? "events") of \(figures.users) users among \(messages) messages in \(DeliveryRules.days) days"
        try audit(
            Change(actor: "relay", now: now), "delivery.\(standing.rawValue)", "team:\(team)",
            "\(key.provider): \(words)")
        // The provider is not named: the team could see whose mail waits, and so learn the provider
        // of these users.
        var detail: JSONObject = [
            "state": .string(standing.rawValue), "messages": .integer(Int64(messages)),
            "events": .integer(Int64(figures.events)), "users": .integer(Int64(figures.users)),
        ]
        detail["cause"] = shown.map { .string($0.rawValue) }
        try tell(team: key.team, handle: team, detail: JSONValue.object(detail).text, now: now)
        return DeliveryStep(
            team: team, provider: key.provider, standing: standing, cause: shown,
            messages: messages, events: figures.events, users: figures.users)
    }

    /// Notifies every endpoint and every stream of a team.
    private func tell(
        team: Int64, handle: String, detail: String, now: Int64
    ) throws(StoreFailure) {
        let endpoints = try rows(
            """
            SELECT e.id, e.dialect, s.types, s.stream_id FROM event_endpoints e
            LEFT JOIN app_groups g ON g.id = e.group_id
            LEFT JOIN event_streams s ON s.endpoint_id = e.id
            WHERE (g.team_id = \(team) OR s.team_id = \(team) AND s.status <> 'disabled' AND e.stream_group IS NOT NULL)
                AND e.removed_at IS NULL ORDER BY e.id
            """)
        for endpoint in endpoints
        where try WantedEvents(row: endpoint).contains(.deliveryLimit) {
            let (id, stream): (Int64, String?) = try (endpoint["id"], endpoint["stream_id"])
            let jti = Base32.characters(fromRandom: try SecureRandom.octets(32))
            // Not about an account: ordered as events of account 0.
            try post(
                .deliveryLimit, endpoint: id, account: 0, sub: stream ?? handle, email: nil,
                detail: detail, jti: jti, txn: jti, at: EventMoment(now))
        }
    }
}
