// Others who wrote to addresses of users: kept for the user, bounded, and told to the team as
// counts, on both engines.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import PersonalData
import RelayCore
import Support
import TestSupport
import Testing

@Suite(.blocking) struct AddressUseTests {
    private static let day: Int64 = 86_400

    /// A refused message of others to an address.
    private static func refused(
        to address: RelayAddress, by domain: String?, selector: String = "s1",
        from author: String? = nil, at time: Int64 = TestStore.now
    ) throws -> RefusedForward {
        let account = try TestStore.number(address.account.number)
        let sender = try #require(
            AddrSpec(envelope: author ?? "offers@\(domain ?? "unknown.example")"))
        return RefusedForward(
            at: time,
            attribution: ForwardAttribution(author: sender, account: account, isRegistered: false),
            reply: .unauthorizedSender, reference: "abcdefgh",
            uses: [
                UseByOthers(
                    account: account, address: address.address, author: sender,
                    proof: domain.flatMap { UseByOthers.Proof(domain: $0, selector: selector) })
            ])
    }

    private static func rows(_ test: TestStore) throws -> Int64? {
        try test.database.value("SELECT COUNT(*) FROM uses_by_others")
    }

    @Test(arguments: Engine.all) func uses_severalSenders_areKeptWithProof(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("anna")
        let address = try test.address("anna")
        let (now, persons) = (TestStore.now, test.store.persons)
        try test.store.add(refusals: [
            try Self.refused(to: address, by: "spam.example", selector: "new"),
            try Self.refused(
                to: address, by: "spam.example", selector: "old", at: now - 3 * Self.day),
            try Self.refused(to: address, by: "ads.example", at: now - Self.day),
            try Self.refused(to: address, by: "past.example", at: now - 30 * Self.day),
            try Self.refused(to: address, by: nil),
            try Self.refused(to: address, by: nil),
        ])
        // Another host, later.
        try test.store.add(refusals: [
            try Self.refused(to: address, by: "spam.example", selector: "newer", at: now + 9)
        ])
        let list = try #require(try persons.uses(account: address.account.number, now: now).first)
        #expect(list.address == address.address && list.unproved == 2)
        #expect(
            list.proved.map {
                "\($0.domain) \($0.selector) \($0.count) \($0.firstAt - now) \($0.lastDay - TestStore.today)"
            } == ["spam.example old 3 -259200 0", "ads.example s1 1 -86400 -1"])
        #expect(try persons.accounts(user: "anna", since: 0, now: now).first?.usingDomains == 2)
        #expect(try persons.addresses(user: "anna", now: now).first?.usingDomains == 2)
        let download = try persons.records(user: "anna", now: now).first {
            $0.name == "uses_by_others"
        }
        #expect(download?.rows.count == 5)
        // The rest is gone after the days that the retention names.
        #expect(try persons.deleteUses(before: TestStore.today - 29) == 1)
        #expect(try persons.deleteUses(before: TestStore.today + 1) == 4)
        #expect(try Self.rows(test) == 0)
    }

    /// A flood from anywhere fills few rows, and its counts end.
    @Test(arguments: Engine.all) func uses_flood_isBounded(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        let address = try test.address("anna")
        for round in 0..<3 {
            try test.store.add(
                refusals: (0..<100).map {
                    try Self.refused(to: address, by: "d\($0)x\(round).example")
                } + (0..<150).map { _ in try Self.refused(to: address, by: nil) }
                    + (0..<150).map { _ in try Self.refused(to: address, by: "d0x0.example") })
        }
        #expect(try Self.rows(test) == 11)
        let largest = try test.database.value("SELECT MAX(count) FROM uses_by_others", Int64.self)
        #expect(largest == 100)
        let list = try test.store.persons.uses(
            account: address.account.number, now: TestStore.now)
        #expect(list.first?.proved.count == 10 && list.first?.unproved == 100)
    }

    /// Users try their addresses with mail of their own: in any spelling of any of their inboxes.
    @Test(arguments: Engine.all) func uses_ofTheUserThemself_areNone(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("anna", inbox: "anna.smith@gmail.com")
        try test.user("bob", inbox: "bob@home.example")
        _ = try test.store.inboxes.add(
            user: "anna", TestStore.inbox("work@work.example"), isVerified: false,
            isReplyOnly: true, TestStore.change)
        let address = try test.address("anna")
        for author in ["annasmith+try@gmail.com", "Anna.Smith@GMail.com", "work@work.example"] {
            try test.store.add(refusals: [
                try Self.refused(to: address, by: "gmail.com", from: author),
                try Self.refused(to: address, by: nil, from: author),
            ])
        }
        #expect(try Self.rows(test) == 0)
        // Another user's inbox is someone else.
        try test.store.add(refusals: [
            try Self.refused(to: address, by: "home.example", from: "bob@home.example")
        ])
        #expect(try Self.rows(test) == 1)
    }

    @Test(arguments: Engine.all) func uses_ofDeletedAddressOrUser_areGone(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        let first = try test.address("anna")
        try test.store.add(refusals: [try Self.refused(to: first, by: "spam.example")])
        _ = try test.store.addresses.replace(account: first.account.number, TestStore.change)
        let second = try #require(
            try test.store.addresses.current(account: first.account.number))
        try test.store.add(refusals: [try Self.refused(to: second, by: "ads.example")])
        // The mail counts for the address to which it was sent.
        let lists = try test.store.persons.uses(account: first.account.number, now: TestStore.now)
        #expect(lists.map(\.address) == [second.address, first.address])
        #expect(lists.map { $0.proved.map(\.domain) } == [["ads.example"], ["spam.example"]])
        try test.store.users.remove("anna", TestStore.change)
        #expect(try Self.rows(test) == 0)
        // What was still in memory finds no account.
        try test.store.add(refusals: [try Self.refused(to: first, by: "spam.example")])
        #expect(try Self.rows(test) == 0)
    }

    @Test(arguments: Engine.all) func event_ofUses_isSentOnceADayWithCountsAlone(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, now) = (test.store, TestStore.now)
        try test.user("anna")
        try test.user("bob")
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        _ = try store.endpoints.set(
            team: "juice", app: "com.juice",
            url: EndpointURL("https://hooks.juice.example/events"), TestStore.change)
        let anna = try test.address("anna", app: "com.juice")
        let bob = try test.address("bob", app: "com.juice")
        func refuse(_ domain: String?, _ address: RelayAddress, at time: Int64 = now) throws {
            try store.add(refusals: [
                try Self.refused(
                    to: address, by: domain, selector: "planted-anna-home",
                    from: "anna.private@planted.example", at: time)
            ])
        }
        func tell(at time: Int64) throws -> [OutboxEvent] {
            while try store.persons.tellTeamsOfUses(now: time) > 0 {}
            return try store.outbox.events(limit: 10).filter { $0.type == .addressUsedByOthers }
        }
        for domain in ["spam.example", "ads.example", nil] { try refuse(domain, anna) }
        // A flood without any proof tells the team nothing.
        try refuse(nil, bob)
        #expect(try tell(at: now).isEmpty, "the day is not over")
        let tomorrow = (TestStore.today + 1) * Self.day
        #expect(try tell(at: tomorrow + 60).isEmpty, "another host may not have written yet")
        let event = try #require(try tell(at: tomorrow + 600).first)
        #expect(event.email == anna.address.wireForm)
        #expect(
            event.detail
                == #"{"day":"\#(UTCTime.text(now).prefix(10))","proved":2,"unproved":1}"#)
        // Late refusals of that day are kept for the user, but there is no second event.
        try refuse("late.example", anna)
        #expect(try tell(at: tomorrow + 700).count == 1)
        #expect(
            try test.database.value(
                "SELECT COUNT(*) FROM uses_by_others WHERE told = 0", Int64.self) == 0)
        // The next day has its own.
        try refuse("spam.example", anna, at: tomorrow + 5)
        #expect(try tell(at: tomorrow + 2 * Self.day).count == 2)
        // Nothing names a sender or the user's inbox.
        let sent =
            try test.database.rows("SELECT * FROM outbox").map { "\($0)" }.joined()
            + (event.detail ?? "") + (event.email ?? "")
        for secret in ["planted", "private", "spam.example", "ads.example", "home.example"] {
            #expect(!sent.contains(secret), "\(secret)")
        }
    }

    /// The row has the domain and the selector of the signature, and nothing else of the message.
    @Test(arguments: Engine.all) func uses_stored_nameNoPersonAndNoInbox(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("anna", inbox: "anna.planted@home.example")
        let address = try test.address("anna")
        try test.store.add(refusals: [
            try Self.refused(
                to: address, by: "spam.example", from: "anna.planted.home@spam.example"),
            try Self.refused(to: address, by: nil, from: "anna.planted.home@forged.example"),
        ])
        var texts: [String] = []
        for column in ["domain", "selector"] {
            texts += try test.database.values(
                "SELECT \(raw: column) FROM uses_by_others", String.self)
        }
        #expect(Set(texts) == ["spam.example", "s1", ""])
    }
}
