// Inboxes: one owner, one default, never at the relay.

import Accounts
import Database
import InternetMessage
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct InboxTests {
    private func add(
        _ test: TestStore, _ user: String, _ text: String, verified: Bool = true,
        replyOnly: Bool = false
    ) throws -> Inbox {
        try test.store.inboxes.add(
            user: user, TestStore.inbox(text), isVerified: verified, isReplyOnly: replyOnly,
            TestStore.change)
    }

    @Test(arguments: Engine.all) func inbox_atRelayDomain_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        expectRefusal(.invalid) { _ = try add(test, "u1", "a@relay.example") }
        expectRefusal(.invalid) { _ = try add(test, "u1", "a@Sub.Old-Relay.example") }
        expectRefusal(.invalid) { try test.user("u2", inbox: "a@relay.example") }
        expectRefusal(.notFound) { _ = try test.store.users.user("u2") }
    }

    @Test(arguments: Engine.all) func inbox_verified_hasOneOwner(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("thief", inbox: "jane@home.example", isVerified: false)
        try test.user("jane", inbox: "Jane@Home.example")
        #expect(
            try test.store.inboxes.userID(verified: TestStore.inbox("JANE@home.example")) == "jane")
        expectRefusal(.exists) {
            _ = try test.store.inboxes.confirm(
                user: "thief", .address(TestStore.inbox("jane@home.example")), TestStore.change)
        }
        expectRefusal(.exists) { try test.user("third", inbox: "jane@home.example") }
        #expect(
            try test.store.inboxes.userID(verified: TestStore.inbox("nobody@home.example")) == nil)
    }

    @Test(arguments: Engine.all) func inbox_default_isVerifiedWherePossible(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1", inbox: "first@home.example", isVerified: false)
        func defaults() throws -> String? {
            try test.store.inboxes.inboxes(user: "u1").first(where: \.isDefault)?.address.revealed
                .wireForm
        }
        #expect(try defaults() == "first@home.example")
        _ = try add(test, "u1", "alias@home.example", replyOnly: true)
        #expect(try defaults() == "first@home.example")
        let second = try add(test, "u1", "second@home.example")
        #expect(try defaults() == "second@home.example")
        let confirmed = try test.store.inboxes.confirm(
            user: "u1", .address(TestStore.inbox("FIRST@home.example")), TestStore.change)
        #expect(confirmed.isVerified)
        #expect(try defaults() == "second@home.example")
        try test.store.inboxes.makeDefault(user: "u1", .number(confirmed.number), TestStore.change)
        #expect(try defaults() == "first@home.example")
        try test.store.inboxes.remove(user: "u1", .number(confirmed.number), TestStore.change)
        #expect(try defaults() == "second@home.example")
        try test.store.inboxes.remove(user: "u1", .number(second.number), TestStore.change)
        #expect(try defaults() == nil)
        expectRefusal(.unmet) {
            try test.store.inboxes.makeDefault(
                user: "u1", .address(TestStore.inbox("alias@home.example")), TestStore.change)
        }
    }

    @Test(arguments: Engine.all) func inbox_otherUsersNumber_isNotFound(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        let foreign = try add(test, "u2", "second@home.example")
        expectRefusal(.notFound) {
            try test.store.inboxes.remove(user: "u1", .number(foreign.number), TestStore.change)
        }
        try test.store.inboxes.remove(user: "u1", .number(1), TestStore.change)
        #expect(
            try test.store.inboxes.inboxes(user: "u2").count == 2, "the number is the user's own")
    }

    /// Numbers must count a user's inboxes, not all inboxes of the store.
    @Test(arguments: Engine.all) func inbox_numbers_arePerUserAndNotReused(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("jane")
        try test.user("zoe")
        func numbers(_ user: String) throws -> [Int64] {
            try test.store.inboxes.inboxes(user: user).map(\.number)
        }
        #expect(try add(test, "zoe", "zoe@work.example").number == 2)
        #expect(try add(test, "jane", "jane@work.example").number == 2)
        #expect(try numbers("jane") == [1, 2])
        #expect(try numbers("zoe") == [1, 2])
        #expect(
            try test.store.inboxes.inbox(user: "zoe", .number(2)).address
                == TestStore.inbox("zoe@work.example"))
        #expect(try test.store.audit.entries(limit: 1).first?.detail == "inbox 2 verified")
        try test.store.inboxes.remove(user: "jane", .number(2), TestStore.change)
        #expect(try add(test, "jane", "jane@other.example").number == 3)
        expectRefusal(.notFound) {
            try test.store.inboxes.remove(user: "jane", .number(2), TestStore.change)
        }
        expectRefusal(.exists) { _ = try add(test, "jane", "jane@other.example") }
        #expect(
            try add(test, "jane", "jane@fourth.example").number == 4,
            "a refused one takes no number")
        #expect(try numbers("zoe") == [1, 2])
        _ = try test.address("zoe")
        #expect(
            try test.store.persons.accounts(user: "zoe", since: 0, now: TestStore.now).map(
                \.inboxNumber) == [1])
    }

    @Test(arguments: Engine.all) func inbox_addedConcurrently_getsItsOwnNumber(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let added = try await withThrowingTaskGroup(of: Int64.self) { group in
            for place in 2...9 {
                group.addTask { try self.add(test, "u1", "a\(place)@home.example").number }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(added.sorted() == Array(2...9))
        #expect(try test.store.inboxes.inboxes(user: "u1").map(\.number).sorted() == Array(1...9))
    }

    @Test(arguments: Engine.all) func inbox_overTwentyOfAUser_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        for number in 1..<InboxRepository.maximumPerUser {
            _ = try add(test, "u1", "n\(number)@home.example")
        }
        expectRefusal(.limit) { _ = try add(test, "u1", "more@home.example") }
        expectRefusal(.exists) { try test.user("u1") }
    }

    @Test func userID_addressOrInvalid_isRefused() throws {
        let test = try TestStore(.sqlite)
        for id in ["jane@home.example", "", "-x", "a b", "a/b", String(repeating: "a", count: 129)]
        {
            expectRefusal(.invalid) { try test.user(id, inbox: "x@home.example") }
        }
    }

    @Test func userName_controlCharacterOrTooLong_isRefused() throws {
        let test = try TestStore(.sqlite)
        for name in [
            "", "a\nb", "a\r\nBcc: x", "a\u{0}b", "a\u{2028}b", "a\u{85}b",
            String(repeating: "a", count: 201),
        ] {
            expectRefusal(.invalid) { try test.user("u1", name: name) }
        }
        #expect(try test.user("u1", name: "Łukasz 👩‍💻 O'Neil").name == "Łukasz 👩‍💻 O'Neil")
        #expect(try test.store.users.user("u1").name == "Łukasz 👩‍💻 O'Neil")
    }

    @Test func typedAddress_malformed_isRefused() throws {
        for text in [
            "a", "@a.example", "a@", "a@b", "a@b@c.example ", "a b@c.example", "a..b@c.example",
            ".a@c.example", "<a@c.example>",
            "\"a@c.example", "\"a\"b\"@c.example", "a@[192.0.2.1]",
            String(repeating: "a", count: 65) + "@c.example",
            "a@c..example",
            "a\n@c.example", "\"a\n\"@c.example",
        ] {
            expectRefusal(.invalid) { _ = try AddrSpec.typed(text) }
        }
        #expect(try AddrSpec.typed("\"a b\\\"c\"@C.example").localPart == "a b\"c")
        #expect(try AddrSpec.typed("jörg@c.example").localPart == "jörg")
        #expect(
            try AddrSpec.typed("o'hara+tag@mail.c.example").wireForm == "o'hara+tag@mail.c.example")
    }

    @Test(arguments: Engine.all) func inbox_domainInEitherScript_isFound(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", inbox: "jane@bücher.example")
        let header = InboxAddress(AddrSpec(localPart: "Jane", domain: "BÜCHER.example"))
        #expect(try test.store.inboxes.userID(verified: header) == "u1")
        #expect(
            try test.store.inboxes.userID(verified: TestStore.inbox("jane@xn--bcher-kva.example"))
                == "u1")
    }

    @Test func canonical_providerSpellings_areFolded() throws {
        let rules = ProviderRules.standard
        func canonical(_ text: String) throws -> String {
            rules.canonical(try AddrSpec.typed(text)).wireForm
        }
        #expect(try canonical("J.A.N.E+shop@GoogleMail.com") == "jane@gmail.com")
        #expect(try canonical("j.ane+shop@outlook.com") == "j.ane@outlook.com")
        #expect(try canonical("J.ane+shop@home.example") == "j.ane@home.example")
        #expect(try canonical("+tag@gmail.com") == "+tag@gmail.com")
    }
}
