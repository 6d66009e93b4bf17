// OpenID Connect clients, and the stored data of their requests, on both engines.

import Accounts
import Database
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct OpenIDClientTests {
    private static let change = TestStore.change

    private static func world(_ engine: Engine) throws -> (TestStore, ProviderClient) {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil,
            redirectURIs: ["https://juice.example/in"], change)
        return (test, try #require(try test.store.clients.client("com.juice")))
    }

    private static func request() throws -> AuthenticationRequest {
        let client = AuthorizationClient(
            clientID: "com.juice", redirectURIs: ["https://juice.example/in"], isPublic: false)
        let parameters = AuthorizationParameters([
            ("client_id", "com.juice"), ("redirect_uri", "https://juice.example/in"),
            ("response_type", "code"),
            ("scope", "openid name"), ("login_hint", "jane@home.example"),
        ])
        guard
            case .accepted(let request) = AuthenticationRequestReader(issuer: "https://id.example")
                .read(
                    parameters, client: client)
        else { throw StoreFailure.refused(.invalid, "the request was not accepted") }
        return request
    }

    @Test(arguments: Engine.all) func clientSettings_changed_areKept(_ engine: Engine) throws {
        let (test, client) = try Self.world(engine)
        #expect(!client.isPublic && client.identityTokenAlgorithm == "ES256")
        let clients = test.store.openIDClients
        try clients.set(
            ClientSettings(isPublic: true, algorithm: .rs256), team: "juice", clientID: "com.juice",
            Self.change)
        #expect(
            try clients.settings(team: "juice", clientID: "com.juice")
                == ClientSettings(isPublic: true, algorithm: .rs256))
        let found = try #require(try test.store.clients.client("com.juice"))
        #expect(found.isPublic && found.identityTokenAlgorithm == "RS256")
        #expect(try clients.authorizationClient("com.juice")?.isPublic == true)
        #expect(try clients.authorizationClient("com.other") == nil)
        #expect(throws: StoreFailure.self) {
            try clients.settings(team: "soda", clientID: "com.juice")
        }
        #expect(throws: StoreFailure.self) {
            try clients.issueSecret(team: "juice", clientID: "com.juice", Self.change)
        }
    }

    @Test(arguments: Engine.all) func clientSecret_overTwoOrRevoked_isRefused(
        _ engine: Engine
    ) throws {
        let (test, client) = try Self.world(engine)
        let clients = test.store.openIDClients
        let first = try clients.issueSecret(team: "juice", clientID: "com.juice", Self.change)
        let second = try clients.issueSecret(team: "juice", clientID: "com.juice", Self.change)
        #expect(throws: StoreFailure.self) {
            try clients.issueSecret(team: "juice", clientID: "com.juice", Self.change)
        }
        #expect(
            try clients.isSecret(first.secret, of: client)
                && clients.isSecret(second.secret, of: client))
        #expect(
            try !clients.isSecret(first.issued.name, of: client)
                && !clients.isSecret("", of: client))
        try clients.revokeSecret(
            team: "juice", clientID: "com.juice", name: first.issued.name, Self.change)
        #expect(try !clients.isSecret(first.secret, of: client))
        #expect(
            try clients.secrets(team: "juice", clientID: "com.juice").map(\.name) == [
                second.issued.name
            ])
        #expect(
            try clients.addLogoutRedirect(
                team: "juice", clientID: "com.juice", uri: "https://juice.example/bye", Self.change)
        )
        #expect(try clients.logoutRedirects(clientID: "com.juice") == ["https://juice.example/bye"])
        try test.store.teams.remove("juice", Self.change)
        for table in ["client_secrets", "logout_redirects"] {
            #expect(try test.database.value(SQL("SELECT COUNT(*) FROM \(table)", [])) == 0)
        }
    }

    @Test(arguments: Engine.all) func clientAssertion_usedTwice_isRefused(_ engine: Engine) throws {
        let (test, client) = try Self.world(engine)
        let clients = test.store.openIDClients
        #expect(try clients.useAssertion("a", of: client, expiresAt: TestStore.now + 60))
        #expect(try !clients.useAssertion("a", of: client, expiresAt: TestStore.now + 60))
        #expect(try clients.useAssertion("b", of: client, expiresAt: TestStore.now + 60))
        _ = try test.store.provider.deleteExpired(now: TestStore.now + 60)
        #expect(try clients.useAssertion("a", of: client, expiresAt: TestStore.now + 120))
    }

    private static func add(
        _ authorizations: PendingAuthorizations, browser: String? = "mine",
        network: String = "192.0.2.1",
        now: Int64 = TestStore.now
    ) throws -> String {
        try authorizations.add(
            try request(), subjectHint: nil, browser: browser, network: network, now: now)
    }

    @Test(arguments: Engine.all) func ticket_browserOfTheRequest_fetchesAnswerOnce(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let authorizations = test.store.authorizations
        let now = TestStore.now
        let handle = try Self.add(authorizations)
        #expect(handle.utf8.count <= 64)
        let pending = try #require(try authorizations.open(handle, now: now))
        #expect(pending.request == (try Self.request()) && !pending.isFinished)
        let response = AuthorizationResponse(
            pending.request.target, AuthorizationError(.accessDenied, "no"))
        let ticket = try authorizations.answer(handle, with: response, now: now)
        #expect(throws: StoreFailure.self) {
            try authorizations.answer(handle, with: response, now: now)
        }
        #expect(try authorizations.take(ticket: ticket, browser: "other", now: now) == nil)
        #expect(try authorizations.take(ticket: handle, browser: "mine", now: now) == nil)
        #expect(try authorizations.take(ticket: ticket, browser: "mine", now: now) == response)
        #expect(try authorizations.take(ticket: ticket, browser: "mine", now: now) == nil)
        // An answered request stays, and is not answered again.
        #expect(try authorizations.open(handle, now: now)?.isFinished == true)
        #expect(throws: StoreFailure.self) {
            try authorizations.answer(handle, with: response, now: now)
        }
    }

    @Test(arguments: Engine.all) func pendingRequest_withoutASecondStep_endsAfterTenMinutes(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let authorizations = test.store.authorizations
        let now = TestStore.now
        let (left, used) = (try Self.add(authorizations), try Self.add(authorizations))
        #expect(try authorizations.open(used, now: now + 599) != nil)
        _ = try test.store.provider.deleteExpired(now: now + 600)
        #expect(try authorizations.open(left, now: now + 600) == nil)
        // Each step extends it by the lifetime of a mailed link, up to an hour in all.
        for step in 1...3 {
            #expect(try authorizations.open(used, now: now + Int64(step) * 1_100) != nil)
        }
        #expect(try authorizations.open(used, now: now + 3_599) != nil)
        #expect(try authorizations.open(used, now: now + 3_600) == nil)
        for nonsense in [
            "", "x", String(repeating: "A", count: 27), String(repeating: "A", count: 70_000),
        ] {
            #expect(try authorizations.open(nonsense, now: now) == nil)
        }
    }

    @Test(arguments: Engine.all) func pendingRequests_ofOneNetwork_takeThePlaceOfItsOwn(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        var authorizations = test.store.authorizations
        authorizations.limits.perNetwork = 8
        let other = try Self.add(authorizations, network: "198.51.100.1")
        let handles = try (0..<20).map { _ in try Self.add(authorizations) }
        #expect(try authorizations.open(other, now: TestStore.now) != nil)
        #expect(try authorizations.open(handles[0], now: TestStore.now) == nil)
        #expect(try authorizations.open(handles[19], now: TestStore.now) != nil)
        let kept = try handles.filter { try authorizations.open($0, now: TestStore.now) != nil }
        #expect((4...8).contains(kept.count))
        // If there are too many in all, those of the network with the most are dropped.
        authorizations.limits.inAll = 6
        authorizations.limits.counted = 1
        let late = try Self.add(authorizations, network: "203.0.113.1")
        #expect(try authorizations.open(late, now: TestStore.now) != nil)
        #expect(try authorizations.open(other, now: TestStore.now) != nil)
        authorizations.limits.octetsPerNetwork = 1
        let large = try Self.add(authorizations, network: "198.51.100.1")
        #expect(try authorizations.open(other, now: TestStore.now) == nil)
        #expect(try authorizations.open(large, now: TestStore.now) != nil)
    }

    @Test(arguments: Engine.all) func pendingRequest_withoutABrowser_isBoundOnce(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let authorizations = test.store.authorizations
        let now = TestStore.now
        let handle = try Self.add(authorizations, browser: nil)
        #expect(try authorizations.bind(handle, to: "mine", now: now))
        #expect(try !authorizations.bind(handle, to: "other", now: now))
        let response = AuthorizationResponse(
            try Self.request().target, AuthorizationError(.accessDenied, "no"))
        let ticket = try authorizations.answer(handle, with: response, now: now)
        #expect(try authorizations.take(ticket: ticket, browser: "other", now: now) == nil)
        #expect(try authorizations.take(ticket: ticket, browser: "mine", now: now) == response)
    }

    @Test(arguments: Engine.all) func ticket_ofAnAnswerThatWasNotFetched_isTheSameForItsUser(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let authorizations = test.store.authorizations
        let now = TestStore.now
        let handle = try Self.add(authorizations)
        let response = AuthorizationResponse(
            try Self.request().target, AuthorizationError(.accessDenied, "no"))
        #expect(try authorizations.ticketAgain(handle, of: "jane", now: now) == nil)
        let first = try test.database.write(.durable) { connection throws(StoreFailure) in
            try authorizations.answer(connection, handle, with: response, of: "jane", now: now)
        }
        #expect(try authorizations.ticketAgain(handle, of: "eve", now: now) == nil)
        // Both of two presses continue, whichever response the browser shows.
        #expect(try authorizations.ticketAgain(handle, of: "jane", now: now) == first)
        #expect(try authorizations.take(ticket: first, browser: "mine", now: now) == response)
        #expect(try authorizations.take(ticket: first, browser: "mine", now: now) == nil)
        #expect(try authorizations.ticketAgain(handle, of: "jane", now: now) == nil)
    }

    @Test(arguments: Engine.all) func userInfo_givenName_isShownUntilTokenEnds(
        _ engine: Engine
    ) throws {
        let (test, client) = try Self.world(engine)
        let store = test.store
        try test.user("jane", name: "Jane Doe")
        func token(_ name: GivenName) throws -> String {
            var asked = ProviderAuthorization(
                grant: AuthorizationRequest(
                    clientID: "com.juice", userID: "jane", sharesName: true),
                redirectURI: "https://juice.example/in", scopes: ["openid", "name"], nonce: nil,
                challenge: nil, orgID: nil,
                authenticatedAt: TestStore.now)
            asked.method = AuthenticationMethod(references: ["pwd", "otp"], contextClass: "1")
            asked.grant.name = name
            let code = try store.provider.authorize(asked, Self.change) { $0.code }
            let outcome = try store.provider.redeem(
                code: code, client: client, redirectURI: "https://juice.example/in", challenge: nil,
                now: TestStore.now
            ) { $0.accessToken }
            guard case .issued(let token) = outcome else {
                throw StoreFailure.refused(.invalid, "\(outcome)")
            }
            return token
        }
        let access = try token(.stored)
        let info = try #require(
            try store.provider.userInfo(accessToken: access, now: TestStore.now))
        #expect(
            info.subject.method
                == AuthenticationMethod(references: ["otp", "pwd"], contextClass: "1"))
        #expect(info.name == PersonName(given: "Jane", family: "Doe"))
        let typed = PersonName(given: "J", family: "O\u{301}Brien")
        #expect(
            try store.provider.userInfo(accessToken: token(.typed(typed)), now: TestStore.now)?.name
                == typed)
        #expect(
            try store.provider.userInfo(
                accessToken: token(.typed(PersonName(given: "", family: ""))), now: TestStore.now)?
                .name == nil)
        #expect(try store.provider.userInfo(accessToken: access, now: TestStore.now + 3_600) == nil)
        _ = try store.provider.revoke(token: access, client: client, Self.change)
        #expect(try store.provider.userInfo(accessToken: access, now: TestStore.now) == nil)
    }

    @Test(arguments: Engine.all) func identityKeys_eachAlgorithm_rotateTogether(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let keys = test.store.identityKeys
        for algorithm in SignatureAlgorithm.allCases {
            let (active, next) = (
                try NewIdentityKey.generate(algorithm), try NewIdentityKey.generate(algorithm)
            )
            #expect(try keys.install(active: active, next: next, Self.change))
            #expect(try !keys.install(active: active, next: next, Self.change))
        }
        let before = try keys.signingKeys().active.mapValues(\.key.keyID)
        let replacements = try SignatureAlgorithm.allCases.map { try NewIdentityKey.generate($0) }
        // All or none: one key is not old enough.
        #expect(throws: StoreFailure.self) {
            try keys.rotate(replacements: replacements, early: false, Self.change)
        }
        #expect(try keys.signingKeys().active.mapValues(\.key.keyID) == before)
        let rotated = try keys.rotate(replacements: replacements, early: true, Self.change)
        #expect(Set(rotated.map(\.replaced.keyID)) == Set(before.values))
        let after = try keys.signingKeys()
        #expect(after.published.count == 6)
        for (algorithm, active) in after.active {
            #expect(active.key.algorithm == algorithm)
            let key = try IdentitySigningKey(pem: active.pem)
            let token = try CompactJWS(try key.sign(["sub": "a"]))
            #expect(token.algorithm == algorithm.rawValue && token.keyID == active.key.keyID)
            try TokenChecks.signature(
                token, algorithms: [algorithm], keys: JWKSet([key.verificationKey]))
        }
    }
}
