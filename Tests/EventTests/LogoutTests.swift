// Apps are notified when a session of the page ends (OpenID Connect Back-Channel Logout 1.0).

import Accounts
import Database
import Events
import InternetMessage
import Logging
import MailCrypto
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct LogoutTests {
    private static let redirect = "https://juice.example/in"

    /// A store with an app com.juice that gets notifications, and com.pulp, of another group, that
    /// does not.
    private func withLogouts(
        users: Int = 1, _ body: (EventFixture, TestReceiver, LogoutDelivery) async throws -> Void
    ) async throws {
        try await withFixture(users: users) { fixture, receiver in
            let (store, change) = (fixture.store, fixture.change)
            _ = try store.apps.add(team: "juice", clientID: "com.pulp", group: nil, change)
            for app in ["com.juice", "com.pulp"] {
                try store.clients.addRedirect(
                    team: "juice", clientID: app, uri: Self.redirect, change)
            }
            try set("https://hooks.example:\(receiver.port)/logout", fixture)
            try await body(fixture, receiver, delivery(fixture))
        }
    }

    private func delivery(_ fixture: EventFixture, allowsPrivate: Bool = true) -> LogoutDelivery {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return LogoutDelivery(
            logouts: fixture.store.logouts, signer: fixture.signer, issuer: EventFixture.issuer,
            poster: fixture.poster,
            resolver: fixture.resolver, threads: fixture.threads, allowsPrivate: allowsPrivate,
            now: { [clock = fixture.clock] in clock.now }, random: { 0.5 }, logger: logger)
    }

    private func set(_ uri: String?, _ fixture: EventFixture) throws {
        var settings = try fixture.store.openIDClients.settings(
            team: "juice", clientID: "com.juice")
        settings.logoutURI = uri
        try fixture.store.setClient(settings, team: "juice", clientID: "com.juice", fixture.change)
    }

    /// Signs a user in on the page; returns the session's token.
    private func signIn(
        _ fixture: EventFixture, _ user: String = "u0", replacing old: String? = nil
    ) throws -> String {
        let (page, now) = (fixture.store.page, fixture.clock.now)
        let link = try #require(
            try page.signInLink(
                for: InboxAddress(AddrSpec(localPart: user, domain: "home.example")), browser: "b",
                limits: NoticeLimits(perInbox: 50, perUser: 50), now: now))
        let token = try #require(link.token)
        return try #require(try page.signIn(link: token, browser: "b", replacing: old, now: now))
    }

    private func session(_ fixture: EventFixture, _ token: String) throws -> PageSession {
        try #require(try fixture.store.page.session(token, now: fixture.clock.now))
    }

    /// Signs in to an app with a session; returns the session's name there.
    @discardableResult
    private func use(_ app: String, _ fixture: EventFixture, _ token: String) throws -> String {
        let session = try session(fixture, token)
        var request = ProviderAuthorization(
            grant: AuthorizationRequest(clientID: app, userID: session.userID),
            redirectURI: Self.redirect, scopes: ["openid"],
            nonce: nil, challenge: nil, orgID: nil, authenticatedAt: fixture.clock.now)
        request.session = session.number
        return try #require(
            try fixture.store.provider.authorize(request, fixture.change) { $0.subject.sessionID })
    }

    private func part(_ token: String, _ index: Int) throws -> JSONObject {
        let octets = try #require(Base64URL.decode(token.split(separator: ".")[index].utf8))
        return try StrictJSON.parseObject(octets, limit: 10_000)
    }

    private func sessions(_ receiver: TestReceiver) throws -> [String] {
        try receiver.logouts.map { try part($0, 1)["sid"]?.string ?? "" }
    }

    @Test func session_signedOut_isToldToAppsThatWantIt() async throws {
        try await withLogouts { fixture, receiver, delivery in
            let token = try signIn(fixture)
            let name = try use("com.juice", fixture, token)
            #expect(
                try use("com.juice", fixture, token) == name
                    && use("com.pulp", fixture, token) != name)
            await delivery.deliverDue()
            #expect(receiver.logouts == [])
            try fixture.store.page.signOut(
                session(fixture, token), everywhere: false, now: fixture.clock.now)
            await delivery.deliverDue()
            let logout = try #require(receiver.logouts.first)
            #expect(receiver.logouts.count == 1)
            #expect(try part(logout, 0)["typ"]?.string == "logout+jwt")
            let claims = try part(logout, 1)
            let account = try #require(
                try fixture.store.accounts.accounts(team: "juice", user: "u0").first)
            #expect(
                claims == [
                    "iss": .string(EventFixture.issuer), "aud": .string("com.juice"),
                    "iat": .integer(fixture.clock.now),
                    "exp": .integer(fixture.clock.now + 120), "jti": claims["jti"] ?? .null,
                    "sub": .string(account.sub),
                    "sid": .string(name),
                    "events": .object([
                        "http://schemas.openid.net/event/backchannel-logout": .object([:])
                    ]),
                ])
            #expect(claims["jti"]?.string?.utf8.count == 32)
            #expect(try fixture.store.logouts.waiting() == 0)
            fixture.clock.advance(100_000)
            await delivery.deliverDue()
            #expect(receiver.logouts.count == 1)
        }
    }

    @Test func sessions_endedElsewhere_areToldEachOnce() async throws {
        try await withLogouts { fixture, receiver, delivery in
            let tokens = try (0..<3).map { _ in try signIn(fixture) }
            let names = try tokens.map { try use("com.juice", fixture, $0) }
            #expect(Set(names).count == 3)
            let (here, there) = (try session(fixture, tokens[0]), try session(fixture, tokens[1]))
            try fixture.store.page.end(session: there.number, of: here, now: fixture.clock.now)
            await delivery.deliverDue()
            #expect(try sessions(receiver) == [names[1]])
            try fixture.store.page.signOut(here, everywhere: true, now: fixture.clock.now)
            // Two hosts deliver at the same time.
            async let other: Void = self.delivery(fixture).deliverDue()
            await delivery.deliverDue()
            await other
            #expect(try sessions(receiver).sorted() == names.sorted())
        }
    }

    @Test func newSession_ofTheSameUser_keepsItsNameAndOfAnotherEndsIt() async throws {
        try await withLogouts(users: 2) { fixture, receiver, delivery in
            let first = try signIn(fixture)
            let name = try use("com.juice", fixture, first)
            let second = try signIn(fixture, replacing: first)
            #expect(try fixture.store.page.session(first, now: fixture.clock.now) == nil)
            #expect(try use("com.juice", fixture, second) == name)
            await delivery.deliverDue()
            #expect(receiver.logouts == [])
            _ = try signIn(fixture, "u1", replacing: second)
            await delivery.deliverDue()
            #expect(try sessions(receiver) == [name])
        }
    }

    @Test func app_thatDoesNotAnswer_isToldAgainForADay() async throws {
        try await withLogouts { fixture, receiver, delivery in
            let tokens = try (0..<3).map { _ in try signIn(fixture) }
            for token in tokens { try use("com.juice", fixture, token) }
            func end(_ index: Int) throws {
                try fixture.store.page.signOut(
                    session(fixture, tokens[index]), everywhere: false, now: fixture.clock.now)
            }
            receiver.answerLogouts(503)
            try end(0)
            await delivery.deliverDue()
            await delivery.deliverDue()
            #expect(receiver.logouts.count == 1)
            receiver.answerLogouts(204)
            fixture.clock.advance(5)
            await delivery.deliverDue()
            #expect(try fixture.store.logouts.waiting() == 0)
            let ids = try receiver.logouts.map { try part($0, 1)["jti"] }
            #expect(ids.count == 2 && ids[0] == ids[1])
            // A notice that it refuses as wrong is not sent again.
            receiver.answerLogouts(400)
            try end(1)
            await delivery.deliverDue()
            #expect(try fixture.store.logouts.waiting() == 0)
            receiver.answerLogouts(500)
            try end(2)
            for _ in 0..<200 {
                await delivery.deliverDue()
                fixture.clock.advance(900)
            }
            #expect(try fixture.store.logouts.waiting() == 0)
        }
    }

    /// An app that never answers must not delay the others.
    @Test func app_thatHangs_keepsNoOtherWaiting() async throws {
        try await withLogouts { fixture, receiver, delivery in
            let silent = try await TestReceiver()
            defer { Task { await silent.stop() } }
            silent.answerLogouts(nil)
            var settings = try fixture.store.openIDClients.settings(
                team: "juice", clientID: "com.pulp")
            settings.logoutURI = "https://hooks.example:\(silent.port)/logout"
            try fixture.store.setClient(
                settings, team: "juice", clientID: "com.pulp", fixture.change)
            func end(_ app: String) throws -> String {
                let token = try signIn(fixture)
                let name = try use(app, fixture, token)
                try fixture.store.page.signOut(
                    session(fixture, token), everywhere: false, now: fixture.clock.now)
                return name
            }
            let pulp = try end("com.pulp")
            let due = await delivery.due()
            #expect(due.count == 1)
            async let waits: Void = delivery.drain(due[0])
            while try sessions(silent) != [pulp] { await Task.yield() }
            // While its request runs, others are notified, and it gets no second request.
            let names = try (0..<20).map { _ in try end("com.juice") }
            await delivery.deliverDue()
            #expect(try sessions(receiver).sorted() == names.sorted())
            #expect(try sessions(silent) == [pulp])
            await waits
        }
    }

    /// A code that is exchanged after the sign-out must not give a session that no notice would
    /// end.
    @Test func session_thatEnded_isInNoFurtherToken() async throws {
        try await withLogouts { fixture, _, _ in
            func codes() throws -> Int64 {
                try fixture.store.database.value("SELECT COUNT(*) FROM authorization_codes") ?? 0
            }
            let (first, second) = (try signIn(fixture), try signIn(fixture))
            try use("com.juice", fixture, first)
            try use("com.juice", fixture, second)
            #expect(try codes() == 2)
            try fixture.store.page.signOut(
                session(fixture, first), everywhere: false, now: fixture.clock.now)
            #expect(try codes() == 1)
        }
    }

    @Test func app_atAPrivateAddress_isReachedIfThatIsAllowed() async throws {
        try await withLogouts { fixture, receiver, delivery in
            let token = try signIn(fixture)
            try use("com.juice", fixture, token)
            try fixture.store.page.signOut(
                session(fixture, token), everywhere: false, now: fixture.clock.now)
            await self.delivery(fixture, allowsPrivate: false).deliverDue()
            #expect(receiver.logouts == [])
            #expect(try fixture.store.logouts.waiting() == 1)
            fixture.clock.advance(10)
            await delivery.deliverDue()
            #expect(receiver.logouts.count == 1)
        }
    }

    @Test func app_thatIsNoLongerToBeTold_isNotTold() async throws {
        try await withLogouts { fixture, receiver, delivery in
            for isRevoked in [false, true] {
                let token = try signIn(fixture)
                try use("com.juice", fixture, token)
                let account = try #require(
                    try fixture.store.accounts.accounts(team: "juice", user: "u0").first)
                if isRevoked {
                    _ = try fixture.store.grants.revokeAll(account: account.number, fixture.change)
                }
                try fixture.store.page.signOut(
                    session(fixture, token), everywhere: false, now: fixture.clock.now)
                if !isRevoked { try set(nil, fixture) }
                await delivery.deliverDue()
                #expect(receiver.logouts == [])
                #expect(try fixture.store.logouts.waiting() == 0)
                try set("https://hooks.example:\(receiver.port)/logout", fixture)
            }
        }
    }

    @Test(arguments: [
        "", "juice.example/out", "http://juice.example/out", "https://juice.example/#x",
        "https://a:b@juice.example/",
        "https://juice.example/ out", "javascript:alert(1)",
    ])
    func logoutURI_thatIsNotHTTPS_isRefused(_ uri: String) async throws {
        try await withLogouts { fixture, _, _ in
            #expect(throws: StoreFailure.self) { try set(uri, fixture) }
            try set("http://127.0.0.1:8080/out?a=b", fixture)
        }
    }
}
