// Claims to domains and addresses. Teams make them and give them up; DNS checks prove and stop
// claims to domains.

import Database
import MailCrypto

/// Stores claims. When a claim is proved, its domain or address becomes an active source.
package struct SourceClaimRepository: Sendable {
    let events: AccountEvents
    let sources: SourceRepository
    let secrets: SecretHash
    let index: BlindIndex
    var database: any Database { events.database }

    /// Claims a domain or an address for a team; a repetition returns the existing claim. Throws
    /// `invalid` as `SourceRepository.checked` does, `exists` if the administrator registered it,
    /// and `limit`.
    package func claim(
        team id: String, _ text: String, _ change: Change
    ) throws(StoreFailure) -> SourceClaim {
        let source = try sources.checked(text, envelopeDomain: nil, now: change.now)
        let token = String(try SecretHash.newToken().prefix(32))
        return try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            if let known = try connection.claim(team: team.number, source.value) { return known }
            guard try !connection.isSource(source.value, of: team.number) else {
                throw .refused(.exists, "\(source.value) is already registered for team \(id)")
            }
            try connection.checkSourceRoom(team)
            try connection.run(
                """
                INSERT INTO source_claims (team_id, kind, value, token, state, created_at, next_check_at)
                VALUES (\(team.number), \(source.kind), \(source.value), \(token), 'pending', \(change.now),
                    \(SourceClaim.firstCheck(of: source.kind, now: change.now)))
                """)
            try connection.audit(change, "source.claim", "team:\(id)", source.value)
            guard let made = try connection.claim(team: team.number, source.value) else {
                throw .permanent(.unexpectedData, "a claim that was just made is not there")
            }
            return made
        }
    }

    /// A team's claims, ordered by domain or address.
    package func claims(team id: String) throws(StoreFailure) -> [SourceClaim] {
        try database.read { connection throws(StoreFailure) in
            let team = try connection.team(id)
            return try connection.rows(
                "\(SourceClaim.select) WHERE team_id = \(team.number) ORDER BY value"
            ).map(
                SourceClaim.init(row:))
        }
    }

    /// A team's active sources, and its claims that are not yet or no longer proved, by
    /// value and envelope domain.
    package func list(team id: String, now: Int64) throws(StoreFailure) -> [ListedSource] {
        try database.readAsOne { joined throws(StoreFailure) in
            let at = SourceClaimRepository(
                events: AccountEvents(database: joined, signal: events.signal), sources: sources,
                secrets: secrets, index: index)
            let (claims, codes) = (try at.claims(team: id), try at.codes(team: id, now: now))
            let byValue = Dictionary(
                claims.map { ($0.value, $0) }, uniquingKeysWith: { first, _ in first })
            let serving = try joined.read { connection throws(StoreFailure) in
                try connection.sources(teamNumber: connection.team(id).number)
            }
            let all =
                serving.map {
                    ListedSource($0, $0.envelopeDomain == nil ? byValue[$0.value] : nil, nil)
                }
                + claims.filter { $0.state != .proved }.map {
                    ListedSource(OutboundSource(waiting: $0), $0, codes[$0.value])
                }
            return all.sorted {
                ($0.source.value, $0.source.envelopeDomain ?? "") < (
                    $1.source.value, $1.source.envelopeDomain ?? ""
                )
            }
        }
    }

    /// A team's claim to a domain or an address. Throws `notFound`.
    package func claim(team id: String, to text: String) throws(StoreFailure) -> SourceClaim {
        try database.read { connection throws(StoreFailure) in
            try connection.claim(of: connection.team(id), to: SourceRepository.normal(text))
        }
    }

    /// Claims that are due for a check, the longest overdue first.
    package func due(now: Int64, limit: Int) throws(StoreFailure) -> [SourceClaim] {
        try database.rows(
            "\(SourceClaim.select) WHERE next_check_at <= \(now) ORDER BY next_check_at, id LIMIT \(limit)"
        ).map(
            SourceClaim.init(row:))
    }

    /// Records the result of a DNS check: the source starts, continues or stops,
    /// and its team is notified.
    /// - Parameter claim: the claim as it was checked. If it was given up and claimed again since,
    ///   its token differs, and nothing is written.
    /// - Returns: the claim after the change; nil if it does not exist any longer.
    @discardableResult
    package func record(
        _ proof: SourceClaim.Proof, of claim: SourceClaim, _ change: Change
    ) throws(StoreFailure) -> SourceClaim? {
        let (result, isTold) = try database.write(.durable) {
            connection throws(StoreFailure) -> (SourceClaim?, Bool) in
            let row = try connection.row(
                "\(SourceClaim.select) WHERE id = \(claim.number) AND token = \(claim.token)")
            guard
                let known = try row.map({ row throws(StoreFailure) in try SourceClaim(row: row) }),
                let team = try connection.row(
                    "SELECT \(Team.columns) FROM teams t WHERE t.id = \(known.teamNumber) AND t.removed_at IS NULL"
                ).map({ row throws(StoreFailure) in try Team(row: row) })
            else { return (nil, false) }
            guard let (next, event) = known.after(proof, now: change.now) else {
                try connection.run("DELETE FROM source_claims WHERE id = \(known.number)")
                try connection.audit(change, "source.claim.expire", "team:\(team.id)", known.value)
                return (nil, false)
            }
            try connection.write(next, after: known, of: team, change)
            let told = try event.map { event throws(StoreFailure) in
                try connection.tell(event, team, next, change.now)
            }
            return (next, told ?? false)
        }
        if isTold { events.signal.raise() }
        return result
    }

    /// Gives up a domain or an address: the source is no longer active. Throws `notFound`.
    package func remove(team id: String, _ text: String, _ change: Change) throws(StoreFailure) {
        let value = SourceRepository.normal(text)
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            let claims = try connection.run(
                "DELETE FROM source_claims WHERE team_id = \(team.number) AND value = \(value)")
            let served = try connection.run(
                "DELETE FROM outbound_sources WHERE team_id = \(team.number) AND value = \(value)")
            guard claims + served > 0 else {
                throw .refused(.notFound, "\(value) is not a source of this team")
            }
            try connection.audit(change, "source.remove", "team:\(id)", value)
        }
    }
}

