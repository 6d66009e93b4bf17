// The users' page: links that work once, in one browser, for a limited time; sessions that end.

import Accounts
import InternetMessage
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct PortalRepositoryTests {
    private static let now = TestStore.now
    private static let limits = NoticeLimits(perInbox: 20, perUser: 20)

    private func link(
        _ test: TestStore, _ inbox: String = "anna@home.example", browser: String = "b1",
        at now: Int64 = now
    ) throws -> PageLink? {
        try test.store.page.signInLink(
            for: TestStore.inbox(inbox), browser: browser, limits: Self.limits, now: now)
    }

    private func session(_ test: TestStore, at now: Int64 = now) throws -> String {
        let link = try #require(try link(test, at: now))
        return try #require(
            try test.store.page.signIn(link: link.secret, browser: "b1", replacing: nil, now: now))
    }

    private func anna(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        try test.user("anna")
        return test
    }

    @Test(arguments: Engine.all) func signInLink_browserThatAskedForIt_signsInOnce(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        let link = try #require(try link(test))
        #expect(
            try test.store.page.state(of: link.secret, .signIn, browser: "b1", now: Self.now)
                == .good)
        #expect(
            try test.store.page.state(of: link.secret, .signIn, browser: "b2", now: Self.now)
                == .otherBrowser)
        #expect(
            try test.store.page.state(of: link.secret, .signIn, browser: nil, now: Self.now)
                == .otherBrowser)
        #expect(
            try test.store.page.state(of: link.secret, .deletion, browser: "b1", now: Self.now)
                == .gone)
        #expect(
            try test.store.page.signIn(
                link: link.secret, browser: "b2", replacing: nil, now: Self.now) == nil)
        let token = try #require(
            try test.store.page.signIn(
                link: link.secret, browser: "b1", replacing: nil, now: Self.now))
        #expect(try test.store.page.session(token, now: Self.now)?.userID == "anna")
        #expect(
            try test.store.page.signIn(
                link: link.secret, browser: "b1", replacing: nil, now: Self.now + 60) == nil)
        #expect(
            try test.store.page.state(of: link.secret, .signIn, browser: "b1", now: Self.now)
                == .gone)
    }

    @Test(arguments: Engine.all) func signInLink_expired_isGone(_ engine: Engine) throws {
        let test = try anna(engine)
        let link = try #require(try link(test))
        let late = Self.now + PageLifetime.link
        #expect(
            try test.store.page.state(of: link.secret, .signIn, browser: "b1", now: late) == .gone)
        #expect(
            try test.store.page.signIn(link: link.secret, browser: "b1", replacing: nil, now: late)
                == nil)
    }

    @Test(arguments: Engine.all) func signInLink_unverifiedOrReplyOnlyInbox_isNotMade(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        for (text, verified, replyOnly) in [
            ("new@home.example", false, false), ("alias@home.example", true, true),
        ] {
            _ = try test.store.inboxes.add(
                user: "anna", TestStore.inbox(text), isVerified: verified, isReplyOnly: replyOnly,
                TestStore.change)
            #expect(try link(test, text) == nil)
        }
        #expect(try link(test, "nobody@home.example") == nil)
        #expect(
            try link(test, "Anna+news@Home.Example")?.inbox == TestStore.inbox("anna@home.example"))
    }

    @Test(arguments: Engine.all) func session_manyOfOneUser_keepsNewest(_ engine: Engine) throws {
        let test = try anna(engine)
        try test.user("bob")
        let bobs = try #require(try link(test, "bob@home.example", browser: "b2"))
        let bob = try #require(
            try test.store.page.signIn(
                link: bobs.secret, browser: "b2", replacing: nil, now: Self.now))
        var sessions: [String] = []
        for number in 0..<22 {
            sessions.append(try session(test, at: Self.now + Int64(number) * 100_000))
        }
        let late = Self.now + 21 * 100_000
        func count(_ table: String) throws -> Int? {
            try test.database.value("SELECT COUNT(*) FROM \(raw: table)", Int.self)
        }
        #expect(try count("page_sessions") == 10 + 1 && count("page_sign_ins") == 20 + 1)
        #expect(try test.store.page.session(sessions[21], now: late)?.userID == "anna")
        #expect(try test.store.page.session(bob, now: Self.now)?.userID == "bob")
        #expect(
            try test.store.page.signIns(user: "anna", limit: 30).map(\.at).last == Self.now + 2
                * 100_000)
        let links = try (0..<6).map { try #require(try link(test, at: late + Int64($0))) }
        #expect(
            try test.store.page.state(of: links[0].secret, .signIn, browser: "b1", now: late + 6)
                == .gone)
        for link in links[1...] {
            #expect(
                try test.store.page.state(of: link.secret, .signIn, browser: "b1", now: late + 6)
                    == .good)
        }
    }

    @Test(arguments: Engine.all) func session_newSignInOfItsBrowser_ends(_ engine: Engine) throws {
        let test = try anna(engine)
        let old = try session(test)
        let link = try #require(try link(test))
        let new = try #require(
            try test.store.page.signIn(
                link: link.secret, browser: "b1", replacing: old, now: Self.now))
        #expect(new != old)
        #expect(try test.store.page.session(old, now: Self.now) == nil)
    }

    @Test(arguments: Engine.all) func session_idleOrTooOld_ends(_ engine: Engine) throws {
        let test = try anna(engine)
        let idle = try session(test)
        #expect(
            try test.store.page.session(idle, now: Self.now + SessionLifetime.standard.idle) == nil)
        let busy = try session(test)
        var time = Self.now
        while time < Self.now + SessionLifetime.standard.total - SessionLifetime.standard.idle {
            time += SessionLifetime.standard.idle - 100
            if time < Self.now + SessionLifetime.standard.total {
                #expect(try test.store.page.session(busy, now: time) != nil)
            }
        }
        #expect(
            try test.store.page.session(busy, now: Self.now + SessionLifetime.standard.total) == nil
        )
    }

    @Test func session_ofAnotherLifetime_endsThen() throws {
        let test = try anna(.sqlite)
        let token = try session(test)
        let short = Store(
            database: test.store.database, keys: test.store.keys, relayDomains: ["relay.example"],
            sessions: SessionLifetime(total: 3_600, idle: 300))
        #expect(try short.page.session(token, now: Self.now + 299) != nil)
        #expect(try short.page.session(token, now: Self.now + 300 + 299) == nil)
        // The end is set at the sign-in: a longer lifetime in a later configuration does not revive
        // it.
        let link = try #require(try link(test))
        let new = try #require(
            try short.page.signIn(link: link.secret, browser: "b1", replacing: nil, now: Self.now))
        for time in stride(from: Int64(0), to: 3_600, by: 250) {
            #expect(try short.page.session(new, now: Self.now + time) != nil)
        }
        #expect(try test.store.page.session(new, now: Self.now + 3_600) == nil)
    }

    @Test(arguments: Engine.all) func session_inboxOrUserRemoved_ends(_ engine: Engine) throws {
        let test = try anna(engine)
        let first = try session(test)
        try test.store.inboxes.remove(user: "anna", .number(1), TestStore.change)
        #expect(try test.store.page.session(first, now: Self.now) == nil)
        try test.user("bob")
        let link = try #require(try link(test, "bob@home.example"))
        let second = try #require(
            try test.store.page.signIn(
                link: link.secret, browser: "b1", replacing: nil, now: Self.now))
        try test.store.users.remove("bob", TestStore.change)
        #expect(try test.store.page.session(second, now: Self.now) == nil)
    }

    @Test(arguments: Engine.all) func signOut_everywhere_endsAllSessionsAndLinks(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        let (first, second) = (try session(test), try session(test))
        let open = try #require(try link(test))
        let one = try #require(try test.store.page.session(first, now: Self.now))
        try test.store.page.signOut(one, everywhere: true, now: Self.now)
        for token in [first, second] {
            #expect(try test.store.page.session(token, now: Self.now) == nil)
        }
        #expect(
            try test.store.page.signIn(
                link: open.secret, browser: "b1", replacing: nil, now: Self.now) == nil)
    }

    @Test(arguments: Engine.all) func deletionLink_otherUserOrBrowser_isRefused(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        try test.user("bob")
        let anna = try #require(try test.store.page.session(session(test), now: Self.now))
        let bobs = try #require(try link(test, "bob@home.example"))
        let bobToken = try #require(
            try test.store.page.signIn(
                link: bobs.secret, browser: "b1", replacing: nil, now: Self.now))
        let bob = try #require(try test.store.page.session(bobToken, now: Self.now))
        let link = try test.store.page.deletionLink(
            for: anna, browser: "b1", limits: Self.limits, now: Self.now)
        #expect(
            try test.store.page.signIn(
                link: link.secret, browser: "b1", replacing: nil, now: Self.now + 60) == nil)
        #expect(
            try !test.store.page.useDeletionLink(
                link.secret, session: bob, browser: "b1", now: Self.now))
        #expect(
            try !test.store.page.useDeletionLink(
                link.secret, session: anna, browser: "b2", now: Self.now))
        #expect(
            try test.store.page.useDeletionLink(
                link.secret, session: anna, browser: "b1", now: Self.now))
        #expect(
            try !test.store.page.useDeletionLink(
                link.secret, session: anna, browser: "b1", now: Self.now))
    }

    @Test(arguments: Engine.all) func signInLink_overLimitOfInbox_isRefused(_ engine: Engine) throws
    {
        let test = try anna(engine)
        let limits = NoticeLimits(perInbox: 2)
        for _ in 0..<2 {
            _ = try test.store.page.signInLink(
                for: TestStore.inbox("anna@home.example"), browser: "b", limits: limits,
                now: Self.now)
        }
        expectRefusal(.limit) {
            _ = try test.store.page.signInLink(
                for: TestStore.inbox("anna@home.example"), browser: "b", limits: limits,
                now: Self.now)
        }
    }
}

extension PageLink {
    /// The token for these tests; an invalid one if there is none.
    fileprivate var secret: String { token ?? "" }
}
