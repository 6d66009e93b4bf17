// A store, an issuer and a service, with a clock and a store that the test controls.

import Accounts
import Database
import Decisions
import Foundation
import InternetMessage
import Logging
import PosternSQLite
import RiskPolicy
import SignIn
import StoreTesting
import Synchronization
import TestSupport
import Testing

/// A database that can be unavailable, and counts its statements.
final class SwitchedDatabase: Database {
    private let inner: any Database
    private let state = Mutex<(isAway: Bool, statements: [String])>((false, []))

    init(_ inner: any Database) { self.inner = inner }

    var isAway: Bool {
        get { state.withLock { $0.isAway } }
        set { state.withLock { $0.isAway = newValue } }
    }

    /// The statements since the last call.
    func takeStatements() -> [String] {
        state.withLock { state in
            defer { state.statements = [] }
            return state.statements
        }
    }

    var dialect: Dialect { inner.dialect }

    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try check()
        return try inner.read { connection throws(StoreFailure) in
            try body(Connection(inner: connection, database: self))
        }
    }

    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try check()
        return try inner.write(durability) { connection throws(StoreFailure) in
            try body(Connection(inner: connection, database: self))
        }
    }

    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? { try inner.lock(name) }

    func close() throws(StoreFailure) { try inner.close() }

    private func check() throws(StoreFailure) {
        if isAway { throw StoreFailure.temporary(.unreachable, "away") }
    }

    private struct Connection: DatabaseConnection {
        let inner: any DatabaseConnection
        let database: SwitchedDatabase

        func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
            database.state.withLock { $0.statements.append(sql) }
            return try inner.rows(sql, arguments)
        }

        func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int {
            database.state.withLock { $0.statements.append(sql) }
            return try inner.run(sql, arguments)
        }

        func runScript(_ sql: String) throws(StoreFailure) { try inner.runScript(sql) }
    }
}

/// Two teams, their apps, an external issuer and this installation's own.
final class DecisionFixture: Sendable {
    static let app = "com.juice.app"
    static let otherApp = "com.juice.other"
    static let foreignApp = "com.other.app"
    static let externalIssuer = "https://issuer.example"
    static let ownIssuer = "https://relay.example"

    let folder: URL
    let database: SwitchedDatabase
    let store: Store
    static let start: Int64 = 1_790_000_000
    let clock = ManualClock()
    let external: SandboxIssuer
    let own: SandboxIssuer
    let log: DecisionLogBuffer
    let commits: GroupCommit
    let reads: GroupRead
    let memory: DecisionMemory
    let breaker: StoreBreaker
    let service: DecisionService
    /// Live lists, as of the last refresh.
    let lists: ListsInForce
    let juice: Requester
    let other: Requester

    private struct Issuers: IssuerDirectory, VerificationKeySource {
        let all: [SandboxIssuer]

        func issuer(_ iss: String) async throws -> IssuerConfiguration? {
            for issuer in all { if let found = try await issuer.issuer(iss) { return found } }
            return nil
        }

        func keys(
            of issuer: IssuerConfiguration, for keyID: String?
        ) async throws(KeysUnavailable) -> JWKSet {
            guard let found = all.first(where: { $0.issuer == issuer.issuer }) else {
                throw KeysUnavailable(issuer: issuer.name, reason: "none", retryAfter: 7)
            }
            return try await found.keys(of: issuer, for: keyID)
        }
    }

    /// Keys that are unavailable.
    struct NoKeys: VerificationKeySource {
        func keys(
            of issuer: IssuerConfiguration, for keyID: String?
        ) async throws(KeysUnavailable) -> JWKSet {
            throw KeysUnavailable(issuer: issuer.name, reason: "time-out", retryAfter: 11)
        }
    }

    static let policy: LoadedPolicy? = try? LoadedPolicy(.builtIn)

