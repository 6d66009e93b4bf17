// The page over a store and its own mail server, and a visitor with cookies.

import Accounts
import Database
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import InternetMessage
import Logging
import Mail
import MailCrypto
import PosternSQLite
import PostfixHarness
import RelayCore
import SignIn
import StoreTesting
import Synchronization
import TestSupport
import Testing

@testable import API
@testable import HTTP
@testable import Portal

/// The answer to a request.
struct Response: Sendable {
    let status: Int
    let headers: HTTPFields
    let text: String

    /// The address to which it leads by itself: by a redirect, or from a page that continues.
    var location: String? {
        headers[.location]
            ?? (status == 200 && header("Refresh").hasPrefix("0; url=")
                ? String(header("Refresh").dropFirst(7)) : nil)
    }
    func header(_ name: String) -> String { HTTPField.Name(name).flatMap { headers[$0] } ?? "" }
    /// The text of the group.
    func first(_ pattern: Regex<(Substring, Substring)>) -> String? {
        text.firstMatch(of: pattern).map { String($0.output.1) }
    }
}

/// anna, verified, with an address for juice; and bob, in the same way.
final class PortalFixture: Sendable {
    static let start: Int64 = 1_790_000_000
    static let change = Change(actor: "uid:0", now: start)
    static let url = "https://relay.example"

    let folder: URL
    let store: Store
    let sink: SMTPSink
    let queue = MailQueue()
    let pool = BlockingPool(.requests, threads: 2)
    let log = LogRecorder()
    /// Separate from the fixture, so that routes that know the time do not keep the fixture, its
    /// files and its threads alive.
    private let time: Time
    /// Another host of the same store; nil for the first.
    private let first: PortalFixture?
    private let made:
        Mutex<(responder: RouterResponder<APIContext>, routes: [RouteEntry], page: PortalPage?)?> =
            Mutex(nil)

    /// Seconds since 1970; moves only when it is set.
    var now: Int64 {
        get { time.now }
        set { time.stored.withLock { $0 = newValue } }
    }

    private final class Time: Sendable {
        let stored = Mutex<Int64>(start)
        var now: Int64 { stored.withLock { $0 } }
    }

    var responder: RouterResponder<APIContext>? { made.withLock { $0?.responder } }
    var routes: [RouteEntry] { made.withLock { $0?.routes ?? [] } }
    var portal: PortalPage? { made.withLock { $0?.page } }

    /// - Parameters:
    ///   - signUp: with it, the page is also the sign-in page of apps, with the routes of /auth.
    ///   - database: a migrated one; by default a new file.
    ///   - first: makes this another host of the same installation, with the time and the mail
    ///     server of the first.
    init(
        url: String? = url, limits: NoticeLimits = NoticeLimits(perInbox: 50, perUser: 100),
        signIn: SignInLimits = .standard,
        signUp: SignUpRules? = nil, requiredLevel: SignInLevel = .any, recoveryDays: Int = 0,
        looks: PageLooks = .standard, deletionDays: Int = 0, upstream: UpstreamSettings? = nil,
        passkeyRoots: [Certificate] = [],
        database: (any Database)? = nil, beside first: PortalFixture? = nil
    ) throws {
        self.first = first
        time = first?.time ?? Time()
        folder =
            first?.folder
            ?? FileManager.default.temporaryDirectory.appendingPathComponent(
                "postern-me-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let database =
            try database
            ?? MigratedStore.sqlite(at: folder.appendingPathComponent("postern.db").path)
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        store = Store(database: database, keys: ring, relayDomains: ["relay.example"])
        sink = try first?.sink ?? SMTPSink()
        let keys = try #require(
            TokenKeys(
                keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a")
            ))
        let mailer = InboxMailer(
            settings: MailerSettings(
                from: AddrSpec(localPart: "postmaster", domain: "relay.example"),
                service: "Fig & Co",
                relayDomain: "relay.example",
                publicURL: url, limits: limits),
            store: store, tokens: { TokenMint(keys: keys) }, signer: nil,
            submission: SMTPSubmission(
                host: "127.0.0.1", port: sink.port, helo: "mx.relay.example", timeout: 120,
                dataTimeout: 120),
            templates: try .standard(.builtIn()))
        if first == nil { try Self.seed(store) }
        let signer = IdentitySigner(
            store.identityKeys, now: { [time] in time.now }, logger: log.logger)
        let page = try PortalPage(
            store: store, mailer: mailer, queue: queue, tokens: { TokenMint(keys: keys) },
            pool: pool,
            now: { [time] in time.now },
            monotonic: { [time] in Double(time.now - Self.start) },
            provider: signUp == nil ? nil : SheetProvider(issuer: Self.url, signer: signer),
            signUp: signUp ?? .closed,
            requiredLevel: requiredLevel, recoveryDays: recoveryDays, limits: signIn,
            looks: looks, deletionDays: deletionDays,
            upstream: upstream.map { [time, log] in
                UpstreamProvider($0, now: { time.now }, logger: log.logger)
            },
            passkeyRoots: passkeyRoots, logger: log.logger)
        var modules: [any RouteModule] = page.map { [$0] } ?? []
        if signUp != nil {
            let settings = ProviderSettings(
                issuer: Self.url, authorizationEndpoint: nil, signInPage: "\(Self.url)/sign-in",
                isPageBuiltIn: true,
                refreshesPerDay: 100)
            let parts = RouteParts(
                store: store, pool: pool, cursors: Cursors(key: Array(repeating: 3, count: 32)),
                now: { [time] in time.now })
            modules.append(SignInRoutes(settings, parts, signer: signer))
        }
        let router = APIService.router(
            settings: APISettings(host: "127.0.0.1", port: 0), modules: modules,
            keys: KeyCache(store.apiKeys),
            clock: APIClock(now: { [time] in time.now }, monotonic: { 0 }), logger: log.logger)
        made.withLock { $0 = (router.responder, router.routes, page) }
    }

