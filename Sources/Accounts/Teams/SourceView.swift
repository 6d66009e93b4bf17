// A source as HTTP and commands show it.

import Support

/// One thing about a domain that was looked at.
package struct SourceFinding: Encodable, Sendable, Hashable {
    package let name: String
    /// `ok`, `warning` or `broken`.
    package let verdict: String
    package let sentence: String
    package let remedy: String?

    package init(name: String, verdict: String, sentence: String, remedy: String?) {
        self.name = name
        self.verdict = verdict
        self.sentence = sentence
        self.remedy = remedy
    }
}

/// The record that proves a domain.
package struct SourceChallenge: Encodable, Sendable, Hashable {
    let name: String
    let type: String
    let value: String

    fileprivate init(_ claim: SourceClaim) { (name, type, value) = (claim.recordName, "TXT", claim.token) }
}

extension OutboundSource {
    /// A claimed domain that does not serve: for views alone.
    package init(waiting claim: SourceClaim) {
        self.init(kind: .domain, value: claim.domain, envelopeDomain: nil, createdAt: claim.createdAt)
    }
}

/// A source; over HTTP with what its DNS lacks.
package struct SourceView: Encodable, Sendable {
    private var team: String?
    let source: String
    let kind: String
    let envelopeDomain: String?
    let createdAt: Timestamp
    /// `active`, `pending` or `stopped`; over HTTP.
    private var state: String?
    private var challenge: SourceChallenge?
    private var provedAt: Timestamp?
    private var stopsAt: Timestamp?
    private var verdict: String?
    private var checks: [SourceFinding]?

    private init(of source: OutboundSource) {
        self.source = source.value
        kind = source.kind.rawValue
        envelopeDomain = source.envelopeDomain
        createdAt = Timestamp(source.createdAt)
    }

    /// As its team sees it.
    /// - Parameter claim: the team's own; nil where an administrator registered it.
    package init(_ source: OutboundSource, claim: SourceClaim?, checks: [SourceFinding]) {
        self.init(of: source)
        state = claim.map(\.state).map { $0 == .proved ? "active" : $0.rawValue } ?? "active"
        verdict = checks.worst
        self.checks = checks
        add(claim)
    }

    /// A domain that its team added.
    package init(_ claim: SourceClaim) {
        self.init(of: OutboundSource(waiting: claim))
        state = claim.state == .proved ? "active" : claim.state.rawValue
        add(claim)
    }

    private mutating func add(_ claim: SourceClaim?) {
        guard let claim else { return }
        challenge = SourceChallenge(claim)
        provedAt = Timestamp(claim.provedAt)
        stopsAt = claim.state == .proved ? Timestamp(claim.warnedAt.map { $0 + SourceClaim.grace }) : nil
    }

    /// As commands show it.
    package init(_ source: OutboundSource, team: String) {
        self.init(of: source)
        self.team = team
    }
}

extension [SourceFinding] {
    /// The worst verdict among them.
    package var worst: String {
        ["broken", "warning"].first { verdict in contains { $0.verdict == verdict } } ?? "ok"
    }
}
