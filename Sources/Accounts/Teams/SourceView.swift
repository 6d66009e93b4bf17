// A source as HTTP and commands show it.

import Support

/// The result of one check of a domain.
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

    fileprivate init(_ claim: SourceClaim) {
        (name, type, value) = (claim.recordName, "TXT", claim.token)
    }
}

extension OutboundSource {
    /// A claim that is not active: for views only.
    init(waiting claim: SourceClaim) {
        self.init(
            kind: claim.kind, value: claim.value, envelopeDomain: nil, createdAt: claim.createdAt)
    }
}

/// A source in a team's list: an active one, or a claim that is not active.
package struct ListedSource: Sendable {
    package let source: OutboundSource
    /// The team's own claim; nil if an administrator registered the source.
    package let claim: SourceClaim?
    /// The valid code for an address.
    package let code: MailedCode?

    /// Whether mail from it is relayed.
    package var serves: Bool { claim.map { $0.state == .proved } ?? true }

    init(_ source: OutboundSource, _ claim: SourceClaim?, _ code: MailedCode?) {
        (self.source, self.claim, self.code) = (source, claim, code)
    }

    /// `active`, `pending` or `stopped`.
    package var state: String { serves ? "active" : claim?.state.rawValue ?? "active" }

    /// What is needed for it to become or stay active; nil for nothing.
    package var need: String? {
        guard let claim, !serves || claim.warnedAt != nil else { return nil }
        if claim.kind == .domain { return "TXT \(claim.recordName) \(claim.token)" }
        guard let code else { return "a code: the team requests one (POST /v1/sources)" }
        return code.triesLeft > 0
            ? "the code that was mailed to it; tries left: \(code.triesLeft)"
            : "a new code: the team requests one (POST /v1/sources/code)"
    }
}

/// A source. Over HTTP it includes what its DNS lacks.
package struct SourceView: Encodable, Sendable {
    private var team: String?
    let source: String
    let kind: String
    let envelopeDomain: String?
    let createdAt: Timestamp
    let state: String
    private var challenge: SourceChallenge?
    private var mailedCode: MailedCode?
    private var provedAt: Timestamp?
    private var stopsAt: Timestamp?
    private var verdict: String?
    private var checks: [SourceFinding]?

    private init(of listed: ListedSource) {
        source = listed.source.value
        kind = listed.source.kind.rawValue
        envelopeDomain = listed.source.envelopeDomain
        createdAt = Timestamp(listed.source.createdAt)
        state = listed.state
        guard let claim = listed.claim else { return }
        challenge = claim.kind == .domain ? SourceChallenge(claim) : nil
        mailedCode = listed.code
        provedAt = Timestamp(claim.provedAt)
        stopsAt = listed.serves ? Timestamp(claim.warnedAt.map { $0 + SourceClaim.grace }) : nil
    }

    /// As its team sees it.
    package init(_ listed: ListedSource, checks: [SourceFinding]) {
        self.init(of: listed)
        verdict = checks.worst
        self.checks = checks
    }

    /// A claim that its team added.
    /// - Parameter code: the valid code; nil for a domain too.
    package init(_ claim: SourceClaim, code: MailedCode? = nil) {
        self.init(of: ListedSource(OutboundSource(waiting: claim), claim, code))
    }

    /// As commands show it.
    package init(_ listed: ListedSource, team: String) {
        self.init(of: listed)
        self.team = team
    }
}

extension [SourceFinding] {
    /// The worst verdict among them.
    package var worst: String {
        ["broken", "warning"].first { verdict in contains { $0.verdict == verdict } } ?? "ok"
    }
}
