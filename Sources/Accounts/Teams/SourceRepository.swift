// Outbound sources: the domains and addresses that a team may send from.

import Database
import InternetMessage

/// Adds, finds and removes outbound sources.
package struct SourceRepository: Sendable {
    /// Sources of one team: the same limit as the service that Postern is modelled on.
    package static let maximumPerTeam = 100
    /// Labels of a source's domain; deeper From domains are compared by their last ten labels
    /// only, which bounds the query.
    static let maximumLabels = 10

    let database: any Database
    let relayDomains: [HostName]

    /// Checks and normalises the administrator's input: a domain or an address, and perhaps an
    /// envelope domain. Refuses relay domains, registry domains and whole domains of mailbox
    /// providers.
    package func checked(
        _ text: String, envelopeDomain: String?, now: Int64
    ) throws(StoreFailure) -> OutboundSource {
        let envelope = try envelopeDomain.map { domain throws(StoreFailure) in
            try checkedDomain(domain, "the envelope domain")
        }
        if text.contains("@") {
            let address = try AddrSpec.typed(text).folded
            try refuseRelayDomain(HostName(address.domain))
            return OutboundSource(
                kind: .address, value: address.wireForm, envelopeDomain: envelope?.text,
                createdAt: now)
        }
        let domain = try checkedDomain(text, "the source")
        return OutboundSource(
            kind: .domain, value: domain.text, envelopeDomain: envelope?.text, createdAt: now)
    }

    private func checkedDomain(_ text: String, _ what: String) throws(StoreFailure) -> HostName {
        guard let domain = HostName(text) else {
            throw .refused(.invalid, "\(what) is not a valid domain name: \(text)")
        }
        try refuseRelayDomain(domain)
        if MailboxProviders.isProvider(domain) {
            throw .refused(
                .invalid,
                "\(domain) is a mailbox provider, where anyone can have an address: register the single address instead"
            )
        }
        if MailboxProviders.isRegistry(domain) {
            throw .refused(.invalid, "\(domain) is a public suffix: register a domain below it")
        }
        guard domain.labels.count <= Self.maximumLabels else {
            throw .refused(
                .invalid,
                "\(what) has more than \(Self.maximumLabels) labels: register a parent domain")
        }
        return domain
    }

    private func refuseRelayDomain(_ domain: HostName?) throws(StoreFailure) {
        guard let domain,
            relayDomains.contains(where: { domain.isWithin($0) || $0.isWithin(domain) })
        else { return }
        throw .refused(
            .invalid,
            "\(domain) is or contains a relay domain: teams must send from their own domains")
    }

    /// Registers a source for a team. Refused beyond 100 for a team, and if it is already
    /// registered for that team.
    package func add(
        team id: String, _ source: OutboundSource, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            // The administrator needs no DNS record: a domain that the team proved is registered by
            // the administrator from now on.
            let tookOver =
                source.envelopeDomain == nil
                ? try connection.run(
                    "DELETE FROM source_claims WHERE team_id = \(team.number) AND value = \(source.value)"
                ) : 0
            let added = try connection.row(
                """
                INSERT INTO outbound_sources (team_id, kind, value, envelope_domain, created_at)
                VALUES (\(team.number), \(source.kind), \(source.value), \(source.envelopeDomain ?? ""),
                    \(source.createdAt))
                ON CONFLICT (team_id, value, envelope_domain) DO NOTHING RETURNING id
                """)
            guard added != nil || tookOver > 0 else {
                throw .refused(.exists, "\(source.value) is already registered for team \(id)")
            }
            try connection.checkSourceRoom(team, adding: 0)
            try connection.audit(
                change, "source.add", "team:\(id)",
                source.value + (source.envelopeDomain.map { " envelope \($0)" } ?? ""))
        }
    }

    /// The team's sources by value.
    package func sources(team id: String) throws(StoreFailure) -> [OutboundSource] {
        try database.read { connection throws(StoreFailure) in
            try connection.sources(teamNumber: connection.team(id).number)
        }
    }

    /// The sources of a team by its number: for mail to a relay address.
    package func sources(teamNumber: Int64) throws(StoreFailure) -> [OutboundSource] {
        try database.read { connection throws(StoreFailure) in
            try connection.sources(teamNumber: teamNumber)
        }
    }

    /// Removes a source, with every envelope domain paired with it, or only the pairing with one.
    package func remove(
        team id: String, _ text: String, envelopeDomain: String?, _ change: Change
    ) throws(StoreFailure) {
        try remove(
            team: id, text, onlyEnvelope: envelopeDomain.map { HostName($0)?.text ?? $0 }, change)
    }

    /// Removes one row.
    /// - Parameter envelope: empty for the source without an envelope domain; nil for all of them.
    package func remove(
        team id: String, _ text: String, onlyEnvelope envelope: String?, _ change: Change
    ) throws(StoreFailure) {
        let value = Self.normal(text)
        try database.write(.durable) { connection throws(StoreFailure) in
            let team = try connection.team(id)
            let removed: Int
            if let envelope {
                removed = try connection.run(
                    """
                    DELETE FROM outbound_sources
                    WHERE team_id = \(team.number) AND value = \(value)
                        AND envelope_domain = \(envelope)
                    """)
            } else {
                removed = try connection.run(
                    "DELETE FROM outbound_sources WHERE team_id = \(team.number) AND value = \(value)"
                )
            }
            // Claims that are not proved are on the list too.
            let claims =
                envelope ?? "" == ""
                ? try connection.run(
                    "DELETE FROM source_claims WHERE team_id = \(team.number) AND value = \(value)")
                : 0
            guard removed + claims > 0 else {
                throw .refused(
                    .notFound,
                    "\(value) is not registered for team \(id): see postern source list \(id)")
            }
            try connection.audit(change, "source.remove", "team:\(id)", value)
        }
    }

    /// Numbers of the teams for which this From address is registered, by its own or a parent
    /// domain or as a single address. Called before any DNS query; empty means `550 5.7.1`.
    package func teams(registering from: AddrSpec) throws(StoreFailure) -> [Int64] {
        try database.values(
            "SELECT DISTINCT team_id FROM outbound_sources WHERE \(Self.covering(from)) ORDER BY team_id"
        )
    }

    /// The sources of any team that cover this address.
    package func sources(covering from: AddrSpec) throws(StoreFailure) -> [OutboundSource] {
        try database.rows(
            """
            SELECT kind, value, envelope_domain, created_at FROM outbound_sources
            WHERE \(Self.covering(from)) ORDER BY team_id, value, envelope_domain
            """
        ).map(OutboundSource.init(row:))
    }

    /// A condition: the source is the address, its domain or one of that domain's parents.
    private static func covering(_ from: AddrSpec) -> SQL {
        let from = from.folded
        let labels = from.domain.split(separator: ".").suffix(maximumLabels)
        var values = [from.wireForm]
        for start in labels.indices { values.append(labels[start...].joined(separator: ".")) }
        // The statement is the same for any number of labels: unused places repeat the address.
        while values.count <= maximumLabels { values.append(values[0]) }
        return "value IN \(list: values)"
    }

    /// A domain or an address in its stored form; other text is returned
    /// unchanged, and matches nothing.
    static func normal(_ text: String) -> String {
        text.contains("@")
            ? (try? AddrSpec.typed(text).folded.wireForm) ?? text : HostName(text)?.text ?? text
    }
}

extension DatabaseConnection {
    /// A team's sources by value.
    func sources(teamNumber: Int64) throws(StoreFailure) -> [OutboundSource] {
        try rows(
            """
            SELECT kind, value, envelope_domain, created_at FROM outbound_sources
            WHERE team_id = \(teamNumber) ORDER BY value, envelope_domain
            """
        ).map(OutboundSource.init(row:))
    }
}

extension OutboundSource {
    /// From the columns kind, value, envelope_domain and created_at.
    init(row: SQLRow) throws(StoreFailure) {
        let envelope: String = try row["envelope_domain"]
        try self.init(
            kind: row["kind"], value: row["value"],
            envelopeDomain: envelope.isEmpty ? nil : envelope,
            createdAt: row["created_at"])
    }
}
