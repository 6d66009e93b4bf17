// `GET /v1/sources`: where a team sends from, and what its DNS lacks. `POST /v1/sources/check`: one domain, looked at closely.

import Accounts
import HTTP
import Hummingbird
import Support

/// What is to be looked at.
package struct SourceRequest: Sendable, Hashable {
    /// Lower case, A-labels.
    package let domain: String
    /// The team's.
    package let sources: [OutboundSource]
    /// DKIM selectors; empty tries common ones.
    package let selectors: [String]
    /// An address that the team sends from; nil for none.
    package let address: String?
}

package struct SourceRoutes: RouteModule {
    private let parts: RouteParts
    private let examine: @Sendable (SourceRequest) async throws -> [SourceFinding]

    /// - Parameter examine: asks the DNS, for a bounded time; blocks, but not on the threads of `parts`.
    package init(_ parts: RouteParts, examine: @escaping @Sendable (SourceRequest) async throws -> [SourceFinding]) {
        self.parts = parts
        self.examine = examine
    }

    private struct Check: Decodable {
        let domain: String
        let selectors: [String]?
        let ip: String?
    }

    private struct Checked: Encodable {
        let domain: String
        let verdict: String
        let checks: [SourceFinding]
    }

    package func addRoutes(to routes: Routes) {
        routes.team(.sourcesRead).get("/v1/sources", use: list).post("/v1/sources/check", use: check)
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "sources team:\(team)", standard: 10, maximum: 20)
        let sources = try await parts.run { try $0.sources.sources(team: team) }
        // Sorted by value and envelope domain, which together occur once.
        let rest = sources.filter { source in page.after.map { Self.position(source) > $0 } ?? true }
        let findings = try await findings(rest.prefix(page.limit), of: sources)
        return try .json(
            page.page(rest, position: Self.position) { SourceView($0, checks: findings[Self.domain($0)] ?? []) })
    }

    private func check(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let body = try await request.decode(Check.self, context)
        guard let domain = HostName(body.domain), domain.labels.count > 1 else {
            throw Problem.invalid("this is not a valid domain name", at: "/domain")
        }
        let selectors = body.selectors ?? []
        guard selectors.count <= 10, selectors.allSatisfy({ HostName($0) != nil && $0.utf8.count <= 63 }) else {
            throw Problem.invalid("give at most ten DKIM selectors, each a DNS label", at: "/selectors")
        }
        if let ip = body.ip, ip.utf8.count > 45 || !ip.utf8.allSatisfy({ "0123456789abcdefABCDEF:.".utf8.contains($0) }) {
            throw Problem.invalid("this is not a valid IP address", at: "/ip")
        }
        let sources = try await parts.run { try $0.sources.sources(team: team) }
        let checks = try await examine(
            SourceRequest(domain: domain.text, sources: sources, selectors: selectors.map { $0.lowercased() }, address: body.ip))
        return try .json(Checked(domain: domain.text, verdict: checks.worst, checks: checks))
    }

    private func findings(_ shown: ArraySlice<OutboundSource>, of all: [OutboundSource]) async throws -> [String: [SourceFinding]]
    {
        try await withThrowingTaskGroup(of: (String, [SourceFinding]).self) { group in
            for domain in Set(shown.map(Self.domain)) {
                group.addTask { [examine] in
                    (domain, try await examine(SourceRequest(domain: domain, sources: all, selectors: [], address: nil)))
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private static func domain(_ source: OutboundSource) -> String {
        source.value.split(separator: "@").last.map(String.init) ?? source.value
    }

    private static func position(_ source: OutboundSource) -> String { "\(source.value) \(source.envelopeDomain ?? "")" }
}
