// Freezes: what stops, what stays, and what teams are told.

import Accounts
import Database
import RelayCore
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct FreezeTests {
    private static let later = Change(actor: "uid:0", now: TestStore.now + 60)
    private static let end = TestStore.now + 30 * 86_400

    private static func looked(_ test: TestStore, _ address: RelayAddress) throws -> RelayAccount? {
        try test.store.relay.relayAddress(
            localPart: address.address.localPart, domain: address.address.domain, now: later.now)
    }

    private static func told(_ test: TestStore) throws -> [String] {
        try test.store.outbox.events().reversed().map(\.type.rawValue)
    }

    @Test(arguments: Engine.all) func freeze_user_stopsMailAndConsentAndDeletesNothing(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let granted = try LifecycleTests.authorize(test, "com.juice")
        let address = try #require(granted.relayAddress)
        let before = try test.database.value("SELECT COUNT(*) FROM grants", Int64.self)
        #expect(try Self.looked(test, address)?.freeze == nil)
        try test.store.freezes.begin(.user("u1"), reason: "abuse 7", endsAt: Self.end, Self.later)
        #expect(try Self.looked(test, address)?.freeze == .user)
        #expect(
            try test.store.relay.account(
                number: address.account.number, day: TestStore.today)?.freeze == .user)
        expectRefusal(.frozen) { _ = try LifecycleTests.authorize(test, "com.press") }
        expectRefusal(.frozen) { _ = try LifecycleTests.authorize(test, "com.juice") }
        #expect(try Self.told(test) == ["email-disabled"])
        #expect(try test.database.value("SELECT COUNT(*) FROM grants", Int64.self) == before)
        #expect(
            try LifecycleTests.state(test, granted.account.sub, "com.juice") == .authorized)
        try test.store.freezes.end(.user("u1"), Self.later)
        #expect(try Self.looked(test, address)?.freeze == nil)
        #expect(try Self.told(test) == ["email-disabled", "email-enabled"])
        _ = try LifecycleTests.authorize(test, "com.press")
        expectRefusal(.notFound) { try test.store.freezes.end(.user("u1"), Self.later) }
    }

    @Test(arguments: Engine.all) func freeze_team_stopsItsMailAndItsConsentsAlone(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let address = try #require(try LifecycleTests.authorize(test, "com.juice").relayAddress)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        _ = try test.store.apps.add(
            team: "milk", clientID: "com.milk", group: nil, TestStore.change)
        try test.store.freezes.begin(.team("juice"), reason: "phishing", endsAt: nil, Self.later)
        #expect(try Self.looked(test, address)?.freeze == .team)
        #expect(try test.store.freezes.isTeamFrozen(ofApp: "com.juice"))
        #expect(try !test.store.freezes.isTeamFrozen(ofApp: "com.milk"))
        expectRefusal(.frozen) { _ = try LifecycleTests.authorize(test, "com.press") }
        _ = try LifecycleTests.authorize(test, "com.milk")
        #expect(try Self.told(test).isEmpty)
        // A frozen user of a frozen team: the team counts.
        try test.store.freezes.begin(.user("u1"), reason: "abuse", endsAt: nil, Self.later)
        #expect(try Self.looked(test, address)?.freeze == .team)
        try test.store.freezes.end(.team("juice"), Self.later)
        #expect(try Self.looked(test, address)?.freeze == .user)
    }

    @Test(arguments: Engine.all) func freeze_endDue_endsWithALineInTheAudit(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let freezes = test.store.freezes
        try freezes.begin(.user("u1"), reason: "abuse 7", endsAt: Self.end, Self.later)
        try freezes.begin(.team("juice"), reason: "phishing", endsAt: nil, Self.later)
        // Another end: the first beginning counts.
        try freezes.begin(
            .user("u1"), reason: "abuse 8", endsAt: Self.end + 9,
            Change(actor: "uid:0", now: Self.later.now + 5))
        #expect(try freezes.freeze(of: .user("u1"))?.beganAt == Self.later.now)
        #expect(try freezes.all().map(\.target) == [.team("juice"), .user("u1")])
        #expect(try freezes.endDue(now: Self.end) == 0)
        #expect(try freezes.endDue(now: Self.end + 9) == 1)
        #expect(try freezes.all().map(\.target) == [.team("juice")])
        let lines = try test.store.audit.entries(limit: 4)
        #expect(
            lines.map { "\($0.actor) \($0.action) \($0.subject)" } == [
                "serve user.unfreeze user:u1", "uid:0 user.freeze user:u1",
                "uid:0 team.freeze team:juice", "uid:0 user.freeze user:u1",
            ])
        #expect(lines[1].detail.hasSuffix(": abuse 8"))
        #expect(lines[2].detail == "without an end: phishing")
    }

    @Test(arguments: Engine.all) func freeze_removedUserOrTeam_endsWithIt(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        _ = try LifecycleTests.authorize(test, "com.juice")
        try test.store.freezes.begin(.user("u1"), reason: "abuse", endsAt: nil, Self.later)
        try test.store.freezes.begin(.team("juice"), reason: "abuse", endsAt: nil, Self.later)
        try test.store.users.remove("u1", Self.later)
        try test.store.teams.remove("juice", Self.later)
        while try test.store.removals.step(now: Self.later.now) {}
        for table in ["user_freezes", "team_freezes"] {
            #expect(
                try test.database.value("SELECT COUNT(*) FROM \(raw: table)", Int64.self) == 0)
        }
    }

    @Test(arguments: Engine.all) func freeze_badReasonOrEnd_isRefused(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        for reason in [
            "", "two\nlines", "of jane@home.example", String(repeating: "x", count: 201),
        ] {
            expectRefusal(.invalid) {
                try test.store.freezes.begin(.user("u1"), reason: reason, endsAt: nil, Self.later)
            }
        }
        let last = Self.later.now + Int64(Freeze.maximumDays) * 86_400
        for end in [Self.later.now, last + 1] {
            expectRefusal(.invalid) {
                try test.store.freezes.begin(.user("u1"), reason: "x", endsAt: end, Self.later)
            }
        }
        try test.store.freezes.begin(.user("u1"), reason: "x", endsAt: last, Self.later)
        expectRefusal(.notFound) {
            try test.store.freezes.begin(.user("u9"), reason: "x", endsAt: nil, Self.later)
        }
        expectRefusal(.notFound) { _ = try test.store.freezes.freeze(of: .team("tea")) }
    }
}
