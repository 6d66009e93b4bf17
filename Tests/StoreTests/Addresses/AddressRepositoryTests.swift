// Relay addresses: one for each user and team, the same at each request.

import Accounts
import InternetMessage
import MailCrypto
import Support
import TestSupport
import Testing

@Suite(.blocking) struct AddressRepositoryTests {
    @Test(arguments: Engine.all) func issue_again_returnsSameAddress(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let first = try test.store.addresses.issue(team: "juice", user: "u1", TestStore.change)
        let again = try test.store.addresses.issue(team: "juice", user: "u1", TestStore.change)
        #expect(first.isNew)
        #expect(!again.isNew)
        #expect(first.address.address == again.address.address)
        #expect(first.address.account.sub == again.address.account.sub)
        #expect(first.address.address.domain == "relay.example")
        #expect(first.address.address.localPart.utf8.count == 10)
        #expect(first.address.address.localPart.utf8.allSatisfy(Base32.isCharacter))
        #expect(first.hasVerifiedInbox)
    }

    @Test(arguments: Engine.all) func issue_otherTeam_returnsOtherAddressAndSub(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        _ = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        try test.user("u1")
        let juice = try test.address("u1")
        let milk = try test.address("u1", team: "milk")
        #expect(juice.address != milk.address)
        #expect(juice.account.sub != milk.account.sub)
        #expect(juice.account.number != milk.account.number)
    }

    @Test(arguments: Engine.all) func issue_appsOfOneTeam_sharesAddressNotGrants(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let apps = test.store.apps
        _ = try apps.add(team: "juice", clientID: "com.example.juice", group: nil, TestStore.change)
        _ = try apps.add(
            team: "juice", clientID: "com.example.juice.web", group: "com.example.juice",
            TestStore.change)
        _ = try apps.add(team: "juice", clientID: "com.example.press", group: nil, TestStore.change)
        let plain = try test.address("u1")
        let web = try test.address("u1", app: "com.example.juice.web")
        let press = try test.address("u1", app: "com.example.press")
        #expect(plain.address == web.address)
        #expect(plain.address == press.address)
        let grants = try test.store.grants.grants(account: plain.account.number)
        #expect(grants.map(\.group.primaryClientID) == ["com.example.juice", "com.example.press"])
        expectRefusal(.notFound) { _ = try test.address("u1", app: "com.example.unknown") }
    }

    @Test(arguments: Engine.all) func issue_teamWithoutApps_grantsMailAlone(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1")
        let address = try test.address("u1")
        #expect(address.hasLiveGrant)
        #expect(
            try test.store.grants.grants(account: address.account.number).map(
                \.group.primaryClientID) == [nil])
    }

    @Test(arguments: Engine.all) func revoke_lastGrant_endsItUntilIssuedAgain(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let address = try test.address("u1")
        let grant = try #require(
            try test.store.grants.grants(account: address.account.number).first)
        #expect(
            try test.store.grants.revoke(
                account: address.account.number, group: grant.group, TestStore.change))
        #expect(
            try !test.store.grants.revoke(
                account: address.account.number, group: grant.group, TestStore.change))
        #expect(try !test.store.addresses.address(address.address).hasLiveGrant)
        let back = try test.store.addresses.issue(
            team: "juice", user: "u1", Change(actor: "uid:0", now: TestStore.now + 60))
        #expect(back.address.address == address.address)
        #expect(back.address.hasLiveGrant)
        let renewed = try #require(
            try test.store.grants.grants(account: address.account.number).first)
        #expect(renewed.firstAuthorizedAt == TestStore.now)
        #expect(renewed.lastAuthorizedAt == TestStore.now + 60)
    }

    @Test(arguments: Engine.all) func issue_previousAddressRetired_returnsAnother(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let old = try test.address("u1")
        try test.store.addresses.retire(old.address, TestStore.change)
        #expect(try test.store.addresses.address(old.address).retiredAt == TestStore.now)
        expectRefusal(.unmet) {
            try test.store.addresses.setForwarding(old.address, on: false, TestStore.change)
        }
        let new = try test.address("u1")
        #expect(new.address != old.address)
        #expect(new.account.number == old.account.number)
        #expect(
            try test.store.addresses.addresses(team: "juice", user: "u1").map(\.address) == [
                old.address, new.address,
            ])
    }

    @Test(arguments: Engine.all) func setForwarding_changedOrRepeated_countsEachChange(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let address = try test.address("u1")
        let upper = AddrSpec(
            localPart: address.address.localPart.uppercased(), domain: "Relay.Example")
        #expect(try test.store.addresses.setForwarding(upper, on: false, TestStore.change))
        #expect(
            try !test.store.addresses.setForwarding(address.address, on: false, TestStore.change))
        #expect(try !test.store.addresses.address(address.address).isForwardingOn)
        #expect(try test.store.addresses.setForwarding(address.address, on: true, TestStore.change))
        let toggles = try test.store.counters.count(
            account: address.account.number, kind: .forwardingToggled, day: TestStore.today)
        #expect(toggles == 2)
    }

    @Test(arguments: Engine.all) func issue_unverifiedInbox_saysSo(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", isVerified: false)
        #expect(
            try !test.store.addresses.issue(team: "juice", user: "u1", TestStore.change)
                .hasVerifiedInbox)
    }

    @Test(arguments: Engine.all) func accountNumber_userRemoved_isNotReused(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1")
        let first = try test.address("u1").account.number
        try test.store.users.remove("u1", TestStore.change)
        try test.user("u2")
        let second = try test.address("u2").account.number
        #expect(second > first)
        #expect(second < Account.numberLimit)
    }

    @Test(arguments: Engine.all) func remove_teamOrUser_removesTheirAddresses(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        let one = try test.address("u1").address
        let two = try test.address("u2").address
        #expect(try test.store.users.dependents("u1").addresses == 1)
        try test.store.users.remove("u1", TestStore.change)
        #expect(
            try test.store.relay.relayAddress(localPart: one.localPart, domain: one.domain) == nil)
        #expect(try test.store.teams.dependents("juice").accounts == 1)
        try test.store.teams.remove("juice", TestStore.change)
        #expect(
            try test.store.relay.relayAddress(localPart: two.localPart, domain: two.domain) == nil)
        expectRefusal(.notFound) { try test.store.teams.remove("juice", TestStore.change) }
    }

    @Test(arguments: Engine.all) func issue_localPartInUse_drawsAnother(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        let draws = Draws()
        var addresses = test.store.addresses
        addresses.random = { draws.next($0) }
        let one = try addresses.issue(team: "juice", user: "u1", TestStore.change).address.address
        let two = try addresses.issue(team: "juice", user: "u2", TestStore.change).address.address
        #expect(one.localPart == "aaaaaaaaaa")
        #expect(two.localPart == "bbbbbbbbbb")
    }
}

/// "Random" octets: the first two draws of an address are the same, the third differs.
private final class Draws: @unchecked Sendable {
    private var addresses = 0
    private var subs: UInt8 = 0

    func next(_ count: Int) -> [UInt8] {
        if count > 16 {
            subs += 1
            return [UInt8](repeating: subs, count: count)
        }
        addresses += 1
        return [UInt8](repeating: addresses <= 2 ? 0 : 1, count: count)
    }
}
