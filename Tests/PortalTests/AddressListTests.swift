// How a user finds one of many addresses: search, the language's order, pages.

import Accounts
import Database
import Foundation
import InternetMessage
import RelayCore
import TestSupport
import Testing

@testable import PersonalData
@testable import Portal

@Suite(.blocking) struct AddressListTests {
    private func item(
        _ number: Int64, _ team: String, _ state: AddressState = .on, ownName: String = "",
        note: String = "", apps: [String] = []
    ) -> AddressListItem {
        AddressListItem(
            account: number, team: team,
            address: AddrSpec(localPart: "x\(number)q7", domain: "relay.example"), state: state,
            ownName: ownName, note: note, apps: apps, createdAt: number)
    }

    private func titles(
        _ items: [AddressListItem], _ query: AddressListQuery, _ language: String = "en"
    ) -> [String] {
        AddressListPage(items, query, language: language).items.map(\.title)
    }

    @Test func addressList_orderByName_followsLanguageAndNumbers() {
        let names = ["Zebra", "Team 10", "Äpfel", "team 2", "Ångström", "Apfelmus", "Team 1"]
        let items = names.enumerated().map { item(Int64($0.offset + 1), $0.element) }
        #expect(
            titles(items, AddressListQuery(), "de") == [
                "Ångström", "Äpfel", "Apfelmus", "Team 1", "team 2", "Team 10", "Zebra",
            ])
        // In Swedish these letters are the last ones.
        #expect(titles(items, AddressListQuery(), "sv").suffix(2) == ["Ångström", "Äpfel"])
        #expect(titles(items, AddressListQuery(order: .newest)).first == "Team 1")
    }

    @Test func addressList_search_ignoresCaseAndAccents() {
        let items = [
            item(1, "Café Olé", apps: ["com.cafe.app"]), item(2, "Bank", ownName: "Für die Miete"),
            item(3, "Shop", note: "Café gift"),
        ]
        #expect(titles(items, AddressListQuery(search: "cafe")) == ["Café Olé", "Shop"])
        #expect(titles(items, AddressListQuery(search: "CAFE ole")) == ["Café Olé"])
        #expect(titles(items, AddressListQuery(search: "miete bank")) == ["Für die Miete"])
        #expect(titles(items, AddressListQuery(search: "x3q7@relay")) == ["Shop"])
        #expect(titles(items, AddressListQuery(search: "com.cafe")) == ["Café Olé"])
        // A short word in a random address is not a match.
        #expect(titles(items, AddressListQuery(search: "x3q7")).isEmpty)
        #expect(titles(items, AddressListQuery(search: "tea")).isEmpty)
    }

    @Test func addressList_shuffledItems_pagesHoldEachOnce() {
        var items = (1...1_003).map {
            item(Int64($0), "Team \($0 * 7_919 % 1_003)", $0 % 10 == 0 ? .ended : .on)
        }
        for _ in 0..<3 {
            items.shuffle()
            var seen: [Int64] = []
            for page in 1...41 {
                let part = AddressListPage(items, AddressListQuery(page: page), language: "en")
                #expect(part.pages == 41 && part.found == 1_003 && part.page == page)
                seen += part.items.map(\.account)
            }
            #expect(seen.count == 1_003 && Set(seen).count == 1_003)
            let whole = items.ordered(in: 0..<1_003) {
                AddressListPage.precedes($0, $1, .name, Locale(identifier: "en"))
            }
            #expect(seen == whole.map(\.account))
        }
        // Beyond the last page is the last page.
        let last = AddressListPage(items, AddressListQuery(page: 99), language: "en")
        #expect(last.page == 41 && last.items.count == 3)
    }

    @Test func addressList_searchAndFilter_countsStatesOfMatches() {
        let items = [
            item(1, "Juice"), item(2, "Juice 2", .off), item(3, "Soda", .off),
            item(4, "Juice 4", .ended),
        ]
        let page = AddressListPage(
            items, AddressListQuery(search: "juice", filter: .state(.off)), language: "en")
        #expect(page.items.map(\.account) == [2] && page.matched == 3)
        #expect(
            page.counts.filter { $0.value > 0 } == [
                .state(.on): 1, .state(.off): 1, .state(.ended): 1,
            ])
        #expect(
            titles(items, AddressListQuery()) == ["Juice", "Juice 2", "Soda", "Juice 4"],
            "what ended comes last")
    }

    @Test func listPath_foreignTarget_returnsNil() {
        for text in ["/me?search=a%26b&page=3", "/me?state=off&order=newest", "/me"] {
            #expect(PortalPage.listPath(text) == text)
        }
        #expect(PortalPage.listPath("/me?search=x&evil=1") == "/me?search=x")
        for text in [
            "//evil.example", "/me/security", "https://evil.example/me", "/me?search=%0d%0aX",
            "/mexico", nil,
        ] {
            let path = PortalPage.listPath(text)
            #expect(
                path == nil
                    || path?.allSatisfy { !$0.isNewline } == true && path?.hasPrefix("/me") == true,
                "\(text ?? "")")
        }
        #expect(
            PortalPage.listPath("//evil.example") == nil && PortalPage.listPath("/mexico") == nil)
    }
}