extension SourceClaim {
    fileprivate static let select: SQL = """
        SELECT id, team_id, kind, value, token, state, created_at, proved_at, failing_since, warned_at, next_check_at
        FROM source_claims
        """

    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["id"], teamNumber: row["team_id"], kind: row["kind"], value: row["value"],
            token: row["token"],
            state: row["state"],
            createdAt: row["created_at"], provedAt: row["proved_at"],
            failingSince: row["failing_since"],
            warnedAt: row["warned_at"], nextCheckAt: row["next_check_at"])
    }
}

extension DatabaseConnection {
    /// Refuses further sources if the team has the maximum; claims count too.
    func checkSourceRoom(_ team: Team, adding more: Int = 1) throws(StoreFailure) {
        let count: Int? = try value(
            """
            SELECT (SELECT COUNT(*) FROM outbound_sources WHERE team_id = \(team.number))
                + (SELECT COUNT(*) FROM source_claims WHERE team_id = \(team.number) AND state <> 'proved') AS count
            """)
        guard (count ?? 0) + more <= SourceRepository.maximumPerTeam else {
            throw .refused(
                .limit,
                "team \(team.id) has \(SourceRepository.maximumPerTeam) sources, which is the maximum: remove one, or register a parent domain"
            )
        }
    }

    fileprivate func claim(team: Int64, _ value: String) throws(StoreFailure) -> SourceClaim? {
        try row("\(SourceClaim.select) WHERE team_id = \(team) AND value = \(value)").map {
            row throws(StoreFailure) in
            try SourceClaim(row: row)
        }
    }

    /// A team's claim to a domain or an address, or `notFound`.
    func claim(of team: Team, to value: String) throws(StoreFailure) -> SourceClaim {
        guard let found = try claim(team: team.number, value) else {
            throw .refused(.notFound, "there is no claim to this domain or address")
        }
        return found
    }

    fileprivate func isSource(_ value: String, of team: Int64) throws(StoreFailure) -> Bool {
        try row(
            "SELECT id FROM outbound_sources WHERE team_id = \(team) AND value = \(value) AND envelope_domain = ''"
        ) != nil
    }

    /// Writes the new state of a claim, and adds or removes its source.
    func write(
        _ next: SourceClaim, after known: SourceClaim, of team: Team, _ change: Change
    ) throws(StoreFailure) {
        try run(
            """
            UPDATE source_claims SET state = \(next.state), proved_at = \(next.provedAt), failing_since = \(next.failingSince),
                warned_at = \(next.warnedAt), next_check_at = \(next.nextCheckAt) WHERE id = \(known.number)
            """)
        if next.state != known.state { try serve(next, of: team, change) }
    }

    /// Adds a claim's domain or address to the sources, or removes it.
    fileprivate func serve(
        _ claim: SourceClaim, of team: Team, _ change: Change
    ) throws(StoreFailure) {
        if claim.state == .proved {
            try run(
                """
                INSERT INTO outbound_sources (team_id, kind, value, envelope_domain, created_at)
                VALUES (\(team.number), \(claim.kind), \(claim.value), '', \(change.now))
                ON CONFLICT (team_id, value, envelope_domain) DO NOTHING
                """)
        } else {
            try run(
                """
                DELETE FROM outbound_sources WHERE team_id = \(team.number) AND value = \(claim.value) AND envelope_domain = ''
                """)
        }
        try audit(
            change, claim.state == .proved ? "source.prove" : "source.stop", "team:\(team.id)",
            claim.value)
    }

    /// Notifies every endpoint of a team about one of its domains. Returns whether the team has any
    /// endpoint.
    fileprivate func tell(
        _ event: EventType, _ team: Team, _ claim: SourceClaim, _ now: Int64
    ) throws(StoreFailure) -> Bool {
        let endpoints: [Int64] = try values(
            """
            SELECT e.id FROM event_endpoints e JOIN app_groups g ON g.id = e.group_id
            WHERE g.team_id = \(team.number) AND e.removed_at IS NULL ORDER BY e.id
            """)
        for endpoint in endpoints {
            // These events are not about an account: they are ordered as events of account 0.
            try post(
                event, endpoint: endpoint, account: 0, sub: claim.value, email: nil,
                jti: String(SecretHash.newToken().prefix(32)),
                at: EventMoment(now))
        }
        return !endpoints.isEmpty
    }
}
