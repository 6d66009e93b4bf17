// The refused mail that users see, and the senders that they block, on both engines.

import Accounts
import Database
import InternetMessage
import PersonalData
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct AccountRefusalTests {
    private static let day: Int64 = 86_400

    private static func refused(
        _ from: String, _ account: Int64, _ reply: RefusalReply = .unauthorizedSender,
        at time: Int64 = TestStore.now,
        isRegistered: Bool = false
    ) throws -> RefusedForward {
        RefusedForward(
            at: time,
            attribution: ForwardAttribution(
                author: try #require(AddrSpec(envelope: from)),
                account: try #require(AccountNumber(UInt64(account))),
                isRegistered: isRegistered),
            reply: reply, reference: "abcdefgh")
    }

    @Test(arguments: Engine.all) func refusals_severalDomains_areCountedByKindAndTime(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        let account = try test.address("anna").account.number
        try test.store.add(refusals: [
            try Self.refused("a@spam.example", account),
            try Self.refused("B@Spam.Example", account),
            try Self.refused("a@spam.example", account, at: TestStore.now - 20 * Self.day),
            try Self.refused("a@spam.example", account, at: TestStore.now - 60 * Self.day),
            try Self.refused("a@spam.example", account, at: TestStore.now - 95 * Self.day),
            try Self.refused("x@juice.example", account, .forwardingOff, isRegistered: true),
            try Self.refused("x@juice.example", account, .dkimFailed, isRegistered: true),
            // The sender tries again, so the user need not act.
            try Self.refused("x@juice.example", account, .authenticationTrouble),
            try Self.refused("x@juice.example", 999_999),
        ])
        try test.store.add(refusals: [
            try Self.refused("a@spam.example", account, at: TestStore.now + 5)
        ])
        let told = try test.store.persons.refusals(account: account, now: TestStore.now)
        let spam = try #require(told.first)
        #expect(
            spam.kind == .stranger && spam.domain == "spam.example"
                && spam.lastAt == TestStore.now + 5)
        #expect([spam.week, spam.month, spam.quarter] == [3, 4, 5])
        #expect(told.map(\.kind) == [.stranger, .forwardingOff, .unproved])
        // Kept for as long as the page shows them.
        #expect(try test.store.persons.deleteRefusals(now: TestStore.now) == 1)
        #expect(try test.store.persons.deleteRefusals(now: TestStore.now + 91 * Self.day) == 5)
    }

    /// A sender may name any number of domains, but the rows for an account and day stay few.
    @Test(arguments: Engine.all) func refusals_manyDomainsInOneDay_fillFewRows(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        let account = try test.address("anna").account.number
        for round in 0..<2 {
            try test.store.add(
                refusals: (0..<200).map { try Self.refused("a@d\(round)x\($0).example", account) })
        }
        let rows = try test.database.value("SELECT COUNT(*) FROM account_refusals", Int64.self)
        let sum = try test.database.value(
            "SELECT CAST(SUM(count) AS BIGINT) FROM account_refusals", Int64.self)
        #expect(rows == 21 && sum == 400)
        let others = try test.store.persons.refusals(
            account: account, now: TestStore.now, limit: 100
        ).first { $0.domain.isEmpty }
        #expect(others?.week == 380)
    }

    @Test(arguments: Engine.all) func block_domainOrAddressOfTeam_isAppliedAndLimited(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        try test.user("bob")
        let issued = try test.address("anna")
        let account = issued.account.number
        let source = try test.store.sources.checked(
            "juice.example", envelopeDomain: nil, now: TestStore.now)
        try test.store.sources.add(team: "juice", source, TestStore.change)
        let persons = test.store.persons
        func isBlocked(_ text: String) throws -> Bool {
            try test.store.relay.isBlocked(
                try #require(AddrSpec(envelope: text)), account: TestStore.number(account))
        }
        func block(_ text: String, _ user: String = "anna") throws {
            try persons.block(user: user, account: account, text, now: TestStore.now)
        }
        func hasBlocks() throws -> Bool? {
            try test.store.relay.relayAddress(
                localPart: issued.address.localPart, domain: issued.address.domain)?.hasBlocks
        }
        #expect(try hasBlocks() == false)
        try block(" News.Juice.Example ")
        try block("Ads@juice.example")
        try block("ads@juice.example")
        #expect(
            try persons.blocks(account: account) == ["ads@juice.example", "news.juice.example"])
        #expect(try hasBlocks() == true)
        #expect(
            try isBlocked("x@news.juice.example") && isBlocked("x@a.news.juice.example")
                && isBlocked("ADS@juice.example"))
        #expect(
            try !isBlocked("x@juice.example") && !isBlocked("ads@a.juice.example")
                && !isBlocked("x@news.juice.example.evil"))
        for (text, user) in [
            ("juice", "anna"), ("", "anna"), ("other.example", "anna"), ("a b@", "anna"),
            ("x@other.example", "anna"),
            ("juice.example", "bob"), ("juice.example", "nobody"),
        ] { #expect(throws: StoreFailure.self, "\(text)") { try block(text, user) } }
        #expect(throws: StoreFailure.self) {
            try persons.unblock(user: "bob", account: account, "ads@juice.example")
        }
        try persons.unblock(user: "anna", account: account, "news.juice.example")
        #expect(try !isBlocked("x@news.juice.example") && isBlocked("ads@juice.example"))
        for number in 1..<100 { try block("n\(number).juice.example") }
        #expect(throws: StoreFailure.self) { try block("one.more.juice.example") }
    }
}