@Suite(.blocking) struct AddressPageTests {
    private func signedIn(_ body: (PortalFixture, Browser) async throws -> Void) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await body(fixture, anna)
        }
    }

    /// 120 addresses must not be one page.
    @Test func addressesPage_manyAddresses_isPagedAndSearchable() async throws {
        try await signedIn { fixture, anna in
            for number in 1...60 {
                _ = try fixture.store.teams.add(
                    id: "t\(number)", name: "Shop \(number)", PortalFixture.change)
                _ = try fixture.store.apps.add(
                    team: "t\(number)", clientID: "com.t\(number)", group: nil, PortalFixture.change
                )
                _ = try fixture.store.addresses.issue(
                    team: "t\(number)", user: "anna", app: "com.t\(number)", PortalFixture.change)
            }
            func shown() -> [String] {
                anna.page.text.matches(of: /id="address-[0-9]+">/).map { String($0.output) }
            }
            var text = try await anna.get("/me").text
            #expect(shown().count == 25 && text.contains("Page 1 of 3"))
            let (second, tenth) = (
                try #require(text.firstRange(of: "Shop 2<")),
                try #require(text.firstRange(of: "Shop 10<"))
            )
            #expect(second.lowerBound < tenth.lowerBound)
            text = try await anna.get("/me?page=3").text
            #expect(
                shown().count == 11 && !text.contains("rel=\"next\"")
                    && text.contains("href=\"/me?page=2\""))
            // The form leads back to the same place in a search, and the notice names the address.
            text = try await anna.get("/me?search=shop+33").text
            #expect(shown().count == 1)
            let number = try #require(text.firstMatch(of: /id="address-([0-9]+)"/)).output.1
            let back = try #require(text.firstMatch(of: /name="back" value="([^"]+)"/)).output.1
                .replacing("&amp;", with: "&")
            let answer = try await anna.submit(
                "/me/addresses/\(number)/forwarding", ["state": "off", "back": String(back)])
            #expect(answer.location == "/me?search=shop%2033")
            text = try await anna.get("/me?search=shop%2033").text
            #expect(text.contains("autofocus>Forwarding is off"), "in the card, where it is seen")
            text = try await anna.get("/me?state=off").text
            #expect(shown().count == 1 && text.contains("Off <span class=\"count\">1</span>"))
            #expect(
                try await anna.get("/me?search=nothing+like+that").text.contains("Nothing found"))
        }
    }

    /// One page of ten thousand addresses is as large as one of a hundred, with as many queries of
    /// the store.
    @Test func addressesPage_tenThousandAddresses_keepsItsSize() async throws {
        try await signedIn { fixture, anna in
            func fill(_ numbers: ClosedRange<Int>) throws {
                let (first, last, start) = (
                    numbers.lowerBound, numbers.upperBound, PortalFixture.start
                )
                try fixture.store.database.write(.relaxed) { connection throws(StoreFailure) in
                    let rows: SQL =
                        "WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(last))"
                    for (table, columns) in [
                        (
                            "teams (id, handle, name, created_at)",
                            "i, 'h' || i, 'Shop ' || i, \(start)" as SQL
                        ),
                        (
                            "app_groups (id, team_id, primary_client_id, created_at)",
                            "i, i, 'c' || i, \(start)"
                        ),
                        ("apps (group_id, client_id, created_at)", "i, 'c' || i, \(start)"),
                        (
                            "accounts (id, team_id, user_id, sub, created_at)",
                            "i, i, 1, 's' || i, \(start)"
                        ),
                        (
                            "relay_addresses (account_id, ordinal, local_part, domain, created_at)",
                            "i, 1, 'r' || i, 'relay.example', \(start)"
                        ),
                        (
                            "grants (account_id, group_id, state, first_authorized_at, last_authorized_at)",
                            "i, i, 'authorized', \(start), \(start)"
                        ),
                    ] {
                        try connection.run(
                            "INSERT INTO \(raw: table) \(rows) SELECT \(columns) FROM n")
                    }
                }
            }
            try fill(1_001...1_100)
            let hundred = try await anna.get("/me?page=2").text
            #expect(hundred.contains("Page 2 of 5"))
            try fill(2_001...11_900)
            let page = try await anna.get("/me?page=200").text
            #expect(page.contains("Page 200 of 401") && page.utf8.count < 100_000)
            #expect(abs(page.utf8.count - hundred.utf8.count) < 5_000, "\(hundred.utf8.count)")
            #expect(try await anna.get("/me?search=shop+11899").text.contains("Shop 11899"))
        }
    }

    @Test func addressPage_nameAndNote_areVisibleToTheUserOnly() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/addresses/1")
            let answer = try await anna.submit(
                "/me/addresses/1/notes",
                ["name": "  Zucchini  <b>", "note": "asked for\r\nwholesale-word"])
            #expect(answer.location == "/me/addresses/1")
            let text = try await anna.get("/me/addresses/1").text
            #expect(
                text.contains("autofocus>Saved.")
                    && text.contains("<h1><bdi>Zucchini &lt;b&gt;</bdi></h1>"))
            #expect(text.contains("asked for\nwholesale-word</textarea>"))
            #expect(try await anna.get("/me?search=wholesale").text.contains("Zucchini"))
            #expect(try await anna.get("/me/data.json").text.contains("wholesale-word"))
            // No other user has it, and the file of the store, the log and the audit do not contain
            // it.
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(try await bob.submit("/me/addresses/1/notes", ["name": "mine"]).status == 404)
            for word in ["Zucchini", "wholesale"] {
                for file in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path)
                {
                    let data = try Data(contentsOf: fixture.folder.appendingPathComponent(file))
                    #expect(data.range(of: Data(word.utf8)) == nil, "\(file)")
                }
                #expect(!fixture.log.lines.contains { $0.contains(word) })
            }
            // A refused text is shown again, and can be removed.
            try await anna.get("/me/addresses/1")
            let long = try await anna.submit(
                "/me/addresses/1/notes",
                ["name": String(repeating: "x", count: 81), "note": "kept"])
            #expect(
                long.status == 422 && long.text.contains("at most 80 characters")
                    && long.text.contains(">kept</textarea>"))
            #expect(
                try await anna.submit("/me/addresses/1/notes", ["name": "a\u{202E}b"]).status == 422
            )
            try await anna.get("/me/addresses/1")
            try await anna.submit("/me/addresses/1/notes", ["name": " ", "note": ""])
            #expect(
                try await anna.get("/me/addresses/1").text.contains(
                    "<h1><bdi>The &lt;Juice&gt; Company</bdi></h1>"))
        }
    }

    /// A browser shows a date in its own language, for every language of the page.
    @Test(arguments: [
        ("en", ["day", "month", "year"], "December"), ("de", ["day", "month", "year"], "Dezember"),
        ("ja", ["year", "month", "day"], "12月"), ("ar", ["day", "month", "year"], "ديسمبر"),
    ])
    func dayOfASwitch_isAskedForInTheLanguageOfThePage(
        _ tag: String, _ order: [String], _ december: String
    ) async throws {
        try await signedIn { _, anna in
            let text = try await anna.get("/me/addresses/1", headers: ["Accept-Language": tag]).text
            #expect(
                text.matches(of: /<select name="(day|month|year)"/).map { String($0.1) } == order)
            #expect(text.contains(#"<option value="12">\#(december)</option>"#))
        }
    }

    @Test func addressPage_scheduleAndReplacement_takeEffect() async throws {
        try await signedIn { fixture, anna in
            let old = try #require(try fixture.store.addresses.current(account: 1)).address
            func fields(_ text: String) -> [String: String] {
                let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(
                    String.init)
                return Dictionary(uniqueKeysWithValues: zip(["year", "month", "day"], parts))
            }
            func number(_ text: String) -> Int64? { FormDay { fields(text)[$0.text] ?? "" }.number }
            for day in ["2027-2-29", "2027-2-30", "2028-4-31", "2027-13-1", "2027--1", "", "--"] {
                #expect(number(day) == nil)
            }
            #expect(number("2028-2-29") == 21_243)
            let (today, next) = (
                FormDay(number: Day.number(fixture.now)),
                FormDay(number: Day.number(fixture.now) + 1)
            )
            let tomorrow = fields("\(next.year)-\(next.month)-\(next.day)")
            try await anna.get("/me/addresses/1")
            let missing = try await anna.submit(
                "/me/addresses/1/schedule", fields("\(next.year)-2-30"))
            #expect(missing.status == 422 && missing.text.contains("This day does not exist."))
            for day in [
                "\(today.year)-\(today.month)-\(today.day)", "2199-1-1", "tomorrow", "--1",
                "2027-1", "-1",
            ] {
                try await anna.get("/me/addresses/1")
                let answer = try await anna.submit("/me/addresses/1/schedule", fields(day))
                #expect(
                    answer.status == 422 && answer.text.contains("Choose a day from tomorrow on"),
                    "\(day)")
            }
            #expect(
                anna.page.text.contains(
                    #"aria-invalid="true" autofocus><option value="">–</option><option value="1""#))
            try await anna.get("/me/addresses/1")
            #expect(try await anna.submit("/me/addresses/1/schedule", tomorrow).status == 303)
            #expect(try await anna.get("/me").text.contains("Turns off automatically on "))
            let chosen = try await anna.get("/me/addresses/1").text.matches(
                of: /value="([0-9]+)" selected/
            ).map { String($0.1) }
            #expect(chosen.prefix(3) == [next.day, next.month, next.year])
            try fixture.store.addresses.switchDue(now: fixture.now + 86_400)
            let text = try await anna.get("/me").text
            #expect(text.contains("Forwarding off") && !text.contains("by itself"))
            #expect(try await anna.submit("/me/addresses/1/schedule", ["day": ""]).status == 303)

            #expect(
                try await anna.get("/me/addresses/1/replace").text.contains(
                    "<code>\(old.wireForm)</code> stops working"))
            #expect(try await anna.submit("/me/addresses/1/replace").status == 303)
            let new = try #require(try fixture.store.addresses.current(account: 1)).address
            #expect(new != old)
            let shown = try await anna.get("/me/addresses/1").text
            #expect(
                shown.contains("This is your new address.") && shown.contains(new.wireForm)
                    && !shown.contains(old.wireForm))
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            for path in ["schedule", "replace"] {
                try await bob.get("/me")
                #expect(try await bob.submit("/me/addresses/1/\(path)", tomorrow).status == 404)
            }
            #expect(try fixture.store.addresses.current(account: 1)?.address == new)
        }
    }

    @Test func addressPage_refusedSender_isShownAndCanBeBlocked() async throws {
        try await signedIn { fixture, anna in
            #expect(
                try await anna.get("/me/addresses/1").text.contains("Nothing in the last 90 days."))
            for (domain, reply) in [
                ("spam.example", RefusalReply.unauthorizedSender),
                ("<b>.example", .unauthorizedSender),
                ("juice.example", .dkimFailed),
            ] {
                try fixture.store.add(refusals: [
                    RefusedForward(
                        at: fixture.now,
                        attribution: ForwardAttribution(
                            author: AddrSpec(localPart: "x", domain: domain),
                            account: try #require(AccountNumber(1)),
                            isRegistered: false),
                        reply: reply, reference: "r")
                ])
            }
            var text = try await anna.get("/me/addresses/1").text
            #expect(
                text.contains("The sender is not known to belong to The &lt;Juice&gt; Company<br>"))
            #expect(
                text.contains("spam.example</bdi>")
                    && text.contains("The sender could not prove who it is"))
            #expect(!text.contains("<b>.example"))
            // The typed text stays in its field after an error.
            let wrong = try await anna.submit("/me/addresses/1/block", ["sender": "other.example"])
            #expect(
                wrong.status == 422
                    && wrong.text.contains("Mail from there does not come to this address."))
            #expect(wrong.text.contains("value=\"other.example\""))
            #expect(
                try await anna.submit("/me/addresses/1/block", ["sender": "ads@juice.example"])
                    .status == 303)
            text = try await anna.get("/me/addresses/1").text
            #expect(
                text.contains("<code>ads@juice.example</code>")
                    && text.contains("Mail from there is refused from now on."))
            let data = try await anna.get("/me/data.json").text
            #expect(
                data.contains("ads@juice.example") && data.contains("\"sender_not_of_the_team\""))
            // No other user's.
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(
                try await bob.submit("/me/addresses/1/block", ["sender": "juice.example"]).status
                    == 404)
            try await bob.get("/me")
            #expect(
                try await bob.submit("/me/addresses/1/unblock", ["sender": "ads@juice.example"])
                    .status == 404)
            try await anna.get("/me/addresses/1")
            #expect(
                try await anna.submit("/me/addresses/1/unblock", ["sender": "ads@juice.example"])
                    .status == 303)
            #expect(
                try await !anna.get("/me/addresses/1").text.contains(
                    "<code>ads@juice.example</code>"))
        }
    }

    @Test func addressPage_usedByOthers_showsTheProofAndItsFile() async throws {
        try await signedIn { fixture, anna in
            #expect(try await !anna.get("/me/addresses/1").text.contains("Used by others"))
            #expect(try await anna.get("/me/addresses/1/others.json").status == 404)
            let account = try #require(AccountNumber(1))
            let address = try #require(
                try fixture.store.addresses.current(account: 1)?.address)
            for (domain, selector) in [("spam.example", "k1"), ("ads.example", "k2"), ("", "")] {
                let author = try #require(AddrSpec(envelope: "planted.person@spam.example"))
                try fixture.store.add(refusals: [
                    RefusedForward(
                        at: fixture.now,
                        attribution: ForwardAttribution(
                            author: author, account: account, isRegistered: false),
                        reply: .unauthorizedSender, reference: "r",
                        uses: [
                            UseByOthers(
                                account: account, address: address, author: author,
                                proof: UseByOthers.Proof(domain: domain, selector: selector))
                        ])
                ])
            }
            let list = try await anna.get("/me").text
            #expect(
                list.contains("<a href=\"/me/addresses/1#others\">Other senders in 30 days: 2</a>"))
            let text = try await anna.get("/me/addresses/1").text
            for part in [
                "Used by others</h2>",
                "Senders that are not of this team, in the last 30 days: 2",
                "<bdi>spam.example</bdi>", "key k1", "<bdi>ads.example</bdi>",
                "Messages without a proof of who sent them: 1",
                "We gave the address only to The &lt;Juice&gt; Company.",
                "href=\"/me/addresses/1/others.json\" download",
            ] { #expect(text.contains(part), "\(part)") }
            let answer = try await anna.get("/me/addresses/1/others.json")
            #expect(
                answer.header("Content-Disposition")
                    == "attachment; filename=\"used-by-others.json\"")
            let file = try #require(
                try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [String: Any])
            #expect(file["given_to"] as? String == "The <Juice> Company")
            let of = try #require((file["addresses"] as? [[String: Any]])?.first)
            #expect(
                of["address"] as? String == address.wireForm
                    && of["messages_without_proof"] as? Int == 1)
            let senders = try #require(of["senders"] as? [[String: Any]])
            #expect(
                senders.map { $0["public_key_at"] as? String } == [
                    "k2._domainkey.ads.example", "k1._domainkey.spam.example",
                ])
            #expect(
                try await anna.get("/me?state=used-by-others").text.contains(address.wireForm))
            let all = list + text + answer.text + (try await anna.get("/me/data.json").text)
            #expect(!all.contains("planted.person"))
            #expect(!answer.text.contains("home.example"))
            // No other user's.
            let bob = Browser(fixture)
            try await bob.signIn("bob")
            #expect(try await bob.get("/me/addresses/1/others.json").status == 404)
            // A month later nothing of it is shown.
            fixture.now += 30 * 86_400
            let later = Browser(fixture)
            try await later.signIn("anna")
            #expect(try await !later.get("/me/addresses/1").text.contains("Used by others"))
        }
    }

    @Test func addressPage_ownInboxChosen_notifiesTheOldOne() async throws {
        try await signedIn { fixture, anna in
            #expect(try await !anna.get("/me/addresses/1").text.contains("Inbox for this address"))
            let work = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("work@home.example"), isVerified: true,
                isReplyOnly: false, PortalFixture.change
            )
            try await anna.get("/me/addresses/1")
            try await anna.submit("/me/addresses/1/inbox", ["inbox": "\(work.number)"])
            let text = try await anna.get("/me/addresses/1").text
            #expect(text.contains("reaches <strong>work@home.example</strong>"))
            let mail = try fixture.mail("anna@home.example")
            #expect(
                mail.contains("one of your relay addresses goes to another")
                    && !mail.contains("Juice"))
            // Not another user's inbox, and not an unconfirmed one.
            let other = try fixture.store.inboxes.add(
                user: "anna", PortalFixture.inbox("later@home.example"), isVerified: false,
                isReplyOnly: false,
                PortalFixture.change)
            for number in ["\(other.number)", "99", "x", ""] {
                try await anna.get("/me/addresses/1")
                #expect(
                    try await anna.submit("/me/addresses/1/inbox", ["inbox": number]).status >= 400,
                    "\(number)")
            }
            try await anna.get("/me/addresses/1")
            try await anna.submit("/me/addresses/1/inbox", ["inbox": "default"])
            #expect(
                try await anna.get("/me/addresses/1").text.contains(
                    "reaches <strong>anna@home.example</strong>"))
        }
    }

    @Test func addressesPage_appWithAppearance_showsNameAndIcon() async throws {
        try await signedIn { fixture, anna in
            #expect(try await anna.get("/me/icons/com.juice.app").status == 404)
            let png = try AppIcon(png: Self.png(side: 64))
            try fixture.store.apps.setAppearance(
                team: "juice", clientID: "com.juice.app", name: "Juice for Android", icon: png,
                PortalFixture.change)
            let text = try await anna.get("/me").text
            #expect(text.contains("Juice for Android") && !text.contains(">com.juice.app"))
            #expect(text.contains("src=\"/me/icons/com.juice.app\""))
            let icon = try await anna.get("/me/icons/com.juice.app")
            #expect(icon.status == 200 && icon.header("Content-Type") == "image/png")
            #expect(
                icon.header("X-Content-Type-Options") == "nosniff"
                    || icon.header("Content-Security-Policy").contains("'none'"))
            try fixture.store.apps.setAppearance(
                team: "juice", clientID: "com.juice.app", name: "", icon: .some(nil),
                PortalFixture.change)
            #expect(try await anna.get("/me").text.contains("com.juice.app"))
            #expect(try await anna.get("/me/icons/com.juice.app").status == 404)
        }
    }

    @Test func appIcon_notASquarePNGOfAllowedSize_isRefused() throws {
        for wrong in [
            Array("GIF89a".utf8), Self.png(side: 63), Self.png(side: 1_025),
            Self.png(side: 64, height: 65),
            Array(Self.png(side: 64).dropLast()),
            Self.png(side: 64, padding: 200_000), [],
        ] {
            #expect(throws: (any Error).self) { try AppIcon(png: wrong) }
        }
        #expect(try AppIcon(png: Self.png(side: 64)).png.count > 40)
    }

    /// The head and the end of such a file; nothing here decodes the part between.
    static func png(side: Int, height: Int? = nil, padding: Int = 0) -> [UInt8] {
        func number(_ value: Int) -> [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        }
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + number(13) + Array("IHDR".utf8)
            + number(side)
            + number(height ?? side) + [8, 6, 0, 0, 0] + number(0)
            + Array(repeating: 0, count: padding) + number(0)
            + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]
    }

    @Test func page_signedIn_namesTheInbox() async throws {
        try await signedIn { fixture, anna in
            for path in [
                "/me", "/me/addresses/1", "/me/inboxes", "/me/security", "/me/data", "/me/delete",
            ] {
                let text = try await anna.get(path).text
                #expect(
                    text.contains("Signed in with </span><bdi>anna@home.example</bdi>"), "\(path)")
            }
            #expect(try await anna.get("/").location == "/me")
            #expect(try await Browser(fixture).get("/me").location == "/me/sign-in")
        }
    }
}
