// Transfer of an app to another team: what moves, what ends, and the events of each team.

import Accounts
import Database
import Events
import InternetMessage
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct TransferRepositoryTests {
    static let change = TestStore.change
    static let overlap: Int64 = 60 * 86_400

    /// Team juice with two groups of apps, and team milk with none; u1 has consented to com.juice,
    /// with a status and a passed check.
    struct Fixture {
        let test: TestStore
        let old: AuthorizedGrant

        init(_ engine: Engine, alsoPress: Bool = false) throws {
            test = try LifecycleTests.world(engine)
            _ = try test.store.teams.add(id: "milk", name: "Milk", change)
            old = try LifecycleTests.authorize(test, "com.juice", status: 2)
            if alsoPress { _ = try LifecycleTests.authorize(test, "com.press") }
            try test.database.write(.durable) { [grant = old.grant.number] connection in
                try connection.run(
                    """
                    INSERT INTO checks (decision_id, challenge, grant_id, initiated_at, passed_at)
                    VALUES ('rd_1', 'email_code', \(grant), \(TestStore.now - 60), \(TestStore.now - 60))
                    """)
            }
        }

        var transfers: TransferRepository { test.store.transfers }

        func client(_ app: String) throws -> ProviderClient {
            guard let client = try test.store.clients.client(app) else {
                throw StoreFailure.refused(.notFound, app)
            }
            return client
        }

        /// Starts the transfer, requests the user's transfer subject for the old team, and
        /// finishes.
        func move(finishedAt now: Int64 = TestStore.now) throws -> String {
            _ = try transfers.start(team: "juice", app: "com.juice", to: "milk", change)
            let subject = try transfers.transferSubject(
                sub: old.account.sub, client: client("com.juice"), target: "milk", change)
            let done = try transfers.finish(app: "com.juice", Change(actor: "uid:0", now: now))
            #expect(done.state == .finished)
            return try #require(subject)
        }

        func new() throws -> Account {
            try #require(try test.store.accounts.accounts(team: "milk", user: "u1").first)
        }
    }

    /// The old team's access token must not change or read the stream that the new team created for
    /// the app.
    @Test(arguments: Engine.all) func transfer_accessTokensOfApp_areDeleted(_ engine: Engine) throws
    {
        let fixture = try Fixture(engine)
        let database = fixture.test.database
        let app = try #require(
            try database.value("SELECT id FROM apps WHERE client_id = 'com.juice'", Int64.self))
        try database.write(.durable) { connection in
            for (number, scope) in ["ssf.manage", "ssf.read ssf.manage", "user.migration"]
                .enumerated()
            {
                try connection.run(
                    """
                    INSERT INTO access_tokens (token_hash, app_id, scopes, expires_at)
                    VALUES (\([UInt8(number)]), \(app), \(scope), \(TestStore.now + 3_600))
                    """)
            }
        }
        _ = try fixture.move()
        #expect(try database.values("SELECT scopes FROM access_tokens", String.self).isEmpty)
    }

    @Test(arguments: Engine.all) func transferSubject_repeated_isStablePerTarget(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let client = try world.client("com.juice")
        func subject(_ sub: String, target: String = "milk") throws -> String? {
            try world.transfers.transferSubject(
                sub: sub, client: client, target: target, Self.change)
        }
        #expect(try subject(world.old.account.sub) == nil, "nothing was started")
        _ = try world.transfers.start(team: "juice", app: "com.juice.web", to: "milk", Self.change)
        let first = try #require(try subject(world.old.account.sub))
        #expect(try subject(world.old.account.sub) == first)
        #expect(first != world.old.account.sub)
        #expect(try subject("nobody") == nil)
        #expect(try subject(world.old.account.sub, target: "juice") == nil)
        // An app that stays has no transfer subject.
        #expect(
            try world.transfers.transferSubject(
                sub: world.old.account.sub, client: world.client("com.press"), target: "milk",
                Self.change) == nil)
        // Not before the app belongs to the new team.
        #expect(
            try world.transfers.account(transferSubject: first, client: client, Self.change) == nil)
    }

    @Test(arguments: Engine.all) func transferSubject_exchanged_givesNewSubAndAddress(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let subject = try world.move()
        let client = try world.client("com.juice")
        #expect(client.teamID == "milk")
        let account = try #require(
            try world.transfers.account(transferSubject: subject, client: client, Self.change))
        let new = try world.new()
        #expect(account.sub == new.sub)
        #expect(account.sub != world.old.account.sub)
        let address = try #require(try world.test.store.addresses.current(account: new.number))
            .address
        #expect(account.email == .relay(address))
        #expect(address != world.old.relayAddress?.address)
        // For 60 days, for this team, and only with an existing subject.
        let end = Change(actor: "uid:0", now: Self.change.now + Self.overlap)
        #expect(try world.transfers.account(transferSubject: subject, client: client, end) == nil)
        #expect(
            try world.transfers.account(transferSubject: "nothing", client: client, Self.change)
                == nil)
        #expect(
            try world.transfers.account(
                transferSubject: subject, client: world.client("com.press"), Self.change) == nil)
    }

    @Test(arguments: Engine.all) func transfer_ageStatusAndChecks_moveAlong(_ engine: Engine) throws
    {
        let world = try Fixture(engine)
        _ = try world.move(finishedAt: TestStore.now + 3600)
        let new = try world.new()
        let grant = try #require(try world.test.store.grants.grants(account: new.number).first)
        #expect(grant.number == world.old.grant.number)
        #expect(grant.realUserStatus == 2)
        #expect(grant.firstAuthorizedAt == TestStore.now)
        let milk = try world.test.store.teams.team("milk").number
        let history = try #require(
            try world.test.store.history.history(
                team: milk, group: grant.group.number, subject: .own(sub: new.sub),
                now: TestStore.now + 7200))
        #expect(history.passedChecks90d == 1)
        #expect(history.lastPasses.emailCode == TestStore.now - 60)
        #expect(history.grant?.transferredAt == TestStore.now + 3600)
        // The next sign-in is not a first one, and creates no other account.
        let again = try LifecycleTests.authorize(world.test, "com.juice", status: 0)
        #expect(again.kind == .again)
        #expect(again.account.sub == new.sub)
        #expect(again.grant.realUserStatus == 2)
    }

    @Test(arguments: Engine.all) func transfer_signInMeanwhile_movesThatUser(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        for number in 2...6 {
            try world.test.user("u\(number)")
            _ = try world.test.store.grants.authorize(
                AuthorizationRequest(clientID: "com.juice", userID: "u\(number)"), Self.change)
        }
        _ = try world.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        let begun = try world.transfers.finish(app: "com.juice", limit: 1, Self.change)
        #expect(begun.state == .moving)
        #expect(begun.waiting == 5)
        expectRefusal(.unmet) { try world.transfers.cancel(app: "com.juice", Self.change) }
        let signedIn = try world.test.store.grants.authorize(
            AuthorizationRequest(clientID: "com.juice", userID: "u6"), Self.change)
        #expect(signedIn.kind == .again)
        #expect(signedIn.team.id == "milk")
        #expect(try world.transfers.transfers(app: "com.juice").first?.waiting == 4)
        let done = try world.transfers.finish(app: "com.juice", Self.change)
        #expect(done.state == .finished)
        #expect(done.moved == 6)
        #expect(try world.test.store.accounts.accounts(team: "milk").count == 6)
    }

    @Test(arguments: Engine.all) func transfer_oldAddress_leadsToNewAccountFor60Days(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let address = try #require(world.old.relayAddress).address
        _ = try world.move()
        let new = try world.new()
        func record(_ now: Int64) throws -> RelayAccount? {
            try world.test.store.relay.relayAddress(
                localPart: address.localPart, domain: address.domain, now: now)
        }
        let during = try #require(try record(TestStore.now + Self.overlap - 1))
        #expect(during.team == "juice")
        #expect(!during.hasLiveGrant, "the old team has no consent left")
        #expect(during.successors.map(\.number.stored) == [new.number])
        #expect(during.successors.first?.team == "milk")
        #expect(during.successors.first?.hasLiveGrant == true)
        #expect(during.successors.first?.inbox == during.inbox)
        #expect(try record(TestStore.now + Self.overlap)?.successors.isEmpty == true)
    }

    @Test(arguments: Engine.all) func transfer_oldSubAndAddress_endWithoutOtherGrant(
        _ engine: Engine
    ) throws {
        for alsoPress in [false, true] {
            let world = try Fixture(engine, alsoPress: alsoPress)
            let address = try #require(world.old.relayAddress).address
            _ = try world.move()
            #expect(
                try LifecycleTests.state(world.test, world.old.account.sub, "com.juice")
                    == .transferred)
            #expect(
                try LifecycleTests.state(world.test, world.old.account.sub)
                    == (alsoPress ? .authorized : .transferred))
            #expect(try world.transfers.endExpired(now: TestStore.now + Self.overlap - 1) == 0)
            #expect(
                try world.transfers.endExpired(now: TestStore.now + Self.overlap)
                    == (alsoPress ? 0 : 1))
            let left = try world.test.store.relay.relayAddress(
                localPart: address.localPart, domain: address.domain)
            #expect((left != nil) == alsoPress)
            #expect(
                try LifecycleTests.state(world.test, world.old.account.sub)
                    == (alsoPress ? .authorized : .notFound))
            // A move is not a deletion: no tombstone and no event says that a user left.
            #expect(
                try world.test.store.tombstones.tombstones(user: "u1", now: TestStore.now).isEmpty)
            #expect(try LifecycleTests.told(world.test).isEmpty)
            #expect(
                try world.test.store.grants.credentialState(team: "milk", sub: world.new().sub)
                    == .authorized)
        }
    }

    @Test(arguments: Engine.all) func transfer_laterEvents_goToNewTeam(_ engine: Engine) throws {
        let world = try Fixture(engine)
        try world.test.store.addresses.setForwarding(
            #require(world.old.relayAddress).address, on: false, Self.change)
        _ = try world.move()
        let new = try world.new()
        let address = try #require(try world.test.store.addresses.current(account: new.number))
        #expect(!address.isForwardingOn, "who wanted no mail wants none of the new team's")
        try world.test.store.addresses.setForwarding(address.address, on: true, Self.change)
        #expect(try LifecycleTests.told(world.test) == ["email-disabled com.juice"])
        #expect(try world.test.store.endpoints.endpoints(team: "milk").isEmpty)
        #expect(try world.test.store.outbox.waitingEndpoints().map(\.groupNumber) == [nil])
        _ = try world.test.store.endpoints.set(
            team: "milk", app: "com.juice", url: EndpointURL("https://hooks.milk.example/"),
            Self.change)
        try world.test.store.addresses.setForwarding(address.address, on: false, Self.change)
        #expect(try world.test.store.outbox.events(team: "milk").map(\.sub) == [new.sub])
    }

    @Test(arguments: Engine.all) func userHint_oldSub_isFoundFor60Days(_ engine: Engine) throws {
        let world = try Fixture(engine)
        _ = try world.move()
        let sub = world.old.account.sub
        #expect(
            try world.test.store.provider.userID(
                hint: sub, clientID: "com.juice", now: TestStore.now) == "u1")
        #expect(
            try world.test.store.provider.userID(
                hint: sub, clientID: "com.juice", now: TestStore.now + Self.overlap) == nil)
    }

    @Test(arguments: Engine.all) func transfer_invalidRequest_isRefused(_ engine: Engine) throws {
        let world = try Fixture(engine)
        expectRefusal(.invalid) {
            _ = try world.transfers.start(team: "juice", app: "com.juice", to: "juice", Self.change)
        }
        expectRefusal(.notFound) {
            _ = try world.transfers.start(team: "milk", app: "com.juice", to: "juice", Self.change)
        }
        expectRefusal(.notFound) {
            _ = try world.transfers.start(
                team: "juice", app: "com.juice", to: "nobody", Self.change)
        }
        expectRefusal(.notFound) { _ = try world.transfers.finish(app: "com.juice", Self.change) }
        _ = try world.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        expectRefusal(.exists) {
            _ = try world.transfers.start(
                team: "juice", app: "com.juice.web", to: "milk", Self.change)
        }
        try world.transfers.cancel(app: "com.juice.web", Self.change)
        expectRefusal(.notFound) { try world.transfers.cancel(app: "com.juice", Self.change) }
        _ = try world.move()
        // The app moves back.
        _ = try world.transfers.start(team: "milk", app: "com.juice", to: "juice", Self.change)
        #expect(try world.transfers.finish(app: "com.juice", Self.change).state == .finished)
        #expect(
            try LifecycleTests.state(world.test, world.old.account.sub, "com.juice") == .authorized)
    }
}
