// The reads of the steps of a sign-in, each in one statement, on both engines.

import Accounts
import Database
import InternetMessage
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct SignInStepTests {
    private static let change = TestStore.change

    /// Team `juice` with two groups of apps and team `tea` with one; `anna` and
    /// `bob` have an inbox each.
    private func world(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        let store = test.store
        _ = try store.teams.add(id: "tea", name: "Tea", Self.change)
        for (team, app) in [("juice", "com.juice"), ("juice", "com.other"), ("tea", "com.tea")] {
            _ = try store.apps.add(
                team: team, clientID: app, group: nil, redirectURIs: ["https://\(app).example/in"],
                Self.change)
        }
        for user in ["anna", "bob"] { try test.user(user, name: "\(user) Smith") }
        return test
    }

    private func signIn(
        _ test: TestStore, _ app: String, scopes: Set<String> = ["email", "openid"],
        kind: EmailKind? = nil, inbox: Int64? = nil,
        name: GivenName? = nil, to redirect: String? = nil, as user: String = "anna"
    ) throws {
        var authorization = ProviderAuthorization(
            grant: AuthorizationRequest(
                clientID: app, userID: user, emailKind: kind, inbox: inbox.map(InboxName.number),
                realUserStatus: 0),
            redirectURI: redirect ?? "https://\(app).example/in", scopes: scopes, nonce: nil,
            challenge: nil, orgID: nil,
            authenticatedAt: TestStore.now)
        (authorization.grant.name, authorization.grant.sharesName) = (name, name.map { _ in true })
        let code = try test.store.provider.authorize(authorization, Self.change) {
            issued throws(StoreFailure) in issued.code
        }
        let client = try #require(try test.store.clients.client(app))
        let outcome = try test.store.provider.redeem(
            code: code, client: client, redirectURI: authorization.redirectURI, challenge: nil,
            now: TestStore.now
        ) { $0 }
        guard case .issued = outcome else { throw StoreFailure.refused(.invalid, "\(outcome)") }
    }

    // MARK: The standing consent

    @Test(arguments: Engine.all) func consent_standing_isOfTeamAndGroup(_ engine: Engine) throws {
        let test = try world(engine)
        func consent(_ app: String, of user: String = "anna") throws -> StandingConsent? {
            try test.store.provider.consent(user: user, clientID: app)
        }
        #expect(try consent("com.juice") == nil)
        try signIn(test, "com.juice")
        try signIn(test, "com.tea")
        try signIn(test, "com.tea")
        let granted = try test.store.audit.entries().filter { $0.action == "grant.authorize" }
        #expect(granted.count == 3 && granted.first?.detail.hasSuffix(" standing") == true)
        let first = try #require(try consent("com.juice"))
        #expect(
            first.isLive && first.isTeamsLive && first.sharesEmail && first.name == nil
                && first.inboxNumber == nil)
        #expect(first.emailKind == .privateRelay && first.address?.domain == "relay.example")
        #expect(try consent("com.tea")?.address != first.address)
        // Another app of the team: the address is the same, but there is no consent.
        let other = try #require(try consent("com.other"))
        #expect(
            !other.isLive && other.isTeamsLive && !other.sharesEmail
                && other.address == first.address)
        #expect(try consent("com.juice", of: "bob") == nil)
    }

    @Test(arguments: Engine.all) func consent_givenAgain_hasLatestNameAndAddress(
        _ engine: Engine
    ) throws {
        let test = try world(engine)
        let store = test.store
        func name() throws -> PersonName? {
            try store.provider.consent(user: "anna", clientID: "com.juice")?.name
        }
        let (stored, typed) = (
            PersonName(given: "anna", family: "Smith"),
            PersonName(given: "Ann Mary", family: "van der Berg")
        )
        try signIn(test, "com.juice", scopes: ["name", "openid"], name: .stored)
        #expect(try name() == stored)
        for scope in ["name", "profile"] {
            try signIn(test, "com.juice", scopes: [scope, "openid"], name: .typed(typed))
            #expect(try name() == typed)
        }
        try signIn(
            test, "com.juice", scopes: ["name", "openid"],
            name: .typed(PersonName(given: nil, family: nil)))
        #expect(try name() == nil)
        #expect(try store.provider.consent(user: "anna", clientID: "com.juice")?.sharesName == true)
        try signIn(test, "com.juice", scopes: ["name", "openid"], name: .stored)
        #expect(try name() == stored)
        // A consent to one app gives another app of the team nothing.
        try signIn(test, "com.other", scopes: ["openid"])
        #expect(
            try store.provider.consent(user: "anna", clientID: "com.other")?.sharesName == false)
        // A new address, and the former ones retired: still one row.
        let account = try #require(try store.accounts.accounts(team: "juice", user: "anna").first)
        let old = try #require(
            try store.provider.consent(user: "anna", clientID: "com.juice")?.address)
        try store.addresses.retire(old, Self.change)
        #expect(try store.provider.consent(user: "anna", clientID: "com.juice")?.address == nil)
        let new = try test.address("anna").address
        #expect(
            try store.provider.consent(user: "anna", clientID: "com.juice")?.address == new
                && new != old)
        _ = try store.grants.revokeAll(account: account.number, Self.change)
        let ended = try #require(try store.provider.consent(user: "anna", clientID: "com.juice"))
        #expect(!ended.isLive && !ended.isTeamsLive && ended.address != nil)
    }

    @Test(arguments: Engine.all) func consent_toRealAddress_namesItsInbox(_ engine: Engine) throws {
        let test = try world(engine)
        _ = try test.store.inboxes.add(
            user: "anna", TestStore.inbox("anna@work.example"), isVerified: true,
            isReplyOnly: false, Self.change)
        try signIn(test, "com.juice", kind: .real, inbox: 2)
        let consent = try #require(
            try test.store.provider.consent(user: "anna", clientID: "com.juice"))
        #expect(consent.emailKind == .real && consent.inboxNumber == 2 && consent.address == nil)
    }

    @Test(arguments: Engine.all) func consent_unknownUserOrApp_isNotFound(_ engine: Engine) throws {
        let test = try world(engine)
        for (user, app, said) in [
            ("anna", "com.none", "there is no app com.none"),
            ("nobody", "com.juice", "there is no user nobody"),
            ("nobody", "com.none", "there is no app com.none"),
        ] {
            let failure = #expect(throws: StoreFailure.self) {
                try test.store.provider.consent(user: user, clientID: app)
            }
            #expect(failure?.code == .refused(.notFound))
            #expect(failure?.description.contains(said) == true)
        }
        try test.store.teams.remove("juice", Self.change)
        expectRefusal(.notFound) {
            _ = try test.store.provider.consent(user: "anna", clientID: "com.juice")
        }
    }

    // MARK: Apps

    @Test(arguments: Engine.all) func appearance_appOrTeamRemoved_returnsNil(
        _ engine: Engine
    ) throws {
        let test = try world(engine)
        let apps = test.store.apps
        let bare = try #require(try apps.appearance(clientID: "com.juice"))
        #expect(bare.name == nil && !bare.hasIcon && bare.teamName == "The Juice Company")
        try apps.setAppearance(team: "juice", clientID: "com.juice", name: "Juice", Self.change)
        #expect(try apps.appearance(clientID: "com.juice")?.name == "Juice")
        #expect(try apps.appearance(clientID: "com.none") == nil)
        try apps.remove(team: "juice", clientID: "com.other", Self.change)
        #expect(try apps.appearance(clientID: "com.other") == nil)
        #expect(try test.store.openIDClients.authorizationClient("com.other") == nil)
        try test.store.teams.remove("juice", Self.change)
        #expect(try apps.appearance(clientID: "com.juice") == nil)
    }

    @Test(arguments: Engine.all) func authorizationClient_redirectURIs_areItsOwn(
        _ engine: Engine
    ) throws {
        let test = try world(engine)
        let clients = test.store.openIDClients
        try test.store.clients.addRedirect(
            team: "juice", clientID: "com.juice", uri: "https://com.juice.example/two", Self.change)
        #expect(
            try clients.authorizationClient("com.juice")?.redirectURIs.sorted()
                == ["https://com.juice.example/in", "https://com.juice.example/two"])
        try test.store.clients.removeRedirect(
            team: "tea", clientID: "com.tea", uri: "https://com.tea.example/in", Self.change)
        #expect(try clients.authorizationClient("com.tea")?.redirectURIs == [])
        #expect(try clients.authorizationClient("com.none") == nil)
    }

    @Test(arguments: Engine.all) func authorize_invalidRequest_isRefusedWithReason(
        _ engine: Engine
    ) throws {
        let test = try world(engine)
        expectRefusal(.invalid) {
            try signIn(test, "com.juice", to: "https://com.juice.example/other")
        }
        expectRefusal(.invalid) { try signIn(test, "com.juice", to: "https://com.tea.example/in") }
        expectRefusal(.notFound) { try signIn(test, "com.none") }
        expectRefusal(.notFound) { try signIn(test, "com.juice", as: "nobody") }
        try test.user("carl", isVerified: false)
        expectRefusal(.unmet) { try signIn(test, "com.juice", as: "carl") }
        try signIn(test, "com.juice", as: "bob")
    }

    // MARK: Inboxes

    @Test(arguments: Engine.all) func inboxes_ofUser_areOldestFirst(_ engine: Engine) throws {
        let test = try world(engine)
        let inboxes = test.store.inboxes
        for name in ["anna@b.example", "anna@a.example"] {
            _ = try inboxes.add(
                user: "anna", TestStore.inbox(name), isVerified: true, isReplyOnly: false,
                Self.change)
        }
        #expect(
            try inboxes.inboxes(user: "anna").map { $0.address.revealed.domain } == [
                "home.example", "b.example", "a.example",
            ])
        try inboxes.remove(user: "bob", .number(1), Self.change)
        #expect(try inboxes.inboxes(user: "bob").isEmpty)
        expectRefusal(.notFound) { _ = try inboxes.inboxes(user: "nobody") }
    }
}
