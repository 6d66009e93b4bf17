// The service under the benchmark: the page and the provider over a private store, and users with
// passkeys.

import API
import Accounts
import BenchStores
import Database
import Foundation
import HTTP
import InternetMessage
import Logging
import Mail
import PasskeyTesting
import Portal
import RelayCore
import SignIn
import WebAuthn

final class SignInPlace: Sendable {
    static let issuer = "https://id.example"
    static let client = "com.bench.page"
    static let redirect = "https://app.example/back"

    let address: String
    let secret: String
    /// By the number of the user.
    let authenticators: [TestAuthenticator]
    let handles: [[UInt8]]
    /// The data that their browsers kept of an earlier sign-in, so that no notice of a new browser
    /// is sent.
    let known: [String]
    private let place: BenchDatabase
    private let server: Task<Void, any Error>

    /// - Parameter accounts: other accounts in the store.
    init(_ engine: Engine, users: Int, accounts: Int) async throws {
        let clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
        guard let ring = KeyRing(random: (0..<96).map { UInt8($0) }),
            let tokens = TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a")
            ),
            let proxies = TrustedProxies(["127.0.0.1"])
        else { throw CocoaError(.featureUnsupported) }
        place = try BenchDatabase.open(engine, name: "sign-in", kept: nil, now: clock()) {
            try Seeding.fill(
                Store(database: $0, keys: ring, relayDomains: [Seeding.domain]), engine,
                count: accounts, now: clock())
        }
        let store = Store(database: place.database, keys: ring, relayDomains: [Seeding.domain])
        let change = Change(actor: "bench", now: clock())
        _ = try store.apps.add(team: Seeding.team, clientID: Self.client, group: nil, change)
        try store.clients.addRedirect(
            team: Seeding.team, clientID: Self.client, uri: Self.redirect, change)
        secret = try store.openIDClients.issueSecret(
            team: Seeding.team, clientID: Self.client, change
        ).secret
        var (authenticators, handles, known): ([TestAuthenticator], [[UInt8]], [String]) = (
            [], [], []
        )
        for number in 0..<users {
            _ = try store.users.add(
                id: "p\(number)", name: "User \(number)",
                inbox: InboxAddress(try AddrSpec.typed("p\(number)@home.example")),
                isVerified: true, change)
            var authenticator = try TestAuthenticator(.create)
            authenticator.credentialID = Array("credential \(number)".utf8)
            let challenge = try store.passkeys.challenge(.create, browser: "b", now: change.now)
            authenticator.clientData = TestAuthenticator.clientData(.create, challenge: challenge)
            try store.passkeys.add(
                user: "p\(number)", authenticator.relyingParty,
                clientData: Array(authenticator.clientData.utf8),
                attestationObject: try authenticator.attestationObject(), challenge: challenge,
                browser: "b", name: "Key", change)
            authenticators.append(authenticator)
            handles.append(store.passkeys.userHandle("p\(number)"))
            known.append(try store.page.knownBrowser(user: "p\(number)"))
        }
        (self.authenticators, self.handles, self.known) = (authenticators, handles, known)

        var logger = Logger(label: "bench")
        logger.logLevel = .error
        let pool = BlockingPool(.requests)
        // No mail is sent: every user has a passkey, and a known browser.
        let mailer = InboxMailer(
            settings: MailerSettings(
                from: AddrSpec(localPart: "postmaster", domain: "relay.example"), service: "Bench",
                relayDomain: "relay.example",
                publicURL: Self.issuer, limits: NoticeLimits()),
            store: store, tokens: { TokenMint(keys: tokens) }, signer: nil,
            submission: SMTPSubmission(host: "127.0.0.1", port: 9, helo: "mx.relay.example"),
            templates: try .standard())
        let signer = IdentitySigner(store.identityKeys, now: clock, logger: logger)
        let page = try PortalPage(
            store: store, mailer: mailer, queue: MailQueue(), tokens: { TokenMint(keys: tokens) },
            pool: pool, now: clock,
            proxies: proxies, provider: SheetProvider(issuer: Self.issuer, signer: signer),
            logger: logger)
        let parts = RouteParts(
            store: store, pool: pool, cursors: Cursors(key: Array(repeating: 3, count: 32)),
            now: clock)
        let settings = ProviderSettings(
            issuer: Self.issuer, authorizationEndpoint: nil, signInPage: "\(Self.issuer)/sign-in",
            refreshesPerDay: 100)
        var modules: [any RouteModule] = [SignInRoutes(settings, parts, signer: signer)]
        if let page { modules.append(page) }
        let (addresses, announced) = AsyncStream.makeStream(of: String.self)
        let api = APIService(
            settings: APISettings(
                host: "127.0.0.1", port: 0, proxies: proxies, requestsPerSecond: 100_000_000),
            modules: modules,
            keys: KeyCache(store.apiKeys), clock: APIClock(now: clock), logger: logger
        ) { announced.yield($0) }
        server = Task { try await api.run() }
        guard let address = await addresses.first(where: { _ in true }) else {
            throw CocoaError(.featureUnsupported)
        }
        self.address = address
    }

    func end() {
        server.cancel()
        place.end()
    }
}
