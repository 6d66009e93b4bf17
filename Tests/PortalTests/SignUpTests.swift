// People who become users on the sign-in page, and people who do not.

import Accounts
import SignIn
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct SignUpTests {
    /// Requests a code: whether a message came, and the browser on the page for the code.
    private func ask(
        _ fixture: PortalFixture, _ inbox: String, _ browser: Browser? = nil
    ) async throws -> (Browser, sent: Int) {
        let browser = browser ?? Browser(fixture)
        // Mail goes to the domain as it is looked up.
        let mailbox = inbox.replacing("@WORK", with: "@work")
        let before = fixture.mailCount(mailbox)
        try await browser.get("/me/sign-in")
        try await browser.submit("/me/sign-in", ["email": inbox])
        try await browser.follow()
        return (browser, fixture.mailCount(mailbox) - before)
    }

    @Test func signUp_open_createsUserByCode() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            let (eve, sent) = try await ask(fixture, "Eve@new.example")
            #expect(sent == 1)
            let code = try fixture.code("Eve@new.example")
            #expect(try await eve.submit("/me/sent", ["code": code]).location == "/me")
            #expect(try await eve.get("/me").text.contains("No addresses yet"))
            #expect(try await eve.get("/me/inboxes").text.contains("Eve@new.example"))
            // Once; the next time they are known.
            let users = try fixture.store.users.all().count
            let (again, _) = try await ask(fixture, "eve@new.example")
            try await again.submit("/me/sent", ["code": try fixture.code("Eve@new.example")])
            #expect(try await again.get("/me").status == 200)
            #expect(try fixture.store.users.all().count == users && users == 3)
        }
    }

    @Test func signUp_notAllowed_sendsNothingAndLooksAlike() async throws {
        for (rules, inbox) in [
            (SignUpRules.closed, "eve@new.example"), (SignUpRules(.invited), "eve@new.example"),
            (SignUpRules(.open, domains: ["work.example"]), "eve@sub.work.example"),
        ] {
            try await PortalFixture.with(signUp: rules) { fixture in
                let (stranger, sent) = try await ask(fixture, inbox)
                let (known, _) = try await ask(fixture, "anna@home.example")
                #expect(sent == 0)
                let pages = [stranger.page, known.page].map {
                    // The typed text.
                    $0.text.replacing(/value="[a-z2-7]+"/, with: "").replacing(
                        /<strong>[a-z.]+@[a-z.]+<\/strong>/, with: "")
                }
                #expect(pages[0] == pages[1])
                #expect(try fixture.store.users.all().count == 2)
            }
        }
    }

    @Test func signUp_allowedDomain_createsUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open, domains: ["work.example"])) {
            fixture in
            let (eve, sent) = try await ask(fixture, "eve@WORK.example")
            #expect(sent == 1)
            try await eve.submit("/me/sent", ["code": try fixture.code("eve@work.example")])
            #expect(try await eve.get("/me").status == 200)
        }
    }

    @Test func signUp_invitedUser_verifiesInbox() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.invited)) { fixture in
            _ = try fixture.store.users.add(
                id: "carl", name: "Carl", inbox: try PortalFixture.inbox("carl@home.example"),
                isVerified: false,
                PortalFixture.change)
            let (carl, sent) = try await ask(fixture, "carl@home.example")
            #expect(sent == 1)
            try await carl.submit("/me/sent", ["code": try fixture.code("carl@home.example")])
            #expect(try await carl.get("/me").status == 200)
            #expect(try fixture.store.inboxes.inboxes(user: "carl").map(\.isVerified) == [true])
        }
    }

    /// Otherwise a user who adds a stranger's address would make the stranger sign in to that
    /// user's account.
    @Test func signUp_inboxAddedByOtherUser_createsOwnUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            _ = try fixture.store.inboxes.add(
                user: "bob", try PortalFixture.inbox("eve@new.example"), isVerified: false,
                isReplyOnly: false,
                PortalFixture.change)
            let (eve, _) = try await ask(fixture, "eve@new.example")
            try await eve.submit("/me/sent", ["code": try fixture.code("eve@new.example")])
            #expect(try await eve.get("/me").text.contains("No addresses yet"))
            #expect(
                try fixture.store.inboxes.inboxes(user: "bob").map(\.isVerified) == [true, false])
        }
    }

    @Test func signUp_codeOfAnotherInbox_isRefused() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            // The cookie of the victim's address, with the attacker's own code.
            let (mallory, _) = try await ask(fixture, "victim@new.example")
            let planted = mallory.cookies["__Host-postern-sign-up"]
            _ = try await ask(fixture, "mallory@new.example", mallory)
            mallory.take("__Host-postern-sign-up", planted)
            #expect(
                try await mallory.submit(
                    "/me/sent", ["code": try fixture.code("mallory@new.example")]
                ).status == 422)
            // None without the cookie, or with that of another browser.
            let (other, _) = try await ask(fixture, "third@new.example")
            other.take("__Host-postern-sign-up", planted)
            #expect(
                try await other.submit("/me/sent", ["code": try fixture.code("third@new.example")])
                    .status == 422)
            #expect(try fixture.store.users.all().count == 2)
        }
    }

    @Test func signUp_wrongCodes_areCountedPerInboxAndDay() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            for _ in 0..<2 {
                let (mallory, sent) = try await ask(fixture, "victim@new.example")
                #expect(sent == 1)
                for _ in 0..<SignInCodeLimits.tries {
                    fixture.now += 10
                    #expect(try await mallory.submit("/me/sent", ["code": "000 000"]).status == 422)
                }
            }
            // Then the message has only the link.
            #expect(try await ask(fixture, "victim@new.example").sent == 1)
            #expect(
                try fixture.mail("victim@new.example").firstMatch(of: /[0-9]{3} [0-9]{3}/) == nil)
            _ = try fixture.link("victim@new.example")
            fixture.now += 86_401
            #expect(try await ask(fixture, "victim@new.example").sent == 1)
            _ = try fixture.code("victim@new.example")
        }
    }

    @Test func signUp_twoCodesOfOneInbox_createOneUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            let (first, _) = try await ask(fixture, "eve@new.example")
            let code = try fixture.code("eve@new.example")
            let (second, _) = try await ask(fixture, "eve@new.example")
            try await second.submit("/me/sent", ["code": try fixture.code("eve@new.example")])
            try await first.submit("/me/sent", ["code": code])
            #expect(try await first.get("/me").status == 200)
            #expect(try fixture.store.users.all().count == 3)
        }
    }

    /// The second code must not make a second user for one mailbox.
    @Test func signUp_twoSpellingsOfInbox_createOneUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            let (first, _) = try await ask(fixture, "eve.new@gmail.com")
            let (second, _) = try await ask(fixture, "evenew@gmail.com")
            try await second.submit("/me/sent", ["code": try fixture.code("evenew@gmail.com")])
            #expect(
                try await first.submit("/me/sent", ["code": try fixture.code("eve.new@gmail.com")])
                    .status == 422)
            // The next request leads to the existing user.
            let sent = fixture.mailCount("evenew@gmail.com")
            fixture.now += PortalRepository.repetition
            _ = try await ask(fixture, "eve.new@gmail.com", first)
            #expect(fixture.mailCount("evenew@gmail.com") == sent + 1)
            #expect(try fixture.store.users.all().count == 3)
        }
    }

    /// Codes for strangers must not use up the messages that users need.
    @Test func signInMessage_strangersLimitReached_reachesUsers() async throws {
        let limits = NoticeLimits(perInbox: 50, perUser: 100, perInstallation: 2, toStrangers: 2)
        try await PortalFixture.with(limits: limits, signUp: SignUpRules(.open)) { fixture in
            for (inbox, expected) in [
                ("a@new.example", 1), ("b@new.example", 1), ("c@new.example", 0),
                ("anna@home.example", 1),
                ("bob@home.example", 1), ("bob@home.example", 0),
            ] {
                let (_, sent) = try await ask(fixture, inbox)
                #expect(sent == expected, "\(inbox)")
            }
            fixture.now += 3_601
            let (_, later) = try await ask(fixture, "c@new.example")
            #expect(later == 1)
        }
    }

    private func form(
        _ fixture: PortalFixture, _ inbox: String, from network: String
    ) async throws -> Response {
        let browser = Browser(fixture)
        try await browser.get("/me/sign-in")
        return try await browser.submit(
            "/me/sign-in", ["email": inbox],
            headers: ["Origin": PortalFixture.url, "X-Forwarded-For": network])
    }

    /// 60 networks must not use up the hour's messages to strangers.
    @Test func messagesToStrangers_askedForByAFewNetworks_areNotUsedUp() async throws {
        let limits = NoticeLimits(perInbox: 50, perUser: 100, toStrangers: 40)
        try await PortalFixture.with(limits: limits, signUp: SignUpRules(.open)) { fixture in
            for number in 0..<60 {
                let answer = try await form(
                    fixture, "a\(number)@d\(number).example", from: "192.0.2.\(number % 6)")
                #expect(answer.location == "/me/sent")
            }
            fixture.queue.drain()
            let used: Int64? = try fixture.store.database.value("SELECT COUNT(*) FROM notices")
            #expect(
                used == 20,
                "half of them for whoever asks first, and then two for a network: each had three")
            _ = try await form(fixture, "eve@new.example", from: "198.51.100.1")
            #expect(fixture.mailCount("eve@new.example") == 1)
        }
    }

    @Test func messagesToStrangers_ofOneDomain_leaveRoomForOthers() async throws {
        let limits = NoticeLimits(perInbox: 50, perUser: 100, toStrangers: 40)
        try await PortalFixture.with(limits: limits, signUp: SignUpRules(.open)) { fixture in
            for number in 0..<60 {
                _ = try await form(fixture, "a\(number)@new.example", from: "192.0.2.\(number)")
            }
            fixture.queue.drain()
            #expect(try fixture.store.database.value("SELECT COUNT(*) FROM notices") == 20)
            for network in 0..<20 {
                _ = try await form(
                    fixture, "b\(network)@other.example", from: "198.51.100.\(network)")
            }
            fixture.queue.drain()
            #expect(
                try fixture.store.database.value("SELECT COUNT(*) FROM notices") == 30,
                "a quarter of them for a domain")
        }
    }

    @Test func linkOfAStranger_openedInTheBrowserThatAsked_makesAUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            let (eve, _) = try await ask(fixture, "eve@new.example")
            let link = try fixture.link("eve@new.example")
            let other = Browser(fixture)
            try await other.get("/me/sign-in")
            #expect(try await other.get(link).status == 403)
            for _ in 0..<2 { #expect(try await eve.get(link).status == 200) }
            #expect(try await eve.submit(link).location == "/me")
            #expect(try await eve.get("/me").text.contains("No addresses yet"))
            #expect(try fixture.store.users.all().count == 3)
            eve.take("__Host-postern-session", nil)
            #expect(try await eve.get(link).status == 410)
        }
    }

    @Test func signUp_relayAddress_createsNoUser() async throws {
        try await PortalFixture.with(signUp: SignUpRules(.open)) { fixture in
            let (eve, _) = try await ask(fixture, "abc@relay.example")
            if fixture.mailCount("abc@relay.example") > 0 {
                try await eve.submit("/me/sent", ["code": try fixture.code("abc@relay.example")])
            }
            #expect(try fixture.store.users.all().count == 2)
            #expect(fixture.mailCount("abc@relay.example") == 0)
        }
    }
}
