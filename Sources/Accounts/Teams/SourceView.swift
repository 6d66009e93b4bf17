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

/// A source; over HTTP with what its DNS lacks.
package struct SourceView: Encodable, Sendable {
    private var team: String?
    let source: String
    let kind: String
    let envelopeDomain: String?
    let createdAt: Timestamp
    private var verdict: String?
    private var checks: [SourceFinding]?

    private init(of source: OutboundSource) {
        self.source = source.value
        kind = source.kind.rawValue
        envelopeDomain = source.envelopeDomain
        createdAt = Timestamp(source.createdAt)
    }

    /// As its team sees it.
    package init(_ source: OutboundSource, checks: [SourceFinding]) {
        self.init(of: source)
        verdict = checks.worst
        self.checks = checks
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
