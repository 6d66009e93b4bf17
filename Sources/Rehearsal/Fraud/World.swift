// The installation that all actors use: a store, the HTTP API on its own port, and a clock that the
// caller sets.

import API
import Accounts
import Administration
import AsyncHTTPClient
import CEL
import Database
import Decisions
import Foundation
import HTTP
import InternetMessage
import Logging
import NIOCore
import PosternSQLite
import SignIn
import Synchronization

final class World: Sendable {
    static let clientID = "com.bench.app"
    static let issuer = "https://relay.example"
    /// Octets of the longest network name.
    private static let longestNetwork = 24
    private static let redirect = "https://bench.example/in"

    private let folder: URL
    private let database: SQLiteDatabase
    private let store: Store
    private let key: String
    private let time: Clock
    private let own: SandboxIssuer
    private let log: DecisionLogBuffer
    private let statuses: StatusDecider
    private let client: HTTPClient
    private let server: Task<Void, any Error>
    private let address: String
    private let ranks: [String: Int]
    /// Whether the backend sends the network of each request: only if the policy declares it.
    private let tellsNetwork: Bool

    final class Clock: Sendable {
        private let seconds: Mutex<Int64>
        init(_ start: Int64) { seconds = Mutex(start) }
        var now: Int64 {
            get { seconds.withLock { $0 } }
            set { seconds.withLock { $0 = newValue } }
        }
    }

