// Finds what the DNS of a team's sources lacks, for the API. Each check is bounded in time, and
// repeated at most every five minutes.

import API
import Accounts
import Database
import Doctor
import HTTP
import Relay
import Synchronization

/// Checks domains on separate threads, so that a slow DNS does not delay other requests.
final class SourceExaminer: Sendable {
    private struct Entry {
        let findings: [SourceFinding]
        let at: Int64
    }

    /// Seconds for which a finding is used again.
    private static let lifetime: Int64 = 300
    private static let capacity = 1000
    private let pool = BlockingPool(.domains)
    private let resolvers = Mutex<Resolvers.Maker?>(nil)
    private let known = Mutex<[SourceRequest: Entry]>([:])
    private let parts: ServiceParts

    init(_ parts: ServiceParts) { self.parts = parts }

    @Sendable func examine(_ question: SourceRequest) async throws -> [SourceFinding] {
        let now = parts.now()
        if let entry = known.withLock({ $0[question] }), now - entry.at < Self.lifetime {
            return entry.findings
        }
        let findings = try await pool.run { [self] in
            SourceChecks(
                domain: question.domain, sources: question.sources, selectors: question.selectors,
                address: question.address,
                resolver: try resolver()()
            ).all().map {
                SourceFinding(
                    name: $0.name.text, verdict: $0.verdict.rawValue, sentence: $0.sentence,
                    remedy: $0.remedy?.text)
            }
        }
        known.withLock { known in
            if known.count >= Self.capacity { known = [:] }
            known[question] = Entry(findings: findings, at: now)
        }
        return findings
    }

    /// One client, created at the first call. All queries about one domain share a budget.
    private func resolver() throws -> Resolvers.Maker {
        try resolvers.withLock { known in
            if let known { return known }
            let installation = parts.installation
            let made = try Resolvers.perMessage(
                installation.configuration, path: installation.resolved.path,
                limits: .init(questions: 200, milliseconds: 10_000),
                resolver: parts.surroundings.resolver)
            known = made
            return made
        }
    }
}
