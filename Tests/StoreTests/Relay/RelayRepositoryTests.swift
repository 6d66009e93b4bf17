// The relay's reads about a recipient.

import Accounts
import InternetMessage
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct RelayRepositoryTests {
    @Test(arguments: Engine.all) func relayAddress_found_hasAllItsValues(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", inbox: "jane@home.example")
        let issued = try test.address("u1")
        let record = try #require(
            try test.store.relay.relayAddress(
                localPart: issued.address.localPart.uppercased(), domain: "RELAY.example"))
        #expect(record.number.stored == issued.account.number)
        #expect(record.team == "juice")
        #expect(record.relayAddress == issued.address)
        #expect(record.currentAddress == issued.address)
        #expect(record.isForwardingOn)
        #expect(!record.isRetired)
        #expect(record.hasLiveGrant)
        #expect(record.inbox?.isVerified == true)
        #expect(
            record.inbox?.address.revealed == AddrSpec(localPart: "jane", domain: "home.example"))
        #expect(
            try test.store.relay.relayAddress(
                localPart: issued.address.localPart, domain: "old-relay.example") == nil)
        #expect(
            try test.store.relay.relayAddress(localPart: "nobody", domain: "relay.example") == nil)
    }

    @Test(arguments: Engine.all) func relayAddress_eachState_isShown(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", isVerified: false)
        let old = try test.address("u1")
        func record() throws -> RelayAccount {
            try #require(
                try test.store.relay.relayAddress(
                    localPart: old.address.localPart, domain: old.address.domain))
        }
        #expect(try record().inbox?.isVerified == false)
        try test.store.addresses.setForwarding(old.address, on: false, TestStore.change)
        #expect(try !record().isForwardingOn)
        let grant = try #require(try test.store.grants.grants(account: old.account.number).first)
        try test.store.grants.revoke(
            account: old.account.number, group: grant.group, TestStore.change)
        #expect(try !record().hasLiveGrant)
        try test.store.addresses.retire(old.address, TestStore.change)
        #expect(try record().isRetired)
        let new = try test.address("u1")
        #expect(try record().currentAddress == new.address)
        #expect(try record().isRetired)
    }

    @Test(arguments: Engine.all) func account_found_hasAllItsValues(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", inbox: "jane@home.example", name: "Jane Doe")
        let inboxes = test.store.inboxes
        _ = try inboxes.add(
            user: "u1", TestStore.inbox("alias@work.example"), isVerified: true, isReplyOnly: true,
            TestStore.change)
        _ = try inboxes.add(
            user: "u1", TestStore.inbox("new@work.example"), isVerified: false, isReplyOnly: false,
            TestStore.change)
        let issued = try test.store.addresses.issue(
            team: "juice", user: "u1", sharesName: true, TestStore.change
        ).address
        let sources = test.store.sources
        for (text, envelope) in [
            ("juice.example", nil), ("juice.example", "bounce.esp.example"),
            ("Shop@Other.Example", nil),
        ] {
            try sources.add(
                team: "juice", sources.checked(text, envelopeDomain: envelope, now: TestStore.now),
                TestStore.change)
        }
        let number = issued.account.number
        #expect(
            try test.store.counters.reserve(
                account: number, kind: .forwarded, day: TestStore.today, limit: 10))
        #expect(
            try test.store.counters.reserve(
                account: number, kind: .forwarded, day: TestStore.today, limit: 10))
        #expect(
            try test.store.counters.reserve(
                account: number, kind: .replied, day: TestStore.today, limit: 10))
        let record = try #require(
            try test.store.relay.account(number: number, day: TestStore.today))
        #expect(record.number.stored == number)
        #expect(record.team == "juice")
        #expect(record.currentAddress == issued.address)
        #expect(record.isForwardingOn)
        #expect(record.hasLiveGrant)
        #expect(record.sharedName == "Jane Doe")
        #expect(record.inbox?.address.revealed.wireForm == "jane@home.example")
        #expect(record.inbox?.isVerified == true)
        #expect(
            record.inboxes.map(\.address.revealed.wireForm) == [
                "jane@home.example", "alias@work.example", "new@work.example",
            ])
        #expect(record.inboxes.map(\.isVerified) == [true, true, false])
        #expect(
            record.sources.map(\.scope) == [
                .domain("juice.example"), .domain("juice.example"),
                .address(AddrSpec(localPart: "shop", domain: "other.example")),
            ])
        #expect(record.sources.map(\.pairedEnvelopeDomain) == [nil, "bounce.esp.example", nil])
        #expect(record.counted == 1)
        let tomorrow = try #require(
            try test.store.relay.account(number: number, day: TestStore.today + 1))
        #expect(tomorrow.counted == 0)
        #expect(try test.store.relay.account(number: number + 1, day: TestStore.today) == nil)
        try test.store.addresses.retire(issued.address, TestStore.change)
        let retired = try #require(
            try test.store.relay.account(number: number, day: TestStore.today))
        #expect(retired.currentAddress == nil)
        #expect(retired.relayAddress == issued.address && retired.isRetired)
        #expect(!retired.isForwardingOn)
        let new = try test.address("u1").address
        #expect(
            try test.store.relay.account(number: number, day: TestStore.today)?.relayAddress == new)
    }

    @Test(arguments: Engine.all) func source_fromAddress_isMatchedByDomainOrAddress(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let milk = try test.store.teams.add(id: "milk", name: "Milk", TestStore.change)
        let juice = try test.store.teams.team("juice")
        let sources = test.store.sources
        for (team, text) in [
            ("juice", "juice.example"), ("milk", "mail.juice.example"), ("milk", "one@gmail.com"),
            ("milk", "bücher.example"),
            ("milk", "\"Quoted Name\"@gmail.com"),
        ] {
            try sources.add(
                team: team, sources.checked(text, envelopeDomain: nil, now: TestStore.now),
                TestStore.change)
        }
        func teams(_ local: String, _ domain: String) throws -> [Int64] {
            try sources.teams(registering: AddrSpec(localPart: local, domain: domain))
        }
        #expect(try teams("a", "juice.example") == [juice.number])
        #expect(try teams("a", "JUICE.example") == [juice.number])
        #expect(try Set(teams("a", "x.mail.juice.example")) == [juice.number, milk.number])
        #expect(try teams("a", "notjuice.example") == [])
        #expect(try teams("one", "gmail.com") == [milk.number])
        #expect(try teams("One", "gmail.com") == [milk.number])
        #expect(try teams("two", "gmail.com") == [])
        #expect(try teams("quoted name", "gmail.com") == [milk.number])
        #expect(try teams("a", "xn--bcher-kva.example") == [milk.number])
        #expect(try teams("a", "Bücher.example") == [milk.number])
        #expect(
            try teams("a", (0..<60).map { "l\($0)" }.joined(separator: ".") + ".juice.example") == [
                juice.number
            ])
        #expect(try teams("a", "") == [])
        #expect(try teams("a", "[192.0.2.1]") == [])
    }
}