    /// - Parameters:
    ///   - policy: the policy that decides for the app.
    ///   - status: the policy that decides how likely users are to be real; nil: the built-in one.
    ///   - start: seconds since 1970.
    init(
        _ policy: LoadedPolicy, status: StoredPolicy?, _ client: HTTPClient, start: Int64
    ) async throws {
        self.client = client
        ranks = ROC.ranks(policy.policy)
        tellsNetwork = policy.policy.signals.contains {
            $0.name == "context.network" && $0.type == .string
                && $0.maximumLength >= Self.longestNetwork
        }
        let time = Clock(start)
        self.time = time
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "\(FraudBench.folderStem)\(getpid())-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        database = try SQLiteDatabase(
            path: folder.appendingPathComponent("postern.db").path, creating: true)
        _ = try Migrator().migrate(database, now: start)
        guard let ring = KeyRing(random: (0..<96).map { UInt8($0) }) else {
            throw CocoaError(.featureUnsupported)
        }
        store = Store(database: database, keys: ring, relayDomains: ["relay.example"])
        let change = Change(actor: "bench", now: start)
        _ = try store.teams.add(id: "bench", name: "Bench", change)
        _ = try store.apps.add(
            team: "bench", clientID: Self.clientID, group: nil, redirectURIs: [Self.redirect],
            change)
        key = try store.apiKeys.issue(
            team: "bench", scopes: [.decisionsWrite, .decisionsRead], expiresAt: nil, note: "",
            change
        ).text.revealed
        var logger = Logger(label: "bench")
        logger.logLevel = .critical
        if let status { _ = try store.policies.activate(status, change) }
        own = try SandboxIssuer.make(issuer: Self.issuer)
        log = DecisionLogBuffer(store.decisions, store.decisionWrites)
        statuses = StatusDecider(
            store: store,
            policies: ActivePolicies(store.policies, host: nil, now: start, logger: logger),
            lists: nil)
        let pool = BlockingPool(.trials)
        let breaker = StoreBreaker()
        let service = DecisionService(
            store: store, policies: policy, verifier: TokenVerifier(issuers: own, keys: own),
            log: log,
            commits: GroupCommit(database), reads: GroupRead(database), executor: pool,
            breaker: breaker,
            settings: DecisionService.Settings(ownIssuer: Self.issuer), now: { time.now },
            logger: logger)
        try service.warmUp()
        let idempotency = IdempotencyGuard(
            store: store, executor: pool, breaker: breaker, now: { time.now })
        let (addresses, announced) = AsyncStream.makeStream(of: String.self)
        let api = APIService(
            settings: APISettings(host: "127.0.0.1", port: 0, requestsPerSecond: 100_000_000),
            modules: [DecisionRoutes(service: service, idempotency: idempotency)],
            keys: KeyCache(store.apiKeys),
            clock: APIClock(now: { time.now }), logger: logger
        ) { announced.yield($0) }
        server = Task { try await api.run() }
        guard let address = await addresses.first(where: { _ in true }) else {
            throw CocoaError(.featureUnsupported)
        }
        self.address = address
    }

    func end() {
        server.cancel()
        try? database.close()
        try? FileManager.default.removeItem(at: folder)
    }

    func set(_ now: Int64) { time.now = now }

    /// Adds a user to the installation, with an inbox that is already confirmed.
    func add(_ user: String, inbox: String) throws {
        _ = try store.users.add(
            id: user, name: nil, inbox: InboxAddress(try AddrSpec.typed(inbox)), isVerified: true,
            Change(actor: "bench", now: time.now))
    }

    /// Imports users with their accounts at the app, as `postern import` does.
    func bring(_ people: [(user: String, inbox: String, since: Int64)]) throws {
        let rows = people.map { "\($0.user),\($0.inbox),true,bench,\(Self.clientID),\($0.since)" }
        let file = (["user,inbox,verified,team,app,since"] + rows).joined(separator: "\n")
        var reader = ImportReader()
        var importer = Importer(
            imports: store.imports,
            reading: ImportReading(
                trustsVerified: true, relayDomains: ["relay.example"], now: time.now),
            change: Change(actor: "bench", now: time.now), pauses: false
        ) { throw BenchFailure("line \($0): \($1)") }
        try reader.push(Array(file.utf8)) { try importer.take($0) }
        try reader.finish { try importer.take($0) }
        try importer.finish()
    }

    /// The user deletes everything.
    func remove(_ user: String) throws {
        try store.users.remove(user, Change(actor: "bench", now: time.now))
    }

    /// Signs in to the app; returns the identity token.
    func token(_ user: String, nonce: String) throws -> String {
        var asked = ProviderAuthorization(
            grant: AuthorizationRequest(
                clientID: Self.clientID, userID: user, emailKind: .privateRelay),
            redirectURI: Self.redirect,
            scopes: ["openid", "email"], nonce: nil, challenge: nil, orgID: nil,
            authenticatedAt: time.now)
        asked.method = AuthenticationMethod(references: ["otp"])
        asked.signIn = .mail
        let token = try store.provider.authorize(
            asked, statuses: statuses, Change(actor: "bench", now: time.now)
        ) { issued in
            SandboxToken(
                subject: issued.subject.sub, audience: Self.clientID, nonceClaim: nonce,
                realUserStatus: issued.subject.realUserStatus.map(Int64.init),
                email: "x@relay.example", methods: ["otp"],
                authenticatedAt: time.now)
        }
        return try own.mint(token, now: time.now)
    }

    /// The result of a request.
    struct Answer {
        /// The checks offered, the weakest first; empty if the decision was allow.
        let challenges: [String]
        /// The value of `ROC.score`.
        let score: Int
    }

    private struct Body: Decodable {
        let decisionID: String
        let decision: String
        let challenges: [String]
        let reasons: [Reason]

        struct Reason: Decodable {}

        enum CodingKeys: String, CodingKey {
            case decision, challenges, reasons
            case decisionID = "decision_id"
        }
    }

    private func post(_ path: String, _ body: [String: Any]) async throws -> Data {
        var request = HTTPClientRequest(url: "http://\(address)\(path)")
        request.method = .POST
        request.headers = ["Authorization": "Bearer \(key)", "Content-Type": "application/json"]
        request.body = .bytes(try JSONSerialization.data(withJSONObject: body))
        let response = try await client.execute(request, timeout: .seconds(30))
        let data = Data(buffer: try await response.body.collect(upTo: 1 << 20))
        guard response.status == .ok else {
            throw BenchFailure(
                "\(path): \(response.status) \(String(decoding: data, as: UTF8.self))")
        }
        return data
    }

    /// Sends a request like the app's backend.
    /// - Parameter passes: whether the person passes a required check; the backend then reports
    ///   that.
    func ask(
        _ event: String, token: String, nonce: String, network: String, passes: Bool
    ) async throws -> Answer {
        var question: [String: Any] = [
            "event": event, "client_id": Self.clientID, "identity_token": token, "nonce": nonce,
        ]
        if tellsNetwork { question["context"] = ["network": network] }
        let body = try JSONDecoder().decode(
            Body.self, from: try await post("/v1/decisions", question))
        guard let weakest = body.challenges.first else { return Answer(challenges: [], score: 0) }
        if passes {
            try log.flush()
            for outcome in ["challenge_initiated", "passed"] {
                _ = try await post(
                    "/v1/decisions/\(body.decisionID)/outcome",
                    ["outcome": outcome, "challenge": weakest])
            }
        }
        return Answer(
            challenges: body.challenges,
            score: ROC.score(rank: ranks[weakest] ?? 1, rules: body.reasons.count))
    }

    /// Writes the waiting entries of the log.
    func flush() throws { try log.flush() }
}

package struct BenchFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
