// The actions of users on their page, and the results in the store and in their inboxes.

import Accounts
import Database
import Foundation
import PersonalData
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct PortalPageTests {
    private func signedIn(_ body: (PortalFixture, Browser) async throws -> Void) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await body(fixture, anna)
        }
    }

    // MARK: Addresses

    @Test func addressesPage_showsAppsAndMessageCounts() async throws {
        try await signedIn { fixture, anna in
            let address = try #require(try fixture.store.addresses.addresses(user: "anna").first)
            let today = Day.number(fixture.now)
            try fixture.store.counters.add([
                DailyCounter(
                    accountNumber: address.account.number, day: today, kind: .forwarded, count: 3),
                DailyCounter(
                    accountNumber: address.account.number, day: today - 29, kind: .replied, count: 1
                ),
                DailyCounter(
                    accountNumber: address.account.number, day: today - 40, kind: .forwarded,
                    count: 5),
            ])
            let text = try await anna.get("/me").text
            for part in [
                address.address.wireForm, "com.juice.app", "since 21 September 2026",
                "3 messages to you, 1 message from you",
                "anna@home.example",
            ] {
                #expect(text.contains(part), "\(part)")
            }
            let detail = try await anna.get("/me/addresses/1").text
            #expect(detail.contains("September 2026") && detail.contains("August 2026"))
            #expect(detail.contains("<td class=\"number\">8</td>"))
        }
    }

    /// Such an address must not be listed as no longer in use.
    @Test func addressesPage_appWithRealAddress_showsWhatItKnows() async throws {
        try await signedIn { fixture, anna in
            let change = PortalFixture.change
            _ = try fixture.store.apps.add(
                team: "soda", clientID: "com.soda.app", group: nil, change)
            _ = try fixture.store.grants.authorize(
                AuthorizationRequest(
                    clientID: "com.soda.app", userID: "anna", emailKind: .real, sharesName: true),
                change)
            let text = try await anna.get("/me").text
            #expect(text.contains("Without a relay address") && !text.contains("No longer in use"))
            #expect(
                text.contains(
                    "They know <strong>your own address (anna@home.example) and your name (anna)</strong>."
                ))
            let number = try #require(
                try fixture.store.persons.accounts(user: "anna", since: 0, now: PortalFixture.start)
                    .first {
                        $0.team.id == "soda"
                    }?
                    .number)
            let detail = try await anna.get("/me/addresses/\(number)").text
            #expect(
                detail.contains(
                    "You gave Soda <strong>your own address (anna@home.example) and your name (anna)</strong>."
                ))
            #expect(
                detail.contains("Mail from this team does not pass through Fig &amp; Co")
                    && !detail.contains("mail is refused"))
            let group = try #require(
                try fixture.store.persons.accounts(user: "anna", since: 0, now: PortalFixture.start)
                    .first {
                        $0.team.id == "soda"
                    }?
                    .consents.first?.group.number)
            #expect(
                try await anna.get("/me/addresses/\(number)/apps/\(group)").text.contains(
                    "They still know your own address"))
            try await anna.submit("/me/addresses/\(number)/apps/\(group)")
            let ended = try await anna.get("/me").text
            #expect(
                ended.contains("No longer in use") && !ended.contains("Without a relay address"))
            // The page says which data the team has from then on.
            #expect(
                ended.contains(
                    "They were given <strong>your own address (anna@home.example) and your name (anna)</strong>, and still know it."
                ))
            let last = try await anna.get("/me/addresses/\(number)").text
            #expect(
                last.contains(
                    "You gave Soda <strong>your own address (anna@home.example) and your name (anna)</strong>."
                ))
            #expect(
                last.contains("You have stopped using their apps, but they still know it")
                    && !last.contains("mail is refused"))
        }
    }

    /// The overview must name its own inbox, not the default one.
    @Test func addressesPage_addressWithOwnInbox_namesIt() async throws {
        try await signedIn { fixture, anna in
            #expect(try await !anna.get("/me").text.contains("another inbox"))
            _ = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("work@home.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change
            )
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run(
                    "UPDATE accounts SET inbox_id = (SELECT MAX(id) FROM inboxes WHERE user_id = accounts.user_id) WHERE id = 1"
                )
            }
            let text = try await anna.get("/me").text
            #expect(
                text.contains(
                    "<strong>anna@home.example</strong>, unless an address below names another inbox."
                ))
            #expect(text.contains("Forwarded to <strong>work@home.example</strong>"))
        }
    }

    /// The mail must not say "no longer to this one".
    @Test func inboxNotice_someAddressesStay_saysSo() async throws {
        try await signedIn { fixture, anna in
            let second = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("work@home.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change
            )
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("UPDATE accounts SET inbox_id = 1 WHERE id = 1")
            }
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes/\(second.number)/use")
            let said = try fixture.mail("anna@home.example").split(whereSeparator: \.isWhitespace)
                .joined(separator: " ")
            #expect(
                said.contains(
                    "no longer to this one, except for those addresses that you chose this inbox for."
                ))
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes/1/use")
            let other = try fixture.mail("work@home.example").split(whereSeparator: \.isWhitespace)
                .joined(separator: " ")
            #expect(other.contains("no longer to this one. If"))
        }
    }

    /// It must not be shown as "You have stopped using every app of this team".
    @Test func addressesPage_appTransferred_namesNewTeam() async throws {
        try await signedIn { fixture, anna in
            _ = try fixture.store.transfers.start(
                team: "juice", app: "com.juice.app", to: "soda", PortalFixture.change)
            _ = try fixture.store.transfers.finish(app: "com.juice.app", PortalFixture.change)
            let text = try await anna.get("/me").text
            #expect(text.contains("Moved to another company") && !text.contains("No longer in use"))
            #expect(
                text.contains("com.juice.app moved to")
                    && text.contains("accepts their mail until 20 November 2026"))
            let detail = try await anna.get("/me/addresses/1").text
            #expect(
                detail.contains("com.juice.app moved to")
                    && detail.contains(">Soda</a> on 21 September 2026")
                    && !detail.contains("You have stopped using"))
            // After the end, the page no longer says that the old address accepts mail.
            fixture.now += 61 * 86_400
            try await anna.signIn("anna")
            let later = try await anna.get("/me").text
            #expect(later.contains("No longer in use") && !later.contains("accepts their mail"))
        }
    }

    /// A link such as `/me?told=off` must not claim a success.
    @Test func resultMessage_nothingDone_isNotShown() async throws {
        try await signedIn { fixture, anna in
            #expect(try await !anna.get("/me?told=off").text.contains("Forwarding is off"))
            try await anna.submit("/me/addresses/1/forwarding", ["state": "off"])
            #expect(
                try await anna.get("/me").text.contains(
                    "autofocus>Forwarding is off: mail to this address is refused"))
            #expect(try await !anna.get("/me").text.contains("Forwarding is off: mail"))
            anna.take("__Host-postern-told", "<b>x</b>")
            #expect(try await !anna.get("/me").text.contains("<b>x"))
        }
    }

    /// The first button must not end the session.
    @Test func inboxRemoval_inboxOfTheSession_asksFirst() async throws {
        try await signedIn { fixture, anna in
            let second = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("work@home.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change
            )
            try fixture.store.inboxes.makeDefault(
                user: "anna", .number(second.number), PortalFixture.change)
            try await anna.get("/me/inboxes")
            let asked = try await anna.submit("/me/inboxes/1/remove")
            #expect(
                asked.status == 200 && asked.text.contains("Remove anna@home.example?")
                    && asked.text.contains("you are signed out"))
            #expect(try fixture.store.inboxes.inboxes(user: "anna").count == 2)
            #expect(
                try await anna.submit("/me/inboxes/1/remove", ["sure": "yes"]).location
                    == "/me/inboxes")
            #expect(try fixture.store.inboxes.inboxes(user: "anna").count == 1)
        }
    }

    @Test func inboxesPage_internationalDomain_isShownInUnicode() async throws {
        try await signedIn { fixture, anna in
            _ = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("anna@müller.example"), isVerified: true,
                isReplyOnly: false,
                PortalFixture.change)
            let text = try await anna.get("/me/inboxes").text
            #expect(text.contains("anna@müller.example") && !text.contains("xn--"))
        }
    }

    @Test func forwarding_switchedOffAndOn_isStoredAndShown() async throws {
        try await signedIn { fixture, anna in
            #expect(
                try await anna.submit(
                    "/me/addresses/1/forwarding", ["state": "off", "back": "/me"]
                ).location == "/me")
            #expect(
                try fixture.store.addresses.addresses(user: "anna").first?.isForwardingOn == false)
            #expect(
                try await anna.get("/me").text.contains(
                    "autofocus>Forwarding is off: mail to this address is refused"))
            #expect(
                try fixture.store.audit.entries().first.map { "\($0.actor) \($0.action)" }
                    == "user:anna address.off")
            try await anna.get("/me/addresses/1")
            #expect(
                try await anna.submit("/me/addresses/1/forwarding", ["state": "on"]).location
                    == "/me/addresses/1")
            #expect(
                try fixture.store.addresses.addresses(user: "anna").first?.isForwardingOn == true)
            #expect(
                try await anna.submit("/me/addresses/1/forwarding", ["state": "maybe"]).status
                    == 403)
        }
    }

    @Test func appPage_stopUsing_asksFirstAndEndsGrant() async throws {
        try await signedIn { fixture, anna in
            let text = try await anna.get("/me/addresses/1/apps/1").text
            #expect(
                text.contains("Stop using com.juice.app?") && text.contains("It is the last app"))
            #expect(try fixture.store.addresses.addresses(user: "anna").first?.hasLiveGrant == true)
            #expect(try await anna.submit("/me/addresses/1/apps/1").location == "/me/addresses/1")
            #expect(
                try fixture.store.addresses.addresses(user: "anna").first?.hasLiveGrant == false)
            #expect(try await anna.get("/me").text.contains("No longer in use"))
            #expect(try await anna.get("/me/addresses/1/apps/1").status == 404)
        }
    }

    @Test func reverseAddress_requested_isMadeForSourcesOfTeamOnly() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/addresses/1")
            let text = try await anna.submit(
                "/me/addresses/1/write", ["correspondent": " billing@mail.juice.example "]
            ).text
            #expect(
                text.contains("billing=mail.juice.example.")
                    && text.contains("@relay.example</code>"))
            for other in ["billing@soda.example", "juice.example", "billing@notjuice.example"] {
                let answer = try await anna.submit(
                    "/me/addresses/1/write", ["correspondent": other])
                #expect(answer.status == 422 && !answer.text.contains("=soda"), "\(other)")
            }
            // An address that does not fit into a reverse address is stored for the account.
            let long = String(repeating: "x", count: 40) + "@mail.juice.example"
            #expect(
                try await anna.submit("/me/addresses/1/write", ["correspondent": long]).text
                    .contains("@relay.example</code>"))
            #expect(
                try fixture.store.persons.records(user: "anna", now: fixture.now).first {
                    $0.name == "stored_correspondents"
                }?
                .rows.count
                    == 1)
        }
    }

    // MARK: Inboxes

    private func code(_ fixture: PortalFixture, _ inbox: String) throws -> String {
        String(try #require(try fixture.mail(inbox).firstMatch(of: /[0-9]{3} [0-9]{3}/)).output)
    }

    @Test func inbox_verifiedByCode_replacesTheOldOne() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit("/me/inboxes", ["email": "new@home.example"]).location
                    == "/me/inboxes")
            let code = try code(fixture, "new@home.example")
            let text = try await anna.get("/me/inboxes").text
            let number = try #require(try fixture.store.inboxes.inboxes(user: "anna").last?.number)
            #expect(text.contains("Not confirmed") && !text.contains("Send mail here"))
            #expect(try await anna.submit("/me/inboxes/\(number)/use").status == 409)
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit("/me/inboxes/\(number)/code", ["code": code]).location
                    == "/me/inboxes")
            try await anna.get("/me/inboxes")
            #expect(try await anna.submit("/me/inboxes/\(number)/use").location == "/me/inboxes")
            #expect(try fixture.mail("anna@home.example").contains("goes to another inbox"))
            #expect(try await anna.get("/me").text.contains("new@home.example"))
            try await anna.get("/me/inboxes")
            // The inbox that gets mail stays. The other one is removed, with the session of its
            // sign-in.
            #expect(try await anna.submit("/me/inboxes/\(number)/remove").status == 409)
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit("/me/inboxes/1/remove", ["sure": "yes"]).location
                    == "/me/inboxes")
            #expect(try await anna.get("/me").location == "/me/sign-in")
        }
    }

    @Test func verificationCode_wrongTries_areLimitedAndCounted() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes", ["email": "new@home.example"])
            let code = try code(fixture, "new@home.example")
            let number = try #require(try fixture.store.inboxes.inboxes(user: "anna").last?.number)
            let says = [
                "tries left: 4", "tries left: 3", "tries left: 2", "tries left: 1",
                "that was the last try",
            ]
            for (place, left) in says.enumerated() {
                let wrong = code == "000 00\(place)" ? "999 999" : "000 00\(place)"
                // A second press of the button gets the same answer, and does not count as a try.
                try await anna.get("/me/inboxes")
                try await anna.submit("/me/inboxes/\(number)/code", ["code": wrong])
                try await anna.get("/me/inboxes")
                let answer = try await anna.submit("/me/inboxes/\(number)/code", ["code": wrong])
                #expect(answer.status == 422 && answer.text.contains(left), "\(left)")
            }
            try await anna.get("/me/inboxes")
            #expect(!anna.page.text.contains("name=\"code\""))
            #expect(
                try await anna.submit("/me/inboxes/\(number)/code", ["code": code]).status == 422)
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes/\(number)/send")
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit(
                    "/me/inboxes/\(number)/code",
                    ["code": try self.code(fixture, "new@home.example")]
                ).status
                    == 303)
        }
    }

    /// Only a person who has the address learns whether it is another user's.
    @Test func inbox_ofAnotherUser_isAnsweredAlike() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/inboxes")
            #expect(
                try await anna.submit("/me/inboxes", ["email": "bob@home.example"]).location
                    == "/me/inboxes")
            let code = try code(fixture, "bob@home.example")
            try await anna.get("/me/inboxes")
            let answer = try await anna.submit("/me/inboxes/2/code", ["code": code])
            #expect(answer.status == 404 || answer.status == 422)
            #expect(
                try fixture.store.inboxes.userID(verified: PortalFixture.inbox("bob@home.example"))
                    == "bob")
        }
    }

    @Test func verificationMessage_manyNewInboxes_isLimited() async throws {
        try await PortalFixture.with(limits: NoticeLimits(perInbox: 5, perUser: 3)) { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            for (number, expected) in [(1, 303), (2, 303), (3, 409)] {
                try await anna.get("/me/inboxes")
                #expect(
                    try await anna.submit("/me/inboxes", ["email": "n\(number)@home.example"])
                        .status == expected)
            }
            fixture.queue.drain()
            #expect(
                fixture.sink.messages.filter { $0.recipients.first?.hasPrefix("<n") == true }.count
                    == 2)
        }
    }

    @Test func verificationLink_opened_confirmsByButtonOnly() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/inboxes")
            try await anna.submit("/me/inboxes", ["email": "new@home.example"])
            let link = try fixture.link("new@home.example")
            let phone = Browser(fixture)
            #expect(try await phone.get(link).text.contains("Is this your inbox?"))
            #expect(try fixture.store.inboxes.inboxes(user: "anna").last?.isVerified == false)
            #expect(
                try await phone.submit(link, token: false).text.contains("Your inbox is confirmed"))
            #expect(try fixture.store.inboxes.inboxes(user: "anna").last?.isVerified == true)
            #expect(try await phone.get(link).text.contains("Your inbox is confirmed"))
            fixture.now += 86_400
            #expect(try await phone.get(link).status == 410)
            #expect(try await phone.submit(link, token: false).status == 409)
        }
    }

    // MARK: Data

    @Test func dataDownload_storedRecords_areIncluded() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/addresses/1")
            try await anna.submit("/me/addresses/1/forwarding", ["state": "off"])
            let answer = try await anna.get("/me/data.json")
            #expect(answer.header("Content-Disposition") == "attachment; filename=\"my-data.json\"")
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [String: Any])
            func rows(_ name: String) -> [[String: Any]] { object[name] as? [[String: Any]] ?? [] }
            #expect(
                rows("user").first?["id"] as? String == "anna"
                    && rows("user").first?["name"] as? String == "anna")
            #expect(rows("inboxes").first?["address"] as? String == "anna@home.example")
            #expect(rows("relay_addresses").first?["forwarding_is_on"] as? Bool == false)
            #expect(rows("consents").first?["app"] as? String == "com.juice.app")
            #expect(
                rows("counts_by_day").contains { $0["what"] as? String == "forwarding_switched" })
            #expect(rows("messages_from_us").first?["kind"] as? String == "sign-in")
            #expect(rows("sessions").map { $0["signed_in_by"] as? String } == ["mail"])
            #expect(
                rows("changes").contains {
                    $0["what"] as? String == "address.off" && $0["by"] as? String == "user:anna"
                })
            #expect(!answer.text.contains("bob"))
        }
    }

    /// New tables about users must be in the download, or here with the reason for leaving them
    /// out.
    @Test func dataDownload_everyTable_isIncludedOrExempt() throws {
        let without: [String: String] = [
            "teams": "of teams", "outbound_sources": "of teams", "app_groups": "of teams",
            "apps": "of teams",
            "settings": "of the installation",
            "schema_migrations": "of the installation", "dkim_keys": "of the installation",
            "page_links": "in links_under_way",
            "page_codes": "in sign_in_codes",
            "notices": "in messages_from_us", "page_sessions": "in sessions",
            "app_sessions": "in apps_of_sessions",
            "audit": "in changes", "users": "in user",
            "page_sign_ins": "in recent_sign_ins", "last_mail": "in last_messages",
            "decision_objections": "in objections",
            "account_refusals_told": "in refusals_you_were_told_of",
            "daily_counters": "in counts_by_day", "account_refusals": "in refusals_by_day",
            "delivery_marks": "in mail_your_provider_objected_to",
            "delivery_marks_left": "in mail_your_provider_objected_to_before",
            "counter_totals": "in counts_before",
            "account_blocks": "in blocked_senders", "stored_tokens": "in stored_correspondents",
            "once_marks": "in marks_of_what_happened_once",
            "grants": "in consents", "external_identities": "in identities_elsewhere",
            "outbox": "in events_to_teams",
            "account_transfers": "in moves_to_other_teams", "refresh_tokens": "in sign_ins",
            "authorization_codes": "in sign_ins_under_way",
            "tombstones": "in earlier_accounts", "authenticators": "in authenticator_app",
            "recovery_waits": "in sign_in_without_second_factor",
            "user_freezes": "in frozen",
            "check_codes": "in codes_of_checks", "hold_data": "in holds",
        ]
        let fixture = try PortalFixture()
        defer { fixture.stop() }
        let tables: [String] = try fixture.store.database.values(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        let sections = Set(
            try fixture.store.persons.records(user: "anna", now: fixture.now).map(\.name))
        for table in tables
        where without[table] == nil && UserExportTables.notPersonal[table] == nil {
            #expect(sections.contains(table), "\(table)")
        }
        for (table, reason) in without where reason.hasPrefix("in ") {
            #expect(sections.contains(String(reason.dropFirst(3))), "\(table)")
        }
    }

    // MARK: Deletion

    @Test func deletion_confirmedByLink_removesTheUser() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/delete")
            #expect(try await anna.submit("/me/delete").text.contains("Check your inbox"))
            #expect(try fixture.store.users.user("anna").id == "anna")
            let link = try fixture.link("anna@home.example")
            let other = Browser(fixture)
            #expect(try await other.get(link).location == "/me/sign-in")
            try await other.signIn("bob")
            #expect(try await other.get(link).status == 403)
            #expect(try await anna.get(link).text.contains("Delete everything now?"))
            let relay = try #require(
                try fixture.store.addresses.addresses(user: "anna").first?.address)
            #expect(try await anna.submit(link).location == "/me/goodbye")
            #expect(throws: StoreFailure.refused(.notFound, "")) {
                try fixture.store.users.user("anna")
            }
            #expect(
                try fixture.store.relay.relayAddress(
                    localPart: relay.localPart, domain: relay.domain) == nil)
            #expect(anna.cookies.isEmpty)
            let goodbye = try await anna.get("/me/goodbye").text
            #expect(goodbye.contains("Your account is deleted") && !goodbye.contains("kept until"))
            #expect(try await anna.get("/me").location == "/me/sign-in")
        }
    }

    /// A hold outlives the deletion: the pages say what is kept and until when, and not why.
    @Test(arguments: [false, true]) func deletion_heldUser_saysWhatIsKept(
        _ isConfidential: Bool
    ) async throws {
        try await signedIn { fixture, anna in
            let end = fixture.now + 90 * 86_400
            _ = try fixture.store.holds.add(
                .user("anna"),
                HoldTerms(
                    data: [.counters, .audit], reason: "dispute 7", endsAt: end,
                    isConfidential: isConfidential),
                Change(actor: "uid:0", now: fixture.now))
            let sentence =
                "These records are kept until \(PortalText(.english).date(end)) and deleted then: the log of changes to your account and the daily counts of your mail."
            let asked = try await anna.get("/me/delete").text
            #expect(asked.contains(sentence) != isConfidential)
            #expect(asked.contains("Some records may be kept longer") == isConfidential)
            try await anna.submit("/me/delete")
            let link = try fixture.link("anna@home.example")
            try await anna.get(link)
            #expect(try await anna.submit(link).location == "/me/goodbye")
            let goodbye = try await anna.get("/me/goodbye").text
            #expect(goodbye.contains("Your account is deleted"))
            #expect(goodbye.contains(sentence) != isConfidential)
            #expect(!goodbye.contains("dispute") && !asked.contains("dispute"))
            // The cookie is gone.
            #expect(!(try await anna.get("/me/goodbye").text.contains("kept until")))
        }
    }

    @Test func deletionLink_expiredOrUsedToSignIn_isRefused() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/delete")
            try await anna.submit("/me/delete")
            let link = try fixture.link("anna@home.example")
            #expect(
                try await anna.get(link.replacing("/delete/", with: "/sign-in/")).location == "/me")
            let other = Browser(fixture)
            #expect(
                try await other.get(link.replacing("/delete/", with: "/sign-in/")).status == 410)
            try await anna.get(link)
            fixture.now += PageLifetime.link
            #expect(try await anna.submit(link).status == 410)
            #expect(try fixture.store.users.user("anna").id == "anna")
        }
    }
}
