// Mail to users about their own page: a planned deletion, a new passkey, refused mail.

import Accounts
import Database
import Foundation
import InternetMessage
import PersonalData
import RelayCore
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct OwnMessageTests {
    private static let day: Int64 = 86_400

    /// Signs anna in and requests the deletion, up to the last button.
    private func plan(
        _ fixture: PortalFixture, headers: [String: String] = [:]
    ) async throws -> Browser {
        let anna = Browser(fixture)
        try await anna.signIn("anna")
        #expect(try await anna.get("/me/delete").text.contains("All that happens after 7 days."))
        try await anna.submit("/me/delete")
        let link = try fixture.link("anna@home.example")
        #expect(try await anna.get(link).text.contains("Delete everything on"))
        #expect(try await anna.submit(link).location == "/me/data")
        return anna
    }

    @Test func deletion_withinWaitingTime_canBeCancelled() async throws {
        try await PortalFixture.with(deletionDays: 7) { fixture in
            let anna = try await plan(fixture)
            let day = PortalText(.english).date(fixture.now + 7 * Self.day)
            let page = try await anna.get("/me/data")
            #expect(
                page.text.contains("Your account is deleted on \(day)")
                    && page.text.contains("The day is set."))
            #expect(!page.text.contains("href=\"/me/delete\""), "it was asked for already")
            #expect(
                try fixture.mail("anna@home.example").split(whereSeparator: \.isWhitespace).joined(
                    separator: " "
                )
                .contains("Until \(day) nothing changes"))
            // Every page says so; bob's do not.
            #expect(try await anna.get("/me").text.contains("is deleted on \(day)"))
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(!(try await bob.get("/me").text.contains("is deleted on")))
            // The day has not come for any user; mail continues.
            #expect(try fixture.store.users.removeDue(now: fixture.now + 7 * Self.day - 1) == 0)
            #expect(try await anna.submit("/me/keep").location == "/me/data")
            let kept = try await anna.get("/me/data").text
            #expect(kept.contains("Nothing is deleted.") && !kept.contains("is deleted on"))
            #expect(try fixture.store.users.removeDue(now: fixture.now + 8 * Self.day) == 0)
            #expect(try fixture.store.users.user("anna").id == "anna")
        }
    }

    @Test func deletion_dayReached_removesTheUser() async throws {
        try await PortalFixture.with(deletionDays: 7) { fixture in
            let anna = try await plan(fixture)
            let relay = try #require(
                try fixture.store.addresses.addresses(user: "anna").first?.address)
            fixture.now += 7 * Self.day
            #expect(try fixture.store.users.removeDue(now: fixture.now) == 1)
            #expect(throws: StoreFailure.refused(.notFound, "")) {
                try fixture.store.users.user("anna")
            }
            #expect(
                try fixture.store.relay.relayAddress(
                    localPart: relay.localPart, domain: relay.domain) == nil)
            #expect(try await anna.get("/me").location == "/me/sign-in")
            #expect(try fixture.store.users.user("bob").id == "bob")
            let actions = try fixture.store.audit.page(
                actor: "user:anna", action: "user.*", limit: 10
            ).rows.map(\.action)
            #expect(actions == ["user.remove", "user.plan-removal"])
        }
    }

    @Test func securityPage_recentSignIns_areShownWithTime() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            fixture.now += Self.day
            try await anna.signIn("anna")
            let page = try await anna.get("/me/security").text
            for time in [PortalFixture.start, fixture.now] {
                #expect(page.contains("\(PortalText(.english).time(time)), by mail"))
            }
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(try await bob.get("/me/security").text.matches(of: /, by mail/).count == 1)
            // Not more than are useful.
            for _ in 0..<25 {
                fixture.now += 3600
                try await bob.signIn("bob")
            }
            let kept: Int64? = try fixture.store.database.value(
                "SELECT COUNT(*) FROM page_sign_ins")
            #expect(kept == 22)
        }
    }

    // MARK: Data

    /// The download has exactly the fields of its schema, and so has the page to read.
    @Test func dataDownload_everyField_matchesItsSchema() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            let schema = try await anna.get("/me/data/schema.json")
            #expect(
                schema.status == 200 && schema.header("Content-Type") == "application/schema+json")
            let rules = try #require(
                try JSONSerialization.jsonObject(with: Data(schema.text.utf8)) as? [String: Any])
            let sections = try #require(rules["properties"] as? [String: [String: Any]])
            try await anna.signIn("anna")
            try Self.refuse(fixture, .unauthorizedSender)
            let file = try await anna.get("/me/data.json").text
            let data = try #require(
                try JSONSerialization.jsonObject(with: Data(file.utf8)) as? [String: Any])
            #expect(
                Set(data.keys) == Set(sections.keys)
                    && data["$schema"] as? String == "\(PortalFixture.url)/me/data/schema.json")
            var checked = 0
            for (name, rows) in data.compactMapValues({ $0 as? [[String: Any]] }) {
                let items = try #require(sections[name]?["items"] as? [String: Any])
                let fields = try #require(items["properties"] as? [String: [String: Any]])
                for row in rows {
                    #expect(Set(row.keys) == Set(fields.keys), "\(name)")
                    for (field, value) in row {
                        guard let types = fields[field]?["type"] as? [String] else { continue }
                        let type = Self.type(value, isFlag: types.contains("boolean"))
                        #expect(types.contains(type), "\(name).\(field) is \(type)")
                        checked += 1
                    }
                }
            }
            #expect(checked > 50)
            let page = try await anna.get("/me/data/read").text
            for text in ["Refusals by day", "now.example", "anna@home.example", "Recent sign ins"] {
                #expect(page.contains(text), "\(text)")
            }
            #expect(!page.contains("bob"))
        }
    }

    private static func type(_ value: Any, isFlag: Bool) -> String {
        switch value {
        case is NSNull: "null"
        case is String: "string"
        case is [String]: "array"
        case is NSNumber: isFlag ? "boolean" : "integer"
        default: "other"
        }
    }

    // MARK: Refusals

    private static func refuse(_ fixture: PortalFixture, _ reply: RefusalReply) throws {
        let account = try #require(try fixture.store.addresses.addresses(user: "anna").first)
            .account.number
        try fixture.store.add(refusals: [
            RefusedForward(
                at: fixture.now,
                attribution: ForwardAttribution(
                    author: try #require(AddrSpec(envelope: "win@now.example")),
                    account: try #require(AccountNumber(UInt64(account))), isRegistered: false),
                reply: reply, reference: "abcdefgh")
        ])
    }

    @Test func refusalNotice_newKind_isSentAtMostWeekly() async throws {
        try await PortalFixture.with { fixture in
            let portal = try #require(fixture.portal)
            let inbox = "anna@home.example"
            // Her own actions cause no message.
            try Self.refuse(fixture, .forwardingOff)
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == 0)
            try Self.refuse(fixture, .unauthorizedSender)
            try portal.tellOfRefusals()
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == 1)
            let message = try fixture.mail(inbox)
            #expect(
                message.contains("The sender is not known to belong to those who have the address"))
            #expect(!message.contains("now.example"), "no word of the sender's")
            // Another kind waits for the end of the week, and the old one is not reported again.
            try Self.refuse(fixture, .dkimFailed)
            fixture.now += 7 * Self.day - 1
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == 1)
            fixture.now += 1
            try Self.refuse(fixture, .dkimFailed)
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == 2)
            #expect(try fixture.mail(inbox).contains("could not prove who it is"))
            #expect(!(try fixture.mail(inbox).contains("not known to belong")))
        }
    }

    @Test func refusalNotice_settingAndLanguage_areRespected() async throws {
        try await PortalFixture.with { fixture in
            let (portal, inbox) = (try #require(fixture.portal), "anna@home.example")
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let before = fixture.mailCount(inbox)
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit("/me/inboxes/refusals", ["state": "off"]).location
                    == "/me/inboxes")
            #expect(
                try await anna.get("/me/inboxes").text.contains(
                    "You are not told by mail what is refused."))
            try Self.refuse(fixture, .unauthorizedSender)
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == before)
            #expect(
                try await anna.submit("/me/inboxes/refusals", ["state": "perhaps"]).status == 404)
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes/refusals", ["state": "on"])
            try fixture.store.users.setLanguage(of: "anna", "de")
            try portal.tellOfRefusals()
            #expect(fixture.mailCount(inbox) == before + 1)
            #expect(try fixture.mail(inbox).contains("konnte nicht belegen") == false)
            #expect(try fixture.mail(inbox).contains("höchstens einmal in der Woche"))
        }
    }

    private func take(_ persons: UserExportRepository, now: Int64) throws -> [RefusalNotice] {
        try persons.takeRefusalNotices(of: persons.usersToTell(now: now, limit: 10), now: now)
    }

    @Test func refusalNotice_givenBack_isDueAgain() async throws {
        let fixture = try PortalFixture()
        defer { fixture.stop() }
        try Self.refuse(fixture, .unauthorizedSender)
        let due = try fixture.store.persons.usersToTell(now: fixture.now, limit: 10)
        let taken = try take(fixture.store.persons, now: fixture.now)
        #expect(taken.map(\.kinds) == [[.stranger]])
        #expect(try take(fixture.store.persons, now: fixture.now).isEmpty, "another host has it")
        #expect(
            try fixture.store.persons.takeRefusalNotices(of: due, now: fixture.now).isEmpty,
            "looked for before")
        try fixture.store.persons.giveBack(try #require(taken.first), now: fixture.now)
        #expect(try take(fixture.store.persons, now: fixture.now).map(\.userID) == ["anna"])
    }

    /// After 90 days the same kind is reported again, even if its record still exists.
    @Test(arguments: [true, false]) func refusalNotice_toldOver90DaysAgo_isDueAgain(
        isDeleted: Bool
    ) throws {
        let fixture = try PortalFixture()
        defer { fixture.stop() }
        let persons = fixture.store.persons
        try Self.refuse(fixture, .unauthorizedSender)
        #expect(try take(persons, now: fixture.now).count == 1)
        func refusedAgain(after days: Int64) throws -> Int64 {
            let now = fixture.now + days * 86_400
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                _ = try connection.run(
                    "UPDATE account_refusals SET day = \(Day.number(now)), last_at = \(now)")
            }
            return now
        }
        var now = try refusedAgain(after: 89)
        #expect(try persons.deleteTold(now: now) == 0)
        #expect(try take(persons, now: now).isEmpty)
        now = try refusedAgain(after: 91)
        if isDeleted {
            #expect(
                try persons.deleteTold(now: now, limit: 1) == 1
                    && persons.deleteTold(now: now, limit: 1) == 0)
        }
        #expect(try take(persons, now: now).map(\.kinds) == [[.stranger]])
        #expect(try take(persons, now: now).isEmpty && persons.deleteTold(now: now) == 0)
    }

    // MARK: Checks

    @Test func addressPage_decision_showsReasonsAndTakesObjection() async throws {
        try await PortalFixture.with { fixture in
            try fixture.askForCheck(reasons: "INBOX_SIGNUP_BURST INBOX_SIGNUP_VELOCITY HOUSE_RULE")
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            let page = try await anna.get("/me/addresses/1").text
            #expect(
                page.contains(
                    "When you signed up</strong> · a code by mail and a test that you are human · Not completed"
                ))
            #expect(page.matches(of: /many sign-ups with your inbox/).count == 1)
            #expect(page.contains("A rule of the operator: HOUSE_RULE"))
            #expect(
                try await anna.submit("/me/addresses/1/object", ["decision": "rd_1"]).location
                    == "/me/addresses/1")
            let after = try await anna.get("/me/addresses/1").text
            #expect(after.contains("Your objection is noted.") && after.contains("You objected on"))
            // bob has no such check.
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(
                try await bob.submit("/me/addresses/1/object", ["decision": "rd_1"]).status == 404)
            try await bob.get("/me/addresses/2")
            let own = try await bob.submit("/me/addresses/2/object", ["decision": "rd_1"])
            #expect(own.status == 404, "\(own.status): \(own.text)")
        }
    }
}
