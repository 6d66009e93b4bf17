// The last message to each address, on both engines.

import Accounts
import Database
import InternetMessage
import PersonalData
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct LastMailTests {
    private static let day: Int64 = 86_400

    private static func forward(_ author: String, _ account: Int64) throws -> ForwardAttribution {
        ForwardAttribution(
            author: try #require(AddrSpec(envelope: author)),
            account: try #require(AccountNumber(UInt64(account))),
            isRegistered: true)
    }

    @Test(arguments: Engine.all)
    func lastMail_ofSeveralMessages_isTheLatestSealedAndGoneAfterAMonth(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("anna")
        let account = try test.address("anna").account.number
        let persons = test.store.persons
        func last(_ now: Int64 = TestStore.now) throws -> LastMail? {
            try persons.accounts(user: "anna", since: 0, now: now).first?.lastMail
        }
        #expect(try last() == nil)
        let buffer = persons.lastMailBuffer()
        buffer.add(try Self.forward("one@juice.example", account), at: TestStore.now - 10)
        buffer.add(try Self.forward("two@juice.example", account), at: TestStore.now)
        buffer.add(try Self.forward("x@juice.example", 999_999), at: TestStore.now)
        try buffer.flush()
        #expect(try last()?.sender == "two@juice.example" && last()?.at == TestStore.now)
        // Another host, which writes later with an earlier time.
        let late = persons.lastMailBuffer()
        late.add(try Self.forward("three@juice.example", account), at: TestStore.now - 5)
        try late.flush()
        #expect(try last()?.sender == "two@juice.example")
        let octets = try #require(
            try test.database.value("SELECT sender_sealed FROM last_mail", [UInt8].self))
        #expect(octets.firstRange(of: Array("juice".utf8)) == nil)
        // Neither shown nor kept for longer than thirty days.
        let end = TestStore.now + 30 * Self.day
        #expect(try last(end - 1) != nil && last(end) == nil)
        #expect(
            try persons.deleteLastMail(now: end - 1) == 0 && persons.deleteLastMail(now: end) == 1)
    }

    @Test func buffer_whileTheStoreIsAway_keepsTheLatest() throws {
        let test = try TestStore(.sqlite)
        try test.user("anna")
        let account = try test.address("anna").account.number
        let buffer = test.store.persons.lastMailBuffer()
        buffer.add(try Self.forward("one@juice.example", account), at: TestStore.now)
        try test.database.write(.relaxed) {
            try $0.runScript("ALTER TABLE last_mail RENAME TO away")
        }
        #expect(throws: StoreFailure.self) { try buffer.flush() }
        buffer.add(try Self.forward("two@juice.example", account), at: TestStore.now + 1)
        try test.database.write(.relaxed) {
            try $0.runScript("ALTER TABLE away RENAME TO last_mail")
        }
        try buffer.flush()
        #expect(
            try test.store.persons.accounts(user: "anna", since: 0, now: TestStore.now + 1).first?
                .lastMail?.sender
                == "two@juice.example")
    }
}
