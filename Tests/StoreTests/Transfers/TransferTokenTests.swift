// The content of tokens while an app moves to another team, and afterwards.

import Accounts
import Database
import Events
import InternetMessage
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct TransferTokenTests {
    static let change = TestStore.change
    static let redirect = "https://app.example/signed-in"

    /// Teams juice and cola with apps that u1 has consented to, and milk, which gets the apps;
    /// tokens for each app.
    struct Fixture {
        let test: TestStore

        init(_ engine: Engine) throws {
            test = try LifecycleTests.world(engine)
            for team in ["cola", "milk"] {
                _ = try test.store.teams.add(id: team, name: team, change)
                _ = try test.store.apps.add(team: team, clientID: "com.\(team)", group: nil, change)
            }
            for (team, app) in [
                ("juice", "com.juice"), ("juice", "com.press"), ("cola", "com.cola"),
                ("milk", "com.milk"),
            ] {
                _ = try test.store.clients.addRedirect(
                    team: team, clientID: app, uri: redirect, change)
            }
        }

        func client(_ app: String) throws -> ProviderClient {
            guard let client = try test.store.clients.client(app) else {
                throw StoreFailure.refused(.notFound, app)
            }
            return client
        }

        func code(_ app: String) throws -> IssuedCode {
            let request = ProviderAuthorization(
                grant: AuthorizationRequest(clientID: app, userID: "u1", emailKind: .privateRelay),
                redirectURI: redirect,
                scopes: ["openid", "email"], nonce: nil, challenge: nil, orgID: nil,
                authenticatedAt: TestStore.now)
            return try test.store.provider.authorize(request, change) { $0 }
        }

        func redeem(_ code: IssuedCode, _ app: String) throws -> IssuedTokens {
            let outcome = try test.store.provider.redeem(
                code: code.code, client: client(app), redirectURI: redirect, challenge: nil,
                now: TestStore.now
            ) { $0 }
            guard case .issued(let tokens) = outcome else {
                throw StoreFailure.refused(.unmet, "\(outcome)")
            }
            return tokens
        }

        func refresh(_ token: String?, _ app: String) throws -> TokenSubject {
            let outcome = try test.store.provider.refresh(
                token: token ?? "", client: client(app), dailyLimit: 100, now: TestStore.now
            ) { $0.subject }
            guard case .issued(let subject) = outcome else {
                throw StoreFailure.refused(.unmet, "\(outcome)")
            }
            return subject
        }

        /// The number of refresh tokens.
        func refreshTokens() throws -> Int? {
            try test.database.value("SELECT COUNT(*) FROM refresh_tokens", Int.self)
        }

        /// Transfers the app; at most `limit` of its grants move.
        func move(_ app: String, of team: String, limit: Int = 500) throws {
            _ = try test.store.transfers.start(team: team, app: app, to: "milk", change)
            _ = try test.store.transfers.finish(
                app: app, keepingRedirects: true, limit: limit, change)
        }

        func account(_ team: String) throws -> Account {
            try #require(try test.store.accounts.accounts(team: team, user: "u1").first)
        }
    }

    @Test(arguments: Engine.all) func refreshToken_overLimitOfGrant_replacesOldest(
        _ engine: Engine
    ) throws {
        let fixture = try Fixture(engine)
        let others = try fixture.redeem(fixture.code("com.cola"), "com.cola")
        let tokens = try (0...ProviderLifetime.refreshTokensPerGrant).map { _ in
            try fixture.redeem(fixture.code("com.juice"), "com.juice").refreshToken
        }
        #expect(try fixture.refreshTokens() == ProviderLifetime.refreshTokensPerGrant + 1)
        #expect(throws: StoreFailure.self) { try fixture.refresh(tokens[0], "com.juice") }
        _ = try fixture.refresh(tokens[1], "com.juice")
        _ = try fixture.refresh(tokens.last ?? nil, "com.juice")
        _ = try fixture.refresh(others.refreshToken, "com.cola")
    }

    @Test(arguments: Engine.all) func refreshToken_twoAppsMoved_hasOwnTransferSubject(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let tokens = try ["com.juice", "com.cola"].map {
            try world.redeem(world.code($0), $0).refreshToken
        }
        try world.move("com.juice", of: "juice")
        try world.move("com.cola", of: "cola")
        let (juice, cola) = (
            try world.refresh(tokens[0], "com.juice"), try world.refresh(tokens[1], "com.cola")
        )
        #expect(juice.sub == cola.sub, "one user, one team")
        let (first, second) = (try #require(juice.transferSub), try #require(cola.transferSub))
        #expect(first != second)
        // Each is the subject of that app's old team.
        for (subject, app, other) in [
            (first, "com.juice", "com.cola"), (second, "com.cola", "com.juice"),
        ] {
            #expect(
                try world.test.store.transfers.account(
                    transferSubject: subject, client: world.client(app), Self.change)?.sub
                    == juice.sub)
            #expect(
                try world.test.store.transfers.account(
                    transferSubject: subject, client: world.client(other), Self.change) == nil)
        }
        let own = try world.code("com.milk").subject
        #expect(own.sub == juice.sub)
        #expect(own.transferSub == nil, "an app that never moved")
        #expect(try world.code("com.cola").subject.transferSub == second)
    }

    @Test(arguments: Engine.all) func refreshToken_duringTransfer_hidesOldSubAndAddress(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let first = try world.redeem(world.code("com.juice"), "com.juice")
        let old = try world.account("juice")
        try world.move("com.juice", of: "juice", limit: 0)
        #expect(try world.test.store.transfers.transfers(app: "com.juice").first?.waiting == 1)
        let refreshed = try world.refresh(first.refreshToken, "com.juice")
        let new = try world.account("milk")
        #expect(first.subject.sub == old.sub)
        #expect(refreshed.sub == new.sub)
        #expect(refreshed.sub != old.sub)
        #expect(
            refreshed.email
                == .relay(
                    try #require(try world.test.store.addresses.current(account: new.number))
                        .address))
        #expect(refreshed.email != first.subject.email)
        #expect(refreshed.transferSub != nil)
    }

    /// With them the old team would get the new team's sub and address.
    @Test(arguments: Engine.all) func transfer_codesAndAccessTokensOfBefore_end(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let tokens = try world.redeem(try world.code("com.juice"), "com.juice")
        let code = try world.code("com.juice")
        #expect(
            try world.test.store.provider.userInfo(
                accessToken: tokens.accessToken, now: TestStore.now) != nil)
        try world.move("com.juice", of: "juice", limit: 0)
        #expect(
            try world.test.store.provider.userInfo(
                accessToken: tokens.accessToken, now: TestStore.now) == nil)
        #expect(throws: StoreFailure.self) { try world.redeem(code, "com.juice") }
        // The new team continues with the refresh token, and gets its own sub.
        #expect(
            try world.refresh(tokens.refreshToken, "com.juice").sub == world.account("milk").sub)
    }

    /// A browser that is redirected there without consent would give the old team the new team's
    /// sub and address.
    @Test(arguments: [true, false]) func transfer_redirectURIs_endUnlessTheyAreKept(
        _ isKept: Bool
    ) throws {
        let world = try Fixture(.sqlite)
        _ = try world.test.store.openIDClients.addLogoutRedirect(
            team: "juice", clientID: "com.juice", uri: "https://juice.example/out", Self.change)
        _ = try world.test.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", Self.change)
        _ = try world.test.store.transfers.finish(
            app: "com.juice", keepingRedirects: isKept, Self.change)
        let client = try #require(
            try world.test.store.openIDClients.authorizationClient("com.juice"))
        #expect(client.redirectURIs.isEmpty == !isKept)
        #expect(
            try world.test.store.openIDClients.logoutRedirects(clientID: "com.juice").isEmpty
                == !isKept)
        #expect(
            try world.test.store.openIDClients.authorizationClient("com.press")?.redirectURIs
                .isEmpty == false)
    }

    @Test(arguments: Engine.all) func event_duringTransfer_hidesOldSub(_ engine: Engine) throws {
        let world = try Fixture(engine)
        let tokens = try world.redeem(world.code("com.juice"), "com.juice")
        let old = try world.account("juice")
        try world.move("com.juice", of: "juice", limit: 0)
        _ = try world.test.store.endpoints.set(
            team: "milk", app: "com.juice", url: EndpointURL("https://hooks.milk.example/"),
            Self.change)
        let address = try #require(try world.test.store.addresses.current(account: old.number))
            .address
        try world.test.store.addresses.setForwarding(address, on: false, Self.change)
        #expect(try world.test.store.outbox.events(team: "milk").isEmpty)
        #expect(
            try world.test.store.provider.revoke(
                token: try #require(tokens.refreshToken), client: world.client("com.juice"),
                Self.change)
                == .revoked)
        let events = try world.test.store.outbox.events(team: "milk")
        #expect(events.map(\.type) == [.consentRevoked])
        #expect(events.map(\.sub) == [try world.account("milk").sub])
    }

    @Test(arguments: Engine.all) func userHint_grantNotMovedYet_findsUser(_ engine: Engine) throws {
        let world = try Fixture(engine)
        let sub = try world.code("com.juice").subject.sub
        _ = try world.code("com.press")
        try world.move("com.juice", of: "juice", limit: 0)
        let provider = world.test.store.provider
        #expect(try provider.userID(hint: sub, clientID: "com.juice", now: TestStore.now) == "u1")
        #expect(try provider.userID(hint: sub, clientID: "com.milk", now: TestStore.now) == nil)
        #expect(try world.code("com.juice").subject.sub == (try world.account("milk").sub))
    }

    @Test(arguments: Engine.all) func transferSubject_appMovedSeveralTimes_namesLastTeam(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        _ = try world.code("com.juice")
        let transfers = world.test.store.transfers
        func move(_ from: String, _ to: String) throws {
            _ = try transfers.start(team: from, app: "com.juice", to: to, Self.change)
            _ = try transfers.finish(app: "com.juice", keepingRedirects: true, Self.change)
        }
        try move("juice", "cola")
        try move("cola", "juice")
        _ = try transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        let old = try world.account("juice")
        let subject = try #require(
            try transfers.transferSubject(
                sub: old.sub, client: world.client("com.juice"), target: "milk", Self.change))
        _ = try transfers.finish(app: "com.juice", keepingRedirects: true, Self.change)
        let found = try transfers.account(
            transferSubject: subject, client: world.client("com.juice"), Self.change)
        #expect(found?.sub == (try world.account("milk").sub))
        #expect(try world.code("com.juice").subject.transferSub == subject)
    }
}