    init(
        policy: (any PolicySource)? = nil, keys: (any VerificationKeySource)? = nil,
        interpreting: (any BlockingExecutor)? = nil,
        atOnce: Int? = nil
    ) async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-decisions-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        database = SwitchedDatabase(
            try MigratedStore.sqlite(at: folder.appendingPathComponent("postern.db").path))
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        store = Store(database: database, keys: ring, relayDomains: ["relay.example"])
        let change = Change(actor: "uid:0", now: DecisionFixture.start)
        let team = try store.teams.add(id: "juice", name: "Juice", change)
        let foreign = try store.teams.add(id: "other", name: "Other", change)
        _ = try store.apps.add(team: "juice", clientID: Self.app, group: nil, change)
        _ = try store.apps.add(team: "juice", clientID: Self.otherApp, group: nil, change)
        _ = try store.apps.add(team: "other", clientID: Self.foreignApp, group: nil, change)
        juice = Requester(id: "juice", number: team.number)
        other = Requester(id: "other", number: foreign.number)
        external = try SandboxIssuer.make(issuer: Self.externalIssuer)
        own = try SandboxIssuer.make(issuer: Self.ownIssuer)
        log = DecisionLogBuffer(store.decisions, store.decisionWrites)
        commits = GroupCommit(database)
        reads = GroupRead(database)
        memory = DecisionMemory(capacity: 1_000)
        let issuers = Issuers(all: [external, own])
        lists = ListsInForce(
            store.liveLists, now: DecisionFixture.start,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let (clock, uptime) = (self.clock, Holder())
        holder = uptime
        breaker = StoreBreaker(monotonic: { uptime.value })
        var settings = DecisionService.Settings(ownIssuer: Self.ownIssuer)
        if let atOnce { settings.atOnce = atOnce }
        service = DecisionService(
            store: store, policies: try policy ?? #require(Self.policy), lists: lists,
            verifier: TokenVerifier(issuers: issuers, keys: keys ?? issuers),
            log: log, commits: commits, reads: reads, executor: InlineExecutor(),
            interpreting: interpreting, memory: memory,
            breaker: breaker, settings: settings,
            now: { clock.now }, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try service.warmUp()
    }

    final class Holder: Sendable {
        private let stored = Mutex<Double>(0)
        var value: Double {
            get { stored.withLock { $0 } }
            set { stored.withLock { $0 = newValue } }
        }
    }
    /// The clock of the breaker, in seconds.
    let holder: Holder

    deinit {
        commits.close()
        reads.close()
        try? database.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes the store unavailable; or available again, with all waiting data written.
    func storeIsAway(_ isAway: Bool) throws {
        database.isAway = isAway
        holder.value += 2
        if !isAway { try log.flush() }
    }

    /// A user of this installation with a relay address for the team's app; gives the `sub`.
    @discardableResult
    func user(
        _ id: String, team: String = "juice", app: String = app, inbox: String? = nil
    ) throws -> String {
        let change = Change(actor: "uid:0", now: clock.now)
        if (try? store.users.user(id)) == nil {
            _ = try store.users.add(
                id: id, name: nil,
                inbox: InboxAddress(try AddrSpec.typed(inbox ?? "\(id)@home.example")),
                isVerified: true,
                change)
        }
        return try store.addresses.issue(team: team, user: id, app: app, change).address.account.sub
    }

    /// A token of the external issuer, or of this installation's own.
    func token(
        _ subject: String, status: Int64? = nil, nonce: String? = nil, app: String = app,
        isOwn: Bool = false,
        nonceSupported: Bool? = nil, issuedAt: Int64? = nil, lifetime: Int64 = 600
    ) throws -> String {
        try (isOwn ? own : external).mint(
            SandboxToken(
                subject: subject, audience: app, nonceClaim: nonce, realUserStatus: status,
                nonceSupported: nonceSupported,
                lifetime: lifetime, issuedAt: issuedAt), now: clock.now)
    }

    /// Sends a request with a token that has this nonce.
    func ask(
        _ event: PolicyEvent, token: String, nonce: String?, sub: String? = nil, app: String = app,
        team: Requester? = nil
    ) async throws -> Response {
        try await ask(
            DecisionRequest(
                event: event, clientID: app, identityToken: token, nonce: nonce, sub: sub),
            team: team)
    }

    /// Sends a request about a known account.
    func ask(
        _ event: PolicyEvent, sub: String, app: String = app, team: Requester? = nil
    ) async throws -> Response {
        try await ask(DecisionRequest(event: event, clientID: app, sub: sub), team: team)
    }

    func ask(_ question: DecisionRequest, team: Requester? = nil) async throws -> Response {
        try Response(try await service.decide(question, for: team ?? juice).body)
    }

    /// Signs a new subject up with a fresh token and nonce.
    func signUp(
        _ subject: String, status: Int64?, isOwn: Bool = false, app: String = app,
        team: Requester? = nil
    ) async throws -> Response {
        let nonce = UUID().uuidString
        return try await ask(
            .signUp, token: token(subject, status: status, nonce: nonce, app: app, isOwn: isOwn),
            nonce: nonce, app: app,
            team: team)
    }

    func report(
        _ id: String, _ outcome: CheckOutcome, _ challenge: String, team: Requester? = nil
    ) async throws {
        _ = try await service.report(
            .outcome(outcome, challenge: challenge), of: id, for: team ?? juice)
    }

    /// A decision in the operator's log.
    func logged(_ id: String) throws -> DecisionRecord {
        try log.flush()
        return try #require(try store.decisions.decision(id)).record
    }
}

/// An answer in the form for a backend.
struct Response: Equatable {
    let body: String
    let id: String
    let event: String
    let decision: String
    let challenges: [String]
    let reasons: [String]
    let degraded: Bool
    let status: Int?
    let credentialState: String?
    let upgradeResult: String?
    let names: Set<String>

    init(_ body: String) throws {
        self.body = body
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any])
        id = object["decision_id"] as? String ?? ""
        event = object["event"] as? String ?? ""
        decision = object["decision"] as? String ?? ""
        challenges = object["challenges"] as? [String] ?? []
        reasons = (object["reasons"] as? [[String: String]] ?? []).compactMap { $0["code"] }
        degraded = object["degraded"] as? Bool ?? false
        status = object["real_user_status"] as? Int
        credentialState = object["credential_state"] as? String
        upgradeResult = object["upgrade_result"] as? String
        names = Set(object.keys)
    }
}

/// Expects a conflict (409).
func expectConflict(
    _ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async {
    do {
        try await body()
        Issue.record("nothing was refused", sourceLocation: sourceLocation)
    } catch DecisionError.conflict {
    } catch {
        Issue.record("no conflict: \(error)", sourceLocation: sourceLocation)
    }
}

/// Expects a refusal of a member (422).
func expectInvalid(
    _ pointer: String, _ body: () async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
) async {
    do {
        try await body()
        Issue.record("nothing was refused", sourceLocation: sourceLocation)
    } catch DecisionError.invalid(let at, _) {
        #expect(at == pointer, sourceLocation: sourceLocation)
    } catch {
        Issue.record("not invalid: \(error)", sourceLocation: sourceLocation)
    }
}

/// Expects 503.
func expectUnavailable(
    _ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async {
    do {
        try await body()
        Issue.record("nothing was refused", sourceLocation: sourceLocation)
    } catch DecisionError.unavailable(_, let seconds) {
        #expect(seconds > 0, sourceLocation: sourceLocation)
    } catch {
        Issue.record("not unavailable: \(error)", sourceLocation: sourceLocation)
    }
}