    private static func seed(_ store: Store) throws {
        _ = try store.teams.add(id: "juice", name: "The <Juice> Company", Self.change)
        _ = try store.teams.add(id: "soda", name: "Soda", Self.change)
        try store.sources.add(
            team: "juice",
            store.sources.checked("juice.example", envelopeDomain: nil, now: Self.start),
            Self.change)
        _ = try store.apps.add(team: "juice", clientID: "com.juice.app", group: nil, Self.change)
        for user in ["anna", "bob"] {
            _ = try store.users.add(
                id: user, name: user, inbox: Self.inbox("\(user)@home.example"), isVerified: true,
                Self.change)
            _ = try store.addresses.issue(
                team: "juice", user: user, app: "com.juice.app", Self.change)
        }
    }

    /// Logs that a check was required of anna at sign-up.
    func askForCheck(reasons: String) throws {
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO decisions (decision_id, team_id, client_id, grant_id, claimed_event, event, decision, challenges,
                    reasons, wire_reasons, asked, skips, waived, missing, errors, shadow, signals, policy_name, policy_version,
                    policy_hash, credential_state, degraded, evaluated_at, expires_at)
                SELECT 'rd_1', a.team_id, 'com.juice.app', g.id, 'sign_up', 'sign_up', 'require_verification',
                    'email_code human_check', \(reasons), '', '', '', '', '', '', '',
                    '{}', 'p', '1', 'h', 'authorized', 0, \(now), \(now + 300)
                FROM grants g JOIN accounts a ON a.id = g.account_id WHERE a.id = 1
                """)
        }
    }

    /// Ends everything.
    func stop() {
        made.withLock { $0 = nil }
        queue.stop()
        Task.detached { [pool] in await pool.stop() }
        try? store.database.close()
        guard first == nil else { return }
        sink.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    static func inbox(_ text: String) throws -> InboxAddress {
        InboxAddress(try AddrSpec.typed(text))
    }

    /// Makes a fixture, and ends it in every case.
    static func with(
        url: String = url, limits: NoticeLimits = NoticeLimits(perInbox: 50, perUser: 100),
        signIn: SignInLimits = .standard,
        signUp: SignUpRules? = nil, requiredLevel: SignInLevel = .any, recoveryDays: Int = 0,
        looks: PageLooks = .standard, deletionDays: Int = 0, upstream: UpstreamSettings? = nil,
        passkeyRoots: [Certificate] = [], _ body: (PortalFixture) async throws -> Void
    ) async throws {
        let fixture = try PortalFixture(
            url: url, limits: limits, signIn: signIn, signUp: signUp, requiredLevel: requiredLevel,
            recoveryDays: recoveryDays, looks: looks, deletionDays: deletionDays,
            upstream: upstream, passkeyRoots: passkeyRoots)
        do { try await body(fixture) } catch {
            fixture.stop()
            throw error
        }
        fixture.stop()
    }

    func ask(
        _ method: HTTPRequest.Method, _ path: String, headers: HTTPFields, body: String?
    ) async throws -> Response {
        let responder = try #require(made.withLock { $0?.responder })
        return try await Application(responder: responder, logger: log.logger).test(.router) {
            client in
            try await client.execute(
                uri: path, method: method, headers: headers,
                body: body.map { ByteBuffer(string: $0) }
            ) {
                response in
                Response(
                    status: response.status.code, headers: response.headers,
                    text: String(buffer: response.body))
            }
        }
    }

    /// The text of the newest message to an inbox, after all waiting messages were written.
    func mail(_ inbox: String) throws -> String {
        queue.drain()
        let message = try #require(sink.messages(to: "<\(inbox)>").last)
        let part = message.text.components(separatedBy: "Content-Type: text/html")[0]
        let body = part.components(separatedBy: "\r\n\r\n").dropFirst(2).joined(
            separator: "\r\n\r\n")
        return String(decoding: QuotedPrintable.decode(Array(body.utf8)[...]).bytes, as: UTF8.self)
    }

    func mailCount(_ inbox: String) -> Int {
        queue.drain()
        return sink.messages(to: "<\(inbox)>").count
    }

    /// The six digits in the newest message to an inbox.
    func code(_ inbox: String) throws -> String {
        String(try #require(try mail(inbox).firstMatch(of: /([0-9]{3}[ \u{A0}][0-9]{3})/)).output.1)
    }

    /// The path of the link in the newest message to an inbox.
    func link(_ inbox: String) throws -> String {
        String(
            try #require(
                try mail(inbox).firstMatch(
                    of: /https?:\/\/[a-z.:0-9]+(\/me\/(?:sign-in|confirm|delete)\/[a-z2-7]{32})/)
            )
            .output.1)
    }
}

/// A browser: keeps cookies, and sends the origin of its forms.
final class Browser {
    let fixture: PortalFixture
    private(set) var cookies: [String: String] = [:]
    /// The open page.
    private(set) var page = Response(status: 0, headers: [:], text: "")

    init(_ fixture: PortalFixture) { self.fixture = fixture }

    @discardableResult
    func get(_ path: String, headers: [String: String] = [:]) async throws -> Response {
        try await ask(.get, path, nil, headers)
    }

    /// Sends a form of the open page, with its token.
    @discardableResult
    func submit(
        _ path: String, _ fields: [String: String] = [:], token: Bool = true,
        headers: [String: String] = ["Origin": PortalFixture.url]
    ) async throws -> Response {
        var fields = fields
        if token { fields["csrf"] = page.first(/name="csrf" value="([a-z2-7]+)"/) }
        let body = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\(Self.encoded($0.value))" }
            .joined(separator: "&")
        return try await ask(.post, path, body, headers)
    }

    private func ask(
        _ method: HTTPRequest.Method, _ path: String, _ body: String?, _ more: [String: String]
    ) async throws -> Response {
        var headers: HTTPFields = [:]
        if body != nil { headers[.contentType] = "application/x-www-form-urlencoded" }
        if !cookies.isEmpty {
            headers[.cookie] = cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
        }
        for (name, value) in more { headers[try #require(HTTPField.Name(name))] = value }
        page = try await fixture.ask(method, path, headers: headers, body: body)
        for cookie in page.headers[values: .setCookie] {
            let pair = cookie.split(separator: ";")[0].split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            cookies[String(pair[0])] = cookie.contains("Max-Age=0") ? nil : String(pair[1])
        }
        return page
    }

    /// Follows redirects to our own pages: the last page, or the answer that leads away.
    @discardableResult
    func follow() async throws -> Response {
        while page.status == 303 || page.status == 200, let location = page.location {
            let path =
                location.hasPrefix(PortalFixture.url)
                ? String(location.dropFirst(PortalFixture.url.count)) : location
            guard path.hasPrefix("/") else { break }
            try await get(path)
        }
        return page
    }

    /// Takes over a cookie, like an attacker who planted or stole it.
    func take(_ name: String, _ value: String?) { cookies[name] = value }

    /// Requests a link and uses it.
    func signIn(_ user: String) async throws {
        try await get("/me/sign-in")
        try await submit("/me/sign-in", ["email": "\(user)@home.example"])
        let link = try fixture.link("\(user)@home.example")
        try await get(link)
        let answer = try await submit(link)
        try #require(answer.status == 303 && answer.location == "/me")
        try await get("/me")
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { octet in
            let isPlain =
                (0x30...0x39).contains(octet) || (0x41...0x5A).contains(octet)
                || (0x61...0x7A).contains(octet)
            let digits = Array("0123456789ABCDEF")
            return isPlain
                ? String(UnicodeScalar(octet))
                : "%\(digits[Int(octet >> 4)])\(digits[Int(octet & 15)])"
        }.joined()
    }
}
