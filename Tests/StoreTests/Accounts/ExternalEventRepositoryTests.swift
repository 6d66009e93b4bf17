// Events of other issuers: applied once, never replaced by an older one, and never about our own
// forwarding.

import Accounts
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct ExternalEventRepositoryTests {
    private static let issuer = "https://appleid.apple.com"
    private static let authorized = TestStore.now

    /// An account of an external issuer with a grant to com.juice.
    private static func world(_ engine: Engine) throws -> (TestStore, account: Int64, sub: String) {
        let test = try LifecycleTests.world(engine)
        let sub = "a234567a234567a234567a234567a234"
        let account = try test.database.write(.durable) { connection in
            let account =
                try connection.value(
                    "INSERT INTO accounts (team_id, sub, created_at) VALUES (1, \(sub), \(authorized)) RETURNING id",
                    Int64.self)
                ?? 0
            try connection.run(
                "INSERT INTO external_identities (team_id, issuer, subject, account_id, created_at) VALUES (1, \(issuer), '001.abc', \(account), \(authorized))"
            )
            try connection.run(
                """
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
                SELECT \(account), group_id, 'authorized', \(authorized), \(authorized) FROM apps WHERE client_id = 'com.juice'
                """)
            return account
        }
        return (test, account, sub)
    }

    private static func apply(
        _ test: TestStore, _ type: EventType?, _ jti: String, after seconds: Int64,
        subject: String = "001.abc",
        app: String = "com.juice.web"
    ) throws -> ExternalEventOutcome {
        try test.store.externalEvents.apply(
            ExternalEvent(
                issuer: issuer, jti: jti, subject: subject, clientID: app, type: type,
                happenedAt: (authorized + seconds) * 1000),
            Change(actor: "issuer:apple", now: authorized + 3600))
    }

    private static func forwarding(_ test: TestStore, _ account: Int64) throws -> Int64? {
        try test.database.value(
            "SELECT forwarding_on FROM external_identities WHERE account_id = \(account)")
    }

    @Test(arguments: Engine.all) func externalEvent_emailChange_isAppliedInOrder(
        _ engine: Engine
    ) throws {
        let (test, account, _) = try Self.world(engine)
        #expect(try Self.forwarding(test, account) == nil)
        #expect(try Self.apply(test, .emailDisabled, "e1", after: 10) == .taken)
        #expect(try Self.forwarding(test, account) == 0)
        #expect(try Self.apply(test, .emailEnabled, "e3", after: 30) == .taken)
        #expect(
            try Self.apply(test, .emailDisabled, "e2", after: 20) == .outdated, "it was overtaken")
        #expect(try Self.forwarding(test, account) == 1)
        #expect(try Self.apply(test, .emailEnabled, "e3", after: 30) == .repeated)
        #expect(
            try test.store.counters.count(
                account: account, kind: .forwardingToggled, day: Day.number(Self.authorized + 3600))
                == 2)
        // Each kind of event has its own order.
        #expect(try Self.apply(test, .consentRevoked, "c1", after: 15) == .taken)
        // No endpoint is notified, because the issuer notifies the team.
        #expect(try test.store.outbox.events().isEmpty)
    }

    @Test(arguments: Engine.all) func externalEvent_consentRevoked_endsEarlierGrant(
        _ engine: Engine
    ) throws {
        let (test, account, sub) = try Self.world(engine)
        #expect(try Self.apply(test, .consentRevoked, "c0", after: -1) == .outdated)
        #expect(try LifecycleTests.state(test, sub, "com.juice") == .authorized)
        #expect(try Self.apply(test, .consentRevoked, "c1", after: 60) == .taken)
        #expect(try LifecycleTests.state(test, sub, "com.juice") == .revoked)
        #expect(
            try test.store.grants.grants(account: account).first?.revokedAt == Self.authorized + 60)
        // Another group of apps has its own consent.
        #expect(try Self.apply(test, .consentRevoked, "c2", after: 70, app: "com.press") == .taken)
    }

    @Test(arguments: Engine.all) func externalEvent_accountDelete_leavesTombstone(
        _ engine: Engine
    ) throws {
        let (test, _, sub) = try Self.world(engine)
        #expect(try Self.apply(test, .accountDelete, "d1", after: 60) == .taken)
        #expect(try LifecycleTests.state(test, sub) == .notFound)
        let tombstones = try test.store.tombstones.tombstones(
            issuer: Self.issuer, subject: "001.abc", now: Self.authorized + 3600)
        #expect(tombstones.map(\.deletions) == [1])
        #expect(try Self.apply(test, .accountDelete, "d2", after: 61) == .unknownSubject)
        #expect(try Self.apply(test, .accountDelete, "d1", after: 60) == .repeated)
    }

    @Test(arguments: Engine.all) func externalEvent_unknownTypeOrSubject_changesNothing(
        _ engine: Engine
    ) throws {
        let (test, _, sub) = try Self.world(engine)
        #expect(try Self.apply(test, nil, "x1", after: 60) == .unknownType)
        #expect(try Self.apply(test, .test, "x2", after: 60) == .unknownType)
        #expect(
            try Self.apply(test, .consentRevoked, "x3", after: 60, subject: "002.xyz")
                == .unknownSubject)
        #expect(try LifecycleTests.state(test, sub) == .authorized)
        expectRefusal(.notFound) {
            _ = try Self.apply(test, .consentRevoked, "x4", after: 60, app: "com.unknown")
        }
        // A refused event was not applied, so it may come again.
        expectRefusal(.notFound) {
            _ = try Self.apply(test, .consentRevoked, "x4", after: 60, app: "com.unknown")
        }
        #expect(try test.store.externalEvents.deleteExpired(now: Self.authorized + 8 * 86_400) == 0)
        #expect(
            try test.store.externalEvents.deleteExpired(now: Self.authorized + 10 * 86_400) == 3)
    }

    @Test(arguments: Engine.all) func link_externalAccount_givesItOneUser(_ engine: Engine) throws {
        let (test, account, _) = try Self.world(engine)
        try test.store.accounts.link(account: account, user: "u1", TestStore.change)
        #expect(try test.store.accounts.account(account).userID == "u1")
        try test.store.accounts.link(account: account, user: "u1", TestStore.change)
        try test.user("u2")
        expectRefusal(.exists) {
            try test.store.accounts.link(account: account, user: "u2", TestStore.change)
        }
        let own = try test.address("u2").account.number
        expectRefusal(.unmet) {
            try test.store.accounts.link(account: own, user: "u1", TestStore.change)
        }
    }
}
