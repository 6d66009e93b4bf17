// Apps and endpoints with many rows: invisible to everyone at once, and deleted in small steps.

import Accounts
import Database
import Decisions
import Events
import InternetMessage
import PersonalData
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct AppRemovalTests {
    private static let later = RemovalRepositoryTests.later
    private static let users = 120

    /// An app with an endpoint and consents of this number of users, each with a relay address.
    private static func world(
        _ engine: Engine, users: Int = users
    ) throws -> (TestStore, [RelayAddress]) {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        try endpoint(test)
        return (
            test,
            try (0..<users).map { number in
                try test.user("u\(number)")
                return try test.address("u\(number)", app: "com.juice")
            }
        )
    }

    private static func endpoint(_ test: TestStore) throws {
        _ = try test.store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://hooks.juice.example/events"),
            TestStore.change)
    }

    private static func number(_ test: TestStore, _ sql: String) throws -> Int64? {
        try test.database.value(SQL(sql, []))
    }

    /// The consent does not exist for mail, teams and users.
    private static func expectEnded(_ test: TestStore, _ address: RelayAddress, user: String) throws
    {
        let store = test.store
        #expect(
            try store.relay.relayAddress(
                localPart: address.address.localPart, domain: address.address.domain,
                now: TestStore.now)?.hasLiveGrant == false)
        #expect(
            try store.relay.account(number: address.account.number, day: TestStore.today)?
                .hasLiveGrant == false)
        #expect(try store.grants.grants(account: address.account.number).isEmpty)
        #expect(
            try store.grants.credentialState(team: "juice", sub: address.account.sub) == .revoked)
        #expect(
            try store.grants.credentialState(
                team: "juice", sub: address.account.sub, clientID: "com.juice") == .notFound)
        #expect(
            try store.persons.accounts(user: user, since: 0, now: TestStore.now).flatMap(\.consents)
                .isEmpty)
        #expect(
            try store.persons.records(user: user, now: TestStore.now).filter {
                $0.name == "consents"
            }.allSatisfy(\.rows.isEmpty))
    }

    /// One transaction for all consents would make other writers wait too long.
    @Test(arguments: Engine.all) func appRemoval_manyConsents_endsAtOnceDeletesInSteps(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        var steps = 0
        repeat {
            try Self.expectEnded(test, addresses[0], user: "u0")
            try Self.expectEnded(test, addresses[Self.users - 1], user: "u\(Self.users - 1)")
            #expect(try test.store.apps.apps(team: "juice").isEmpty)
            // Neither under its name nor under its internal one.
            #expect(try !test.store.apps.isClient("com.juice"))
            for client in try test.database.values("SELECT client_id FROM apps", String.self) {
                #expect(try !test.store.apps.isClient(client))
                #expect(try test.store.clients.client(client) == nil)
            }
            steps += 1
        } while try test.store.removals.step(now: Self.later.now)
        #expect(steps > Self.users / 50)
        // The end of each consent has one event; accounts and team are unchanged.
        let told = try test.store.outbox.events(limit: 1_000)
        #expect(told.map(\.type) == Array(repeating: .consentRevoked, count: Self.users))
        #expect(Set(told.map(\.sub)) == Set(addresses.map(\.account.sub)))
        #expect(try Self.number(test, "SELECT COUNT(*) FROM accounts") == Int64(Self.users))
        for table in [
            "grants", "apps", "app_groups", "teams WHERE removed_at IS NOT NULL OR loses_apps = 1",
        ] {
            #expect(try Self.number(test, "SELECT COUNT(*) FROM \(table)") == 0, "\(table)")
        }
        #expect(try test.store.outbox.waitingEndpoints().map(\.pending) == [Self.users])
    }

    @Test(arguments: Engine.all) func appRemoval_appAddedAgain_keepsNewConsent(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, Self.later)
        try Self.endpoint(test)
        let last = addresses[Self.users - 1]
        let again = try test.store.grants.authorize(
            AuthorizationRequest(clientID: "com.juice", userID: "u\(Self.users - 1)"), Self.later)
        #expect(again.kind == .first && again.account.number == last.account.number)
        while try test.store.removals.step(now: Self.later.now) {
            #expect(
                try test.store.relay.account(number: last.account.number, day: TestStore.today)?
                    .hasLiveGrant == true)
        }
        #expect(
            try test.store.grants.grants(account: last.account.number).map(\.state) == [.authorized]
        )
        #expect(try Self.number(test, "SELECT COUNT(*) FROM grants") == 1)
    }

    /// If the account ends before its consent is deleted, the endpoint gets the event about the
    /// account, and no event twice.
    @Test(arguments: Engine.all) func appRemoval_accountEndsMeanwhile_isToldOnce(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let (deleted, removed) = (addresses[Self.users - 1], addresses[Self.users - 2])
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        // Later changes of an account cause no events for a removed app.
        try test.store.addresses.setForwarding(deleted.address, on: false, Self.later)
        try test.store.accounts.delete(account: deleted.account.number, Self.later)
        try test.store.users.remove("u\(Self.users - 2)", Self.later)
        while try test.store.removals.step(now: Self.later.now) {}
        let told = Dictionary(grouping: try test.store.outbox.events(limit: 1_000), by: \.sub)
            .mapValues { $0.map(\.type) }
        #expect(told.count == Self.users)
        for (sub, types) in told {
            #expect(
                types == [
                    [deleted.account.sub, removed.account.sub].contains(sub)
                        ? .accountDelete : .consentRevoked
                ])
        }
    }

    /// If the app is moving to another team, the remaining consents belong to another team: they
    /// end, and no endpoint is notified.
    @Test(arguments: Engine.all) func appRemoval_duringTransfer_endsAllConsents(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", TestStore.change)
        #expect(
            try !test.store.transfers.step(app: "com.juice", limit: 3, TestStore.change).isFinished)
        try test.store.apps.remove(team: "milk", clientID: "com.juice", Self.later)
        #expect(try test.store.removals.isPending())
        let last = addresses[Self.users - 1]
        #expect(
            try test.store.relay.account(number: last.account.number, day: TestStore.today)?
                .hasLiveGrant == false)
        #expect(try test.store.transfers.transfers().isEmpty)
        while try test.store.removals.step(now: Self.later.now) {}
        for table in ["grants", "app_groups", "app_transfers", "account_transfers"] {
            #expect(try Self.number(test, "SELECT COUNT(*) FROM \(table)") == 0, "\(table)")
        }
    }

    /// Mail to the old team's address must stop at once, and not go to the new team's account until
    /// the last row is deleted.
    @Test(arguments: Engine.all) func appRemoval_afterTransfer_stopsMailToSuccessor(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", TestStore.change)
        try test.store.transfers.complete(app: "com.juice", TestStore.change)
        let address = addresses[Self.users - 1].address
        func successors() throws -> Int? {
            try test.store.relay.relayAddress(
                localPart: address.localPart, domain: address.domain, now: Self.later.now)?
                .successors.count
        }
        #expect(try successors() == 1)
        try test.store.apps.remove(team: "milk", clientID: "com.juice", Self.later)
        #expect(try test.store.removals.isPending())
        repeat {
            #expect(try successors() == 0)
        } while try test.store.removals.step(now: Self.later.now)
    }

    /// A code must not give tokens if the app is removed after the client was found and before the
    /// exchange.
    @Test(arguments: Engine.all) func appRemoval_codeIssuedBefore_isRefused(_ engine: Engine) throws
    {
        let (test, _) = try Self.world(engine)
        let redirect = TransferTokenTests.redirect
        _ = try test.store.clients.addRedirect(
            team: "juice", clientID: "com.juice", uri: redirect, TestStore.change)
        let client = try #require(try test.store.clients.client("com.juice"))
        let request = ProviderAuthorization(
            grant: AuthorizationRequest(
                clientID: "com.juice", userID: "u\(Self.users - 1)", emailKind: .privateRelay),
            redirectURI: redirect, scopes: ["openid"], nonce: nil, challenge: nil, orgID: nil,
            authenticatedAt: TestStore.now)
        let code = try test.store.provider.authorize(request, TestStore.change) { $0.code }
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        #expect(try Self.number(test, "SELECT COUNT(*) FROM authorization_codes") == 1)
        let outcome = try test.store.provider.redeem(
            code: code, client: client, redirectURI: redirect, challenge: nil, now: TestStore.now
        ) { $0.accessToken }
        guard case .refused = outcome else { return #expect(Bool(false), "the code gave tokens") }
        #expect(try Self.number(test, "SELECT COUNT(*) FROM refresh_tokens") == 0)
    }

    /// A user who returns at that moment must not get a live consent to a removed app.
    @Test(arguments: Engine.all) func appRemoval_revokedConsent_isNotRevived(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let account = addresses[Self.users - 1].account
        let client = try #require(try test.store.clients.client("com.juice"))
        let group = try #require(try test.store.grants.grants(account: account.number).first).group
        try test.store.grants.revoke(account: account.number, group: group, TestStore.change)
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        var write = DecisionWrite(
            team: client.teamNumber, group: client.groupNumber, app: client.appNumber,
            subject: .own(sub: account.sub),
            expected: nil,
            nonce: nil, isVerified: true, now: Self.later.now, record: nil)
        write.isReturn = true
        _ = try test.store.decisionWrites.apply(write)
        #expect(try Self.number(test, "SELECT COUNT(*) FROM grants WHERE state = 'revoked'") == 1)
        #expect(try Self.number(test, "SELECT COUNT(*) FROM daily_counters") == 0)
    }

    /// Its tokens and counts may be many too.
    @Test(arguments: Engine.all) func appRemoval_oneAppOfGroup_keepsTheGroup(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice.web")
        let app = try #require(
            try Self.number(test, "SELECT id FROM apps WHERE client_id = 'com.juice.web'"))
        try test.database.write(.durable) { connection in
            for slice in 0..<Int64(2 * RemovalRepository.rows) {
                try connection.run(
                    "INSERT INTO app_signups (app_id, slice, count) VALUES (\(app), \(slice), 1)")
            }
        }
        try test.store.apps.remove(team: "juice", clientID: "com.juice.web", Self.later)
        #expect(try test.store.removals.isPending())
        #expect(
            try test.store.apps.apps(team: "juice").map(\.clientID) == ["com.juice", "com.press"])
        #expect(
            try test.store.grants.grants(account: account.account.number).map(\.state) == [
                .authorized
            ])
        while try test.store.removals.step(now: Self.later.now) {}
        #expect(try Self.number(test, "SELECT COUNT(*) FROM app_signups") == 0)
        #expect(try Self.number(test, "SELECT COUNT(*) FROM apps") == 2)
        #expect(
            try test.store.relay.account(number: account.account.number, day: TestStore.today)?
                .hasLiveGrant == true)
        #expect(try LifecycleTests.told(test).isEmpty)
    }

    /// While its accounts are deleted, a removed team must not get events about its users' mail.
    @Test(arguments: Engine.all) func teamRemoval_accountsEnding_sendsOnlyAccountDelete(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        try test.store.teams.remove("juice", Self.later)
        try test.store.inboxes.remove(user: "u\(Self.users - 1)", .number(1), Self.later)
        try test.store.users.remove("u\(Self.users - 2)", Self.later)
        while try test.store.removals.step(now: Self.later.now) {}
        let told = try test.store.outbox.events(limit: 1_000)
        #expect(told.map(\.type) == Array(repeating: .accountDelete, count: Self.users))
        #expect(Set(told.map(\.sub)) == Set(addresses.map(\.account.sub)))
    }

    /// A removal that fails must not block the others.
    @Test(arguments: Engine.all) func removal_oneFails_othersGoOn(_ engine: Engine) throws {
        let (test, addresses) = try Self.world(engine, users: 60)
        try test.database.write(.durable) { connection in
            let type = test.database.dialect.types["int"] ?? "BIGINT"
            try connection.runScript(
                "CREATE TABLE holders (account \(type) NOT NULL REFERENCES accounts (id))")
            try connection.run(
                "INSERT INTO holders (account) VALUES (?1)",
                [.integer(addresses[59].account.number)])
        }
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.apps.add(
            team: "milk", clientID: "com.milk", group: nil, TestStore.change)
        for user in 0..<60 {
            _ = try test.store.grants.authorize(
                AuthorizationRequest(clientID: "com.milk", userID: "u\(user)"), TestStore.change)
        }
        let team = try test.store.teams.team("juice").number
        try test.store.teams.remove("juice", Self.later)
        try test.store.teams.remove("milk", Change(actor: "uid:0", now: Self.later.now + 1))
        let failures = try test.store.removals.run(now: Self.later.now)
        #expect(failures.map(\.item) == [.team(team)])
        #expect(
            try Self.number(test, "SELECT COUNT(*) FROM accounts WHERE team_id <> \(team)") == 0)
        #expect(
            try test.store.removals.backlog()
                == RemovalRepository.Backlog(count: 1, oldest: Self.later.now))
        // A failed removal is not tried every second.
        #expect(try test.store.removals.run(now: Self.later.now, passing: [.team(team)]).isEmpty)
        try test.database.write(.durable) { try $0.runScript("DROP TABLE holders") }
        #expect(try test.store.removals.run(now: Self.later.now).isEmpty)
        #expect(try !test.store.removals.isPending())
    }

    @Test(arguments: Engine.all) func endpointRemoval_manyEvents_endsAtOnceDeletesInSteps(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine, users: 0)
        try OutboxStepTests.post(test, accounts: 1...2_500)
        try test.store.endpoints.remove(team: "juice", app: "com.juice", Self.later)
        #expect(
            try test.store.audit.entries(limit: 1).first?.detail
                == "app:com.juice with 2500 pending events")
        var steps = 0
        repeat {
            #expect(try test.store.endpoints.endpoints().isEmpty)
            expectRefusal(.notFound) {
                _ = try test.store.endpoints.endpoint(team: "juice", app: "com.juice")
            }
            #expect(try test.store.outbox.waitingEndpoints().isEmpty)
            #expect(try test.store.outbox.events().isEmpty)
            #expect(try test.store.outbox.backlog().events == 0, "they are not delivered")
            steps += 1
        } while try test.store.removals.step(now: Self.later.now)
        #expect(steps == 2_500 / RemovalRepository.rows + 2)
        for table in ["outbox", "event_endpoints", "endpoint_health"] {
            #expect(try Self.number(test, "SELECT COUNT(*) FROM \(table)") == 0, "\(table)")
        }
    }
}
