// A whole service of decisions on loopback with its own store: for a backend's developer, on a laptop.

import Database
import Accounts
import SignIn
import Decisions
import API
import Foundation
import HTTP
import Logging
import MailCrypto
import PosternSQLite
import Service
import ServiceLifecycle

/// What a developer needs to know of a running sandbox.
package struct SandboxFacts: Sendable {
    /// `http://127.0.0.1:PORT`.
    package let url: String
    package let clientID: String
    /// The team's key. It opens this sandbox and nothing else.
    package let key: String
    package let issuer: String
}

/// Everything of a sandbox is in a temporary folder, removed at the end. No key, token, counter or decision of it can reach an
/// installation: it has keys and its own database.
package struct Sandbox {
    /// How it is set up.
    package struct Settings: Sendable {
        /// 0: any free port.
        package var port: Int
        package var clientID: String
        /// How identity tokens carry the nonce.
        package var nonceForm: AppNonceForm
        package var isNonceRequired: Bool
        /// Nil: the one that is part of the program.
        package var policy: LoadedPolicy?

        package init(
            port: Int, clientID: String, nonceForm: AppNonceForm = .raw, isNonceRequired: Bool = true, policy: LoadedPolicy? = nil
        ) {
            self.port = port
            self.clientID = clientID
            self.nonceForm = nonceForm
            self.isNonceRequired = isNonceRequired
            self.policy = policy
        }
    }

    /// Serves until SIGTERM, SIGINT or the end of the task.
    /// - Parameters:
    ///   - now: seconds since 1970; `/sandbox/clock` adds to it.
    ///   - announce: called once it listens.
    package static func run(
        _ settings: Settings, now: @escaping @Sendable () -> Int64, logger: Logger,
        announce: @escaping @Sendable (SandboxFacts) -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("postern-sandbox-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = try SQLiteDatabase(path: folder.appendingPathComponent("sandbox.db").path, creating: true)
        defer { try? database.close() }
        let clock = SandboxClock(now)
        _ = try Migrator().migrate(database, now: now())
        guard let ring = KeyRing(random: try SecureRandom.bytes(count: 96)) else {
            throw StoreFailure.temporary(.resources, "random octets are unavailable")
        }
        let store = Store(database: database, keys: ring, relayDomains: ["relay.sandbox.example"])
        let change = Change(actor: "sandbox", now: now())
        _ = try store.teams.add(id: "sandbox", name: "Sandbox", change)
        _ = try store.apps.add(team: "sandbox", clientID: settings.clientID, group: nil, change)
        try store.apps.setNonce(
            team: "sandbox", clientID: settings.clientID, form: settings.nonceForm, isRequired: settings.isNonceRequired, change)
        let issued = try store.apiKeys.issue(
            team: "sandbox", scopes: [.decisionsRead, .decisionsWrite], expiresAt: nil, note: "sandbox", change)
        let issuer = try SandboxIssuer.make(issuer: "https://issuer.sandbox.example")

        let pool = BlockingPool(.trials)
        let log = DecisionLogBuffer(store.decisions, store.decisionWrites)
        let (commits, reads) = (GroupCommit(database), GroupRead(database))
        let breaker = StoreBreaker()
        let clockNow: @Sendable () -> Int64 = { clock.now }
        let policy = try settings.policy ?? LoadedPolicy(.builtIn)
        let service = DecisionService(
            store: store, policies: policy, verifier: TokenVerifier(issuers: issuer, keys: issuer), log: log, commits: commits,
            reads: reads, executor: pool, breaker: breaker,
            settings: DecisionService.Settings(refusesOddContext: true, canned: CannedResponse.answer),
            now: clockNow, logger: logger)
        let parts = DecisionParts(
            service: service,
            idempotency: IdempotencyGuard(store: store, executor: pool, breaker: breaker, now: clockNow), log: log,
            commits: commits, reads: reads)
        let key = issued.text.revealed
        var listener = APISettings(host: "127.0.0.1", port: settings.port, requestsPerSecond: 10_000)
        listener.listenSetting = "--port"
        let api = APIService(
            settings: listener,
            modules: [
                DecisionRoutes(service: parts.service, idempotency: parts.idempotency), HealthRoutes(store: store, pool: pool),
                SandboxRoutes(issuer: issuer, clock: clock, clientID: settings.clientID),
            ], keys: KeyCache(store.apiKeys), clock: APIClock(now: clockNow), logger: logger
        ) { address in
            announce(
                SandboxFacts(url: "http://\(address)", clientID: settings.clientID, key: key, issuer: issuer.issuer))
        }
        var group = ServiceGroupConfiguration(
            services: [
                .init(
                    service: NamedService(
                        DecisionLogService(parts: parts, store: store, pool: pool, now: clockNow, logger: logger))),
                .init(service: NamedService(api)),
            ], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(10)
        try await ServiceGroup(configuration: group).run()
        await pool.stop()
    }
}
