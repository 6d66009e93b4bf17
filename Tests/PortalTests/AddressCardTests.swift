// The texts of a card and of an address's page, compared with the events in the store.

import Accounts
import Database
import Foundation
import InternetMessage
import Languages
import PersonalData
import RelayCore
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct AddressCardTests {
    /// The texts of the pages for one state of the address.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let arrange: @Sendable (PortalFixture) throws -> Void
        /// On the card, and on the address's own page.
        let card: [String]
        let page: [String]
        /// On neither.
        let never: [String]

        var testDescription: String { name }
    }

    private static let on = "Forwarding on</span>"
    private static let off = "Forwarding off</span>"
    private static let blocked = "Senders blocked</span>"
    private static let day = "21 September 2026"
    private static let user = Change(actor: "user:anna", now: PortalFixture.start)

    private static func address(_ fixture: PortalFixture) throws -> RelayAddress {
        try #require(
            try fixture.store.addresses.addresses(user: "anna").first { $0.retiredAt == nil })
    }

    private static let states: [Case] = [
        Case(
            name: "on", arrange: { _ in }, card: [on, "No mail forwarded yet"],
            page: ["sends reaches <strong>anna@home.example</strong>"],
            never: [off, blocked, "turned off", "refused in 7 days"]),
        Case(
            name: "off by the user",
            arrange: {
                try $0.store.addresses.setForwarding(
                    address($0).address, on: false, by: .user, user)
            },
            card: [off, "You turned it off on \(day)."], page: ["You turned it off on \(day)."],
            never: [on, "administrator", "as you had chosen"]),
        Case(
            name: "off by an administrator",
            arrange: { try $0.store.addresses.setForwarding(address($0).address, on: false, user) },
            card: [off, "An administrator turned it off on \(day)."],
            page: ["An administrator turned it off on \(day)."],
            never: [on, "You turned it off"]),
        Case(
            name: "off on a day",
            arrange: {
                try $0.store.addresses.switchForwarding(account: 1, at: PortalFixture.start, user)
                try $0.store.addresses.switchDue(now: PortalFixture.start)
            }, card: [off, "It turned off on \(day), as you had chosen."],
            page: ["It turned off on \(day), as you had chosen."],
            never: [on, "You turned it off", "after as many"]),
        Case(
            name: "off after a count",
            arrange: {
                try $0.store.addresses.switchForwarding(account: 1, at: nil, after: 2, user)
                try $0.store.counters.add([
                    DailyCounter(
                        accountNumber: 1, day: Day.number(PortalFixture.start), kind: .forwarded,
                        count: 2)
                ])
                try $0.store.addresses.endCounted(accounts: [1], now: PortalFixture.start)
            }, card: [off, "after as many messages as you had chosen."],
            page: ["after as many messages as you had chosen."],
            never: [on, "You turned it off", "No mail forwarded yet"]),
        Case(
            name: "on again",
            arrange: {
                try $0.store.addresses.setForwarding(
                    address($0).address, on: false, by: .user, user)
                try $0.store.addresses.setForwarding(address($0).address, on: true, by: .user, user)
            }, card: [on], page: ["sends reaches"], never: [off, "turned it off"]),
        Case(
            name: "every sender blocked",
            arrange: {
                try $0.store.persons.block(
                    user: "anna", account: 1, "juice.example", now: PortalFixture.start)
            },
            card: [blocked], page: ["every sender of The &lt;Juice&gt; Company"],
            never: [on, off, "sends reaches", "sender blocked</a>"]),
        Case(
            name: "one sender blocked",
            arrange: {
                try $0.store.persons.block(
                    user: "anna", account: 1, "ads@juice.example", now: PortalFixture.start)
            },
            card: [on, "1 sender blocked</a>"], page: ["sends reaches", "ads@juice.example"],
            never: [off, blocked]),
        Case(
            name: "replaced while off",
            arrange: {
                try $0.store.addresses.setForwarding(
                    address($0).address, on: false, by: .user, user)
                _ = try $0.store.addresses.replace(account: 1, user)
            }, card: [off, "You turned it off on \(day)."], page: ["You turned it off on \(day)."],
            never: [on]),
        Case(
            name: "mail and refusals",
            arrange: { fixture in
                let buffer = fixture.store.persons.lastMailBuffer()
                buffer.add(try forward("News@Juice.example"), at: PortalFixture.start)
                try buffer.flush()
                try fixture.store.add(refusals: try (0..<3).map { _ in try refused(.replaced) })
            },
            card: [
                on, "Last mail 21 September 2026 at 14:13 UTC, from <bdi>news@juice.example</bdi>",
                "3 refused in 7 days</a>",
            ],
            page: [
                "from <bdi>news@juice.example</bdi>",
                "It went to an earlier address that no longer works",
            ],
            never: ["You had stopped using the apps"]),
        Case(
            name: "mail of long ago",
            arrange: { fixture in
                let buffer = fixture.store.persons.lastMailBuffer()
                buffer.add(try forward("news@juice.example"), at: PortalFixture.start - 30 * 86_400)
                try buffer.flush()
                try fixture.store.add(refusals: [
                    try refused(.stranger, at: PortalFixture.start - 8 * 86_400)
                ])
            }, card: [on], page: ["The sender is not known to belong to"],
            never: ["Last mail", "refused in 7 days"]),
    ]

    private static func forward(_ author: String) throws -> ForwardAttribution {
        ForwardAttribution(
            author: try #require(AddrSpec(envelope: author)),
            account: try #require(AccountNumber(1)), isRegistered: true)
    }

    private static func refused(
        _ kind: UserRefusal, at time: Int64 = PortalFixture.start
    ) throws -> RefusedForward {
        let reply = try #require(RefusalReply.allCases.first { $0.facts.forUser == kind })
        return RefusedForward(
            at: time, attribution: try forward("x@juice.example"), reply: reply,
            reference: "abcdefgh")
    }

    @Test(arguments: states) func card_inEachState_saysWhatHappened(_ state: Case) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try state.arrange(fixture)
            let (card, page) = (
                try await anna.get("/me").text, try await anna.get("/me/addresses/1").text
            )
            for text in state.card { #expect(card.contains(text), "card: \(text)") }
            for text in state.page { #expect(page.contains(text), "page: \(text)") }
            for text in state.never {
                #expect(!card.contains(text) && !page.contains(text), "neither: \(text)")
            }
        }
    }

    /// The page must not say that the user did something that another cause did.
    @Test func reason_ofEachRefusal_isAWordOfItsOwn() throws {
        let english = try Languages.builtIn().best([], accepted: "en")
        let reasons = UserRefusal.allCases.map { PortalPage.reason($0, team: "Juice", in: english) }
        #expect(Set(reasons).count == UserRefusal.allCases.count)
        for kind in UserRefusal.allCases {
            #expect(
                RefusalReply.allCases.contains { $0.facts.forUser == kind },
                "\(kind) is given by no refusal")
        }
    }

    @Test func lists_withRefusedMail_areAFilterAwayAndSortByTheLatestMail() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.apps.add(
                team: "soda", clientID: "com.soda.app", group: nil, PortalFixture.change)
            _ = try fixture.store.addresses.issue(
                team: "soda", user: "anna", app: "com.soda.app", PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try fixture.store.add(refusals: [try Self.refused(.stranger)])
            let refused = try await anna.get("/me?state=refused").text
            #expect(refused.contains("com.juice.app") && !refused.contains("com.soda.app"))
            #expect(refused.contains("With refused mail <span class=\"count\">1</span>"))
            let buffer = fixture.store.persons.lastMailBuffer()
            buffer.add(try Self.forward("news@juice.example"), at: PortalFixture.start)
            try buffer.flush()
            let soda = try await anna.get("/me?order=newest").text
            let juice = try await anna.get("/me?order=active").text
            func first(_ text: String) -> String? {
                text.firstMatch(of: /com\.(juice|soda)\.app/).map { String($0.output.1) }
            }
            #expect(first(juice) == "juice" && first(soda) == "juice")
        }
    }

    @Test func several_areSwitchedAtOnceAndOnlyOnesOwn() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.apps.add(
                team: "soda", clientID: "com.soda.app", group: nil, PortalFixture.change)
            _ = try fixture.store.addresses.issue(
                team: "soda", user: "anna", app: "com.soda.app", PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            func isOn(_ user: String) throws -> [Bool] {
                try fixture.store.addresses.addresses(user: user).map(\.isForwardingOn)
            }
            // 2 is bob's.
            try await anna.submit(
                "/me/addresses/forwarding",
                ["state": "off", "address-1": "yes", "address-2": "yes", "address-3": "yes"])
            #expect(try isOn("anna") == [false, false] && isOn("bob") == [true])
            #expect(
                try await anna.get("/me").text.contains(
                    "Forwarding is off for the addresses that you chose."))
            try await anna.submit("/me/addresses/forwarding", ["state": "off"])
            #expect(
                try await anna.get("/me").text.contains(
                    "Nothing was changed: tick an address first."))
        }
    }

    @Test func hide_afterSharing_givesTheAppARelayAddressAndTellsIt() async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.apps.add(
                team: "soda", clientID: "com.soda.app", group: nil, PortalFixture.change)
            _ = try fixture.store.grants.authorize(
                AuthorizationRequest(
                    clientID: "com.soda.app", userID: "anna", emailKind: .real, sharesName: false),
                PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let number = try #require(
                try fixture.store.persons.accounts(user: "anna", since: 0, now: fixture.now).first {
                    $0.team.id == "soda"
                }?
                .number)
            #expect(
                try await anna.get("/me/addresses/\(number)").text.contains(
                    "Hide my address from now on"))
            try await anna.submit("/me/addresses/\(number)/hide")
            let page = try await anna.get("/me/addresses/\(number)").text
            #expect(
                page.contains("This is the address that the app gets from now on.")
                    && page.contains("@relay.example"))
            #expect(!page.contains("Hide my address from now on"))
            let account = try #require(
                try fixture.store.persons.accounts(user: "anna", since: 0, now: fixture.now).first {
                    $0.number == number
                })
            #expect(
                account.emailKind == .privateRelay && account.address != nil && account.isActive)
            // A hidden address cannot be hidden again.
            #expect(try await anna.submit("/me/addresses/1/hide").status == 409)
        }
    }

    /// The page must name the name only if it was given, and only the given one.
    @Test(
        arguments: [
            (PersonName(given: nil, family: nil), nil),
            (PersonName(given: "Pau", family: nil), "Pau"),
            (PersonName(given: "Paul", family: "Two"), "Paul Two"),
        ] as [(PersonName, String?)])
    func name_thatAnAppKnows_isTheOneThatWasGiven(
        _ given: PersonName, _ expected: String?
    ) async throws {
        try await PortalFixture.with { fixture in
            _ = try fixture.store.apps.add(
                team: "soda", clientID: "com.soda.app", group: nil, PortalFixture.change)
            var request = AuthorizationRequest(
                clientID: "com.soda.app", userID: "anna", emailKind: .privateRelay, sharesName: true
            )
            request.name = .typed(given)
            _ = try fixture.store.grants.authorize(request, PortalFixture.change)
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let page = try await anna.get("/me").text
            if let expected {
                #expect(page.contains("They know <strong>your name (\(expected))</strong>."))
            } else {
                #expect(!page.contains("They know"))
            }
        }
    }
}
