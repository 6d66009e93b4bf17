// /v1/sources: a team's sources, and their missing DNS records. Also domains that the team adds and
// proves by a TXT record, and addresses that it proves by a mailed code.

import Accounts
import Database
import HTTP
import Hummingbird
import Support

/// The domain to examine.
package struct SourceRequest: Sendable, Hashable {
    /// Lower case, A-labels.
    package let domain: String
    /// The team's sources.
    package let sources: [OutboundSource]
    /// DKIM selectors; if empty, common ones are tried.
    package let selectors: [String]
    /// An address that the team sends from; nil for none.
    package let address: String?
}

package struct SourceRoutes: RouteModule {
    private let parts: RouteParts
    private let examine: @Sendable (SourceRequest) async throws -> [SourceFinding]
    private let look: @Sendable (SourceClaim) async throws -> SourceClaim.Proof
    /// Mail servers may be slow. Waiting for them must not delay other work.
    private let threads = BlockingPool(.codes)
    private let mail: @Sendable (_ code: SourceCode, _ languages: String?) throws -> Void

    /// - Parameters:
    ///   - examine: queries the DNS for a limited time; blocks, but not on the threads of `parts`.
    ///   - look: looks up the record of a claim, also for a limited time.
    ///   - mail: sends a code to its address, in a language of `Accept-Language`. Blocks. A thrown
    ///     `Problem` becomes the response; any other error means that no message was sent, and an
    ///     `UnsentMail` says whether the code counts.
    package init(
        _ parts: RouteParts,
        examine: @escaping @Sendable (SourceRequest) async throws -> [SourceFinding],
        look: @escaping @Sendable (SourceClaim) async throws -> SourceClaim.Proof,
        mail: @escaping @Sendable (_ code: SourceCode, _ languages: String?) throws -> Void
    ) {
        self.parts = parts
        self.examine = examine
        self.look = look
        self.mail = mail
    }

    private struct Named: Decodable { let source: String }
    private struct Verification: Decodable {
        let source: String
        let code: String?
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
        routes.team(.sourcesRead).get("/v1/sources", use: list).post(
            "/v1/sources/check", use: check)
        routes.team(.sourcesWrite).post("/v1/sources", use: claim).post(
            "/v1/sources/verify", use: verify
        )
        .post("/v1/sources/code", use: mailCode).post("/v1/sources/remove", use: remove)
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors,
            listing: "sources team:\(team)", standard: 10, maximum: 20)
        let now = parts.now()
        let all = try await parts.run { try $0.sourceClaims.list(team: team, now: now) }
        // Unusable sources are shown among the others. Sorted by value and envelope
        // domain; each pair occurs once.
        let rest = all.map { ($0, Self.position($0.source)) }.sorted { $0.1 < $1.1 }
            .filter { source in page.after.map { source.1 > $0 } ?? true }.map(\.0)
        let findings = try await findings(
            rest.prefix(page.limit).map(\.source), of: all.filter(\.serves).map(\.source))
        return try .json(
            page.page(rest, position: { Self.position($0.source) }) {
                SourceView($0, checks: findings[Self.domain($0.source)] ?? [])
            })
    }

    // MARK: Claims

    private func claim(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        let claim = try await parts.run {
            try $0.sourceClaims.claim(team: team, body.source, change)
        }
        guard claim.kind == .address, claim.state != .proved else {
            return try .json(SourceView(claim), status: .created)
        }
        return try await .json(mail(claim, ifNone: true, request, context), status: .created)
    }

    /// Mails another code, because the first was lost or too often entered wrongly.
    private func mailCode(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let team = context.caller.id
        let claim = try await parts.run { try $0.sourceClaims.claim(team: team, to: body.source) }
        return try await .json(mail(claim, ifNone: false, request, context), status: .accepted)
    }

    /// Mails a code to the address of a claim. The claim exists even if no message is sent.
    /// - Parameter ifNone: send mail only if no code is in use.
    private func mail(
        _ claim: SourceClaim, ifNone: Bool, _ request: Request, _ context: TeamContext
    ) async throws -> SourceView {
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        let code = try await parts.run {
            try $0.sourceClaims.newCode(team: team, address: claim.value, ifNone: ifNone, change)
        }
        if let code {
            do {
                let languages = request.headers[.acceptLanguage]
                try await threads.run { [mail] in try mail(code, languages) }
            } catch {
                // If the mail server never received the recipient, no message was sent, and the
                // code does not count. The same is true if the client ended the request before its
                // turn. A refused recipient counts: otherwise a team could probe any number of
                // mailboxes.
                let counts =
                    (error as? any UnsentMail)?.namedRecipient ?? !(error is CancellationError)
                try await parts.pool.finish { [store = parts.store] in
                    try store.sourceClaims.withdraw(code, counts: counts, now: change.now)
                }
                throw error as? Problem ?? Problem.mailUnavailable
            }
        }
        let codes = try await parts.run { try $0.sourceClaims.codes(team: team, now: change.now) }
        return SourceView(claim, code: codes[claim.value])
    }

    /// Looks up the record now, or checks the code. Housekeeping also looks up pending domains
    /// without a request, and proved domains each month.
    private func verify(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Verification.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        if let code = body.code {
            return try await .json(
                SourceView(
                    parts.run {
                        try $0.sourceClaims.prove(
                            team: team, address: body.source, code: code, change)
                    }))
        }
        let claim = try await parts.run { try $0.sourceClaims.claim(team: team, to: body.source) }
        guard claim.kind == .domain else {
            throw Problem.invalid(
                "an address is proved by the code that was mailed to it", at: "/code")
        }
        // A failed lookup removes nothing: only the monthly check does.
        let proof = try await look(claim)
        guard proof == .seen else { return try .json(SourceView(claim)) }
        // The lookup may take a while, so the time is read again.
        let seen = context.change(now: parts.now())
        let proved = try await parts.run { try $0.sourceClaims.record(proof, of: claim, seen) }
        guard let proved else { throw Problem.notFound("the claim to this domain was removed") }
        return try .json(SourceView(proved))
    }

    private func remove(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Named.self, context)
        let (team, change) = (context.caller.id, context.change(now: parts.now()))
        try await parts.run { try $0.sourceClaims.remove(team: team, body.source, change) }
        return .empty
    }

    private func check(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller.id
        let body = try await request.decode(Check.self, context)
        guard let domain = HostName(body.domain), domain.labels.count > 1 else {
            throw Problem.invalid("this is not a valid domain name", at: "/domain")
        }
        let selectors = body.selectors ?? []
        guard selectors.count <= 10,
            selectors.allSatisfy({ HostName($0) != nil && $0.utf8.count <= 63 })
        else {
            throw Problem.invalid(
                "give at most ten DKIM selectors, each a DNS label", at: "/selectors")
        }
        if let ip = body.ip,
            ip.utf8.count > 45
                || !ip.utf8.allSatisfy({ "0123456789abcdefABCDEF:.".utf8.contains($0) })
        {
            throw Problem.invalid("this is not a valid IP address", at: "/ip")
        }
        let sources = try await parts.run { try $0.sources.sources(team: team) }
        let checks = try await examine(
            SourceRequest(
                domain: domain.text, sources: sources, selectors: selectors.map { $0.lowercased() },
                address: body.ip))
        return try .json(Checked(domain: domain.text, verdict: checks.worst, checks: checks))
    }

    private func findings(
        _ shown: [OutboundSource], of all: [OutboundSource]
    ) async throws -> [String: [SourceFinding]] {
        try await withThrowingTaskGroup(of: (String, [SourceFinding]).self) { group in
            for domain in Set(shown.map(Self.domain)) {
                group.addTask { [examine] in
                    (
                        domain,
                        try await examine(
                            SourceRequest(domain: domain, sources: all, selectors: [], address: nil)
                        )
                    )
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private static func domain(_ source: OutboundSource) -> String {
        source.value.split(separator: "@").last.map(String.init) ?? source.value
    }

    private static func position(_ source: OutboundSource) -> String {
        "\(source.value) \(source.envelopeDomain ?? "")"
    }
}
