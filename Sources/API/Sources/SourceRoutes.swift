// /v1/sources: where a team sends from, and what its DNS lacks; domains that it adds itself, and proves by a TXT record.

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
    private let look: @Sendable (SourceClaim) async throws -> SourceClaim.Proof

    /// - Parameters:
    ///   - examine: asks the DNS, for a bounded time; blocks, but not on the threads of `parts`.
    ///   - look: looks for the record of a claim, likewise.
    package init(
        _ parts: RouteParts, examine: @escaping @Sendable (SourceRequest) async throws -> [SourceFinding],
        look: @escaping @Sendable (SourceClaim) async throws -> SourceClaim.Proof
    ) {
        self.parts = parts
        self.examine = examine
        self.look = look
    }

    private struct Named: Decodable { let source: String }

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
        routes.team(.sourcesWrite).post("/v1/sources", use: claim).post("/v1/sources/verify", use: verify)
            .post("/v1/sources/remove", use: remove)
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "sources team:\(team)", standard: 10, maximum: 20)
        let (sources, claims) = try await parts.run { store in
            (try store.sources.sources(team: team), try store.sourceClaims.claims(team: team))
        }
        let byDomain = Dictionary(claims.map { ($0.domain, $0) }, uniquingKeysWith: { first, _ in first })
        // What does not serve is shown among what does. Sorted by value and envelope domain, which together occur once.
        let waiting = claims.filter { $0.state != .proved }.map(OutboundSource.init(waiting:))
        let rest = (sources + waiting).map { ($0, Self.position($0)) }.sorted { $0.1 < $1.1 }
            .filter { source in page.after.map { source.1 > $0 } ?? true }.map(\.0)
        let findings = try await findings(rest.prefix(page.limit), of: sources)
        return try .json(
            page.page(rest, position: Self.position) { source in
                SourceView(
                    source, claim: source.envelopeDomain == nil ? byDomain[source.value] : nil,
                    checks: findings[Self.domain(source)] ?? [])
            })
    }

    // MARK: Claims

    private func claim(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        let claim = try await parts.run { try $0.sourceClaims.claim(team: team, body.source, change) }
        return try .json(SourceView(claim), status: .created)
    }

    /// Looks for the record now. Pending ones are looked for by themselves too, and every proved one each month.
    private func verify(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let team = context.caller.id
        let claim = try await parts.run { try $0.sourceClaims.claim(team: team, domain: body.source) }
        // A question that goes wrong takes nothing away: only the monthly look does.
        let proof = try await look(claim)
        let change = context.change(now: parts.now())
        guard proof == .seen else { return try .json(SourceView(claim)) }
        let proved = try await parts.run { try $0.sourceClaims.record(proof, of: claim, change) }
        guard let proved else { throw Problem.notFound("there is no claim to this domain any more") }
        return try .json(SourceView(proved))
    }

    private func remove(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        try await parts.run { try $0.sourceClaims.remove(team: team, domain: body.source, change) }
        return .empty
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
