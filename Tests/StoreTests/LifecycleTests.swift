// Consent and accounts: their beginning, their end and their return.

import Accounts
import Database
import Events
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct LifecycleTests {
    static let later = Change(actor: "uid:0", now: TestStore.now + 3_600)

    /// A team with two groups of apps, each with an endpoint, and a user.
    static func world(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        try test.user("u1", name: "Jane")
        let apps = test.store.apps
        _ = try apps.add(team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        _ = try apps.add(
            team: "juice", clientID: "com.juice.web", group: "com.juice", TestStore.change)
        _ = try apps.add(team: "juice", clientID: "com.press", group: nil, TestStore.change)
        for app in ["com.juice", "com.press"] {
            _ = try test.store.endpoints.set(
                team: "juice", app: app, url: EndpointURL("https://hooks.\(app)/events"),
                TestStore.change)
        }
        return test
    }

    static func authorize(
        _ test: TestStore, _ app: String, status: Int? = nil, kind: EmailKind? = nil,
        _ change: Change = TestStore.change
    ) throws -> AuthorizedGrant {
        try test.store.grants.authorize(
            AuthorizationRequest(
                clientID: app, userID: "u1", emailKind: kind, realUserStatus: status), change)
    }

    /// The outbox as `type audience`, the oldest first.
    static func told(_ test: TestStore) throws -> [String] {
        try test.store.outbox.events().reversed().map { "\($0.type.rawValue) \($0.audience)" }
    }

    static func state(
        _ test: TestStore, _ sub: String, _ app: String? = nil
    ) throws -> CredentialState {
        try test.store.grants.credentialState(team: "juice", sub: sub, clientID: app)
    }

    @Test(arguments: Engine.all) func authorize_appsOfOneGroup_shareGrant(_ engine: Engine) throws {
        let test = try Self.world(engine)
        let juice = try Self.authorize(test, "com.juice", status: 2)
        let web = try Self.authorize(test, "com.juice.web", status: 1)
        #expect(juice.kind == .first)
        #expect(web.kind == .again)
        #expect(web.grant.number == juice.grant.number)
        #expect(web.grant.realUserStatus == 2)
        #expect(!web.deliversProfile)
        #expect(try Self.state(test, juice.account.sub, "com.juice.web") == .authorized)
        #expect(try Self.state(test, juice.account.sub, "com.press") == .notFound)
        let press = try Self.authorize(test, "com.press", status: 0)
        #expect(press.kind == .first)
        #expect(press.grant.number != juice.grant.number)
        #expect(press.account == juice.account)
        #expect(press.relayAddress?.address == juice.relayAddress?.address)
        #expect(press.grant.realUserStatus == 0)
    }

    @Test(arguments: Engine.all) func revoke_oneOfTwoGrants_keepsAddressWorking(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let juice = try Self.authorize(test, "com.juice")
        let press = try Self.authorize(test, "com.press")
        let address = try #require(juice.relayAddress).address
        #expect(
            try test.store.grants.revoke(
                account: juice.account.number, group: juice.grant.group, Self.later))
        #expect(try Self.state(test, juice.account.sub, "com.juice") == .revoked)
        #expect(try Self.state(test, juice.account.sub, "com.press") == .authorized)
        #expect(try Self.state(test, juice.account.sub) == .authorized)
        #expect(
            try test.store.relay.relayAddress(localPart: address.localPart, domain: address.domain)?
                .hasLiveGrant == true)
        #expect(try Self.told(test) == ["consent-revoked com.juice"])
        try test.store.grants.revoke(
            account: press.account.number, group: press.grant.group, Self.later)
        #expect(
            try test.store.relay.relayAddress(localPart: address.localPart, domain: address.domain)?
                .hasLiveGrant == false)
        #expect(try Self.told(test) == ["consent-revoked com.juice", "consent-revoked com.press"])
    }

    @Test(arguments: Engine.all) func authorize_afterRevocation_restoresAccountAndStatus(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let first = try Self.authorize(test, "com.juice", status: 1)
        try test.store.grants.revoke(
            account: first.account.number, group: first.grant.group, Self.later)
        let back = try Self.authorize(test, "com.juice", status: 2, Self.later)
        #expect(back.kind == .returned)
        #expect(back.deliversProfile)
        #expect(back.account.sub == first.account.sub)
        #expect(back.relayAddress?.address == first.relayAddress?.address)
        #expect(back.grant.number == first.grant.number)
        #expect(back.grant.realUserStatus == 2)
        #expect(back.grant.priorStatus == 1)
        #expect(back.grant.firstAuthorizedAt == TestStore.now)
        #expect(back.grant.lastAuthorizedAt == Self.later.now)
        #expect(back.grant.revokedAt == nil)
        #expect(
            back.grant.generation > first.grant.generation,
            "tokens of before the revocation would work again")
        #expect(
            try test.store.counters.count(
                account: back.account.number, kind: .rejoined, day: TestStore.today) == 1)
    }

    @Test(arguments: Engine.all) func delete_account_retiresSubAndAddress(_ engine: Engine) throws {
        let test = try Self.world(engine)
        let account = try Self.authorize(test, "com.juice")
        _ = try Self.authorize(test, "com.press")
        let address = try #require(account.relayAddress).address
        try test.store.accounts.delete(account: account.account.number, Self.later)
        #expect(
            try test.store.relay.relayAddress(localPart: address.localPart, domain: address.domain)
                == nil)
        #expect(try Self.state(test, account.account.sub) == .notFound)
        #expect(try Self.told(test) == ["account-delete com.juice", "account-delete com.press"])
        #expect(
            try test.store.outbox.events().allSatisfy {
                $0.email == nil && $0.sub == account.account.sub
            })
        // The user returns with a new account.
        let again = try Self.authorize(test, "com.juice", Self.later)
        #expect(again.kind == .first)
        #expect(again.account.sub != account.account.sub)
        #expect(again.relayAddress?.address != address)
        #expect(again.grant.priorStatus == nil)
        expectRefusal(.notFound) {
            try test.store.accounts.delete(account: account.account.number, Self.later)
        }
    }

    @Test(arguments: Engine.all) func issue_subOrAddressEnded_drawsAnother(_ engine: Engine) throws
    {
        let test = try Self.world(engine)
        // A generator that returns every value twice.
        let draws = Twice()
        var addresses = test.store.addresses
        addresses.random = { draws.next($0) }
        let old = try addresses.issue(team: "juice", user: "u1", app: "com.juice", TestStore.change)
            .address
        try test.store.accounts.delete(account: old.account.number, Self.later)
        #expect(draws.drawn.count == 2 && draws.drawn.values.allSatisfy { $0 == 1 })
        draws.rewind()
        let new = try addresses.issue(team: "juice", user: "u1", app: "com.juice", Self.later)
            .address
        #expect(new.address != old.address)
        #expect(new.account.sub != old.account.sub)
        #expect(
            draws.drawn.values.allSatisfy { $0 == 2 },
            "what was drawn again was taken: \(draws.drawn)")
    }

    @Test(arguments: Engine.all) func tombstone_accountDeleted_lasts30Days(_ engine: Engine) throws
    {
        let test = try Self.world(engine)
        let account = try Self.authorize(test, "com.juice")
        // Two failed checks, one of them by timeout, and one passed check.
        let today = TestStore.now
        try test.database.write(.durable) { connection in
            for (id, begun, passed, failed) in [
                ("rd_1", today - 90_000, SQLValue.null, SQLValue.integer(today - 86_400)),
                ("rd_2", today - 90_000, .null, .null),
                ("rd_3", today - 90_000, .integer(today - 89_000), .null),
                ("rd_4", today - 60, .null, .null),
            ] {
                try connection.run(
                    """
                    INSERT INTO checks (decision_id, challenge, grant_id, initiated_at, passed_at, failed_at)
                    VALUES (?1, 'email_code', ?2, ?3, ?4, ?5)
                    """,
                    [.text(id), .integer(account.grant.number), .integer(begun), passed, failed])
            }
        }
        try test.store.accounts.delete(account: account.account.number, TestStore.change)
        let tombstones = try test.store.tombstones.tombstones(user: "u1", now: TestStore.now)
        #expect(tombstones.map(\.deletions).reduce(0, +) == 1)
        #expect(tombstones.map(\.failures).reduce(0, +) == 2)
        #expect(tombstones.last?.day == TestStore.today)
        // Another spelling of the same mailbox, claimed by a new user, finds the same tombstone;
        // another mailbox finds none.
        try test.store.users.remove("u1", TestStore.change)
        try test.user("u2", inbox: "U1+again@home.example")
        try test.user("u3", inbox: "other@home.example")
        #expect(
            try test.store.tombstones.tombstones(user: "u2", now: TestStore.now).isEmpty == false)
        #expect(try test.store.tombstones.tombstones(user: "u3", now: TestStore.now).isEmpty)
        let after = TestStore.now + 30 * 86_400
        #expect(
            try test.store.tombstones.tombstones(user: "u2", now: after - 86_400).isEmpty == false)
        #expect(try test.store.tombstones.tombstones(user: "u2", now: after).isEmpty)
        #expect(try test.store.tombstones.deleteExpired(now: after) > 0)
        #expect(
            try test.database.read { try $0.value("SELECT COUNT(*) FROM tombstones", Int64.self) }
                == 0)
    }

    @Test(arguments: Engine.all) func tombstone_teamOrAppRemoved_isNotMade(_ engine: Engine) throws
    {
        let test = try Self.world(engine)
        _ = try Self.authorize(test, "com.juice")
        try test.store.apps.remove(team: "juice", clientID: "com.press", TestStore.change)
        try test.store.teams.remove("juice", TestStore.change)
        #expect(try test.store.tombstones.tombstones(user: "u1", now: TestStore.now).isEmpty)
        #expect(try Self.told(test) == ["account-delete com.juice"])
    }

    @Test(arguments: Engine.all) func emailKind_realAddress_staysWhileConsentLives(
        _ engine: Engine
    ) throws {
        let test = try Self.world(engine)
        let real = try Self.authorize(test, "com.juice", kind: .real)
        #expect(real.account.emailKind == .real)
        #expect(real.relayAddress == nil)
        #expect(
            try Self.authorize(test, "com.press", kind: .privateRelay).account.emailKind == .real)
        try test.store.grants.revokeAll(account: real.account.number, Self.later)
        let back = try Self.authorize(test, "com.juice", kind: .privateRelay, Self.later)
        #expect(back.account.emailKind == .privateRelay)
        #expect(back.relayAddress != nil)
        #expect(back.account.sub == real.account.sub)
    }

    @Test(arguments: Engine.all) func sub_ofOtherTeam_isNotFound(_ engine: Engine) throws {
        let test = try Self.world(engine)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        let sub = try Self.authorize(test, "com.juice").account.sub
        #expect(try test.store.grants.credentialState(team: "milk", sub: sub) == .notFound)
        #expect(try Self.state(test, "nobody") == .notFound)
        expectRefusal(.notFound) { _ = try test.store.accounts.account(sub: sub, team: "milk") }
    }
}

/// "Random" octets that count up, and start again after `rewind`.
private final class Twice: @unchecked Sendable {
    /// The number of draws of each length: identifiers and addresses have different lengths.
    private(set) var drawn: [Int: UInt8] = [:]

    func next(_ count: Int) -> [UInt8] {
        drawn[count, default: 0] += 1
        return [UInt8](repeating: drawn[count] ?? 0, count: count)
    }

    func rewind() { drawn = [:] }
}
