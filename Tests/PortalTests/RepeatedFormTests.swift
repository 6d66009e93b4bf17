// Buttons that are pressed twice, in browsers that send both.

import Accounts
import Database
import Foundation
import PosternPostgres
import PosternSQLite
import PostgresHarness
import SignIn
import StoreTesting
import TestSupport
import Testing

@testable import Portal

@Suite(.blocking) struct RepeatedFormTests {
    private func signedIn(_ body: (PortalFixture, Browser) async throws -> Void) async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.signIn("anna")
            try await body(fixture, anna)
        }
    }

    private func current(_ fixture: PortalFixture) throws -> String? {
        try fixture.store.addresses.addresses(user: "anna").first { $0.retiredAt == nil }?.address
            .wireForm
    }

    /// The address must be replaced only once.
    @Test func replace_pressedTwice_replacesOnceAndSaysSo() async throws {
        try await signedIn { fixture, anna in
            let token = try #require(
                try await anna.get("/me/addresses/1/replace").first(
                    /name="csrf" value="([a-z2-7]+)"/))
            let answers = try await [
                anna.submit("/me/addresses/1/replace", ["csrf": token], token: false),
                anna.submit("/me/addresses/1/replace", ["csrf": token], token: false),
            ]
            #expect(answers.map(\.location) == ["/me/addresses/1", "/me/addresses/1"])
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 2)
            #expect(
                try await anna.get("/me/addresses/1").text.contains("This is your new address."))
            // Ten seconds later it is intended.
            fixture.now += PortalRepository.repetition
            try await anna.submit("/me/addresses/1/replace", ["csrf": token], token: false)
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 3)
        }
    }

    @Test func replace_pressedTwiceAtOnce_replacesOnce() async throws {
        try await signedIn { fixture, anna in
            let token = try #require(
                try await anna.get("/me/addresses/1/replace").first(
                    /name="csrf" value="([a-z2-7]+)"/))
            let cookies = anna.cookies
            let places = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<5 {
                    group.addTask {
                        let press = Browser(fixture)
                        for (name, value) in cookies { press.take(name, value) }
                        return try await press.submit(
                            "/me/addresses/1/replace", ["csrf": token], token: false
                        ).location
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(places == Array(repeating: "/me/addresses/1", count: 5))
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 2)
        }
    }

    /// A load balancer sends the second press to the other host.
    @Test(arguments: [false, true]) func replace_pressedTwiceAtOnceOnTwoHosts_replacesOnce(
        onPostgreSQL: Bool
    ) async throws {
        var databases: [any Database] = []
        if onPostgreSQL {
            guard let server = PostgresServer.shared else {
                print("skipped: PostgreSQL is not installed")
                return
            }
            let schema = "portal_hosts_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
            databases = [
                try MigratedStore.postgres(schema: schema, on: server),
                try PostgresDatabase(url: server.url(of: schema)),
            ]
        }
        let fixture = try PortalFixture(database: databases.first)
        defer { fixture.stop() }
        let other = try PortalFixture(
            database: databases.last
                ?? SQLiteDatabase(
                    path: fixture.folder.appending(path: "postern.db").path, busyTimeout: 60),
            beside: fixture)
        defer { other.stop() }
        let anna = Browser(fixture)
        try await anna.signIn("anna")
        let cookies = anna.cookies
        func press(_ token: String) async throws -> [String?] {
            try await withThrowingTaskGroup(of: String?.self) { group in
                for host in [fixture, other, fixture, other] {
                    group.addTask {
                        let press = Browser(host)
                        for (name, value) in cookies { press.take(name, value) }
                        return try await press.submit(
                            "/me/addresses/1/replace", ["csrf": token], token: false
                        ).location
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }
        let token = try #require(
            try await anna.get("/me/addresses/1/replace").first(/name="csrf" value="([a-z2-7]+)"/))
        #expect(try await press(token) == Array(repeating: "/me/addresses/1", count: 4))
        #expect(try fixture.store.addresses.addresses(user: "anna").count == 2)
        // Ten seconds later it is intended, once.
        fixture.now += PortalRepository.repetition
        _ = try await press(token)
        #expect(try fixture.store.addresses.addresses(user: "anna").count == 3)
    }

    /// The outcome is only for this browser and these fields.
    @Test func form_ofAnotherBrowserOrWithAnotherField_isNoRepetition() async throws {
        try await signedIn { fixture, anna in
            let other = Browser(fixture)
            try await other.signIn("anna")
            let token = try #require(
                try await anna.get("/me/addresses/1/replace").first(
                    /name="csrf" value="([a-z2-7]+)"/))
            try await anna.submit("/me/addresses/1/replace", ["csrf": token], token: false)
            #expect(
                try await other.submit("/me/addresses/1/replace", ["csrf": token], token: false)
                    .status == 403)
            try await other.get("/me/addresses/1/replace")
            try await other.submit("/me/addresses/1/replace")
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 3)
            try await anna.submit(
                "/me/addresses/1/replace", ["csrf": token, "more": "x"], token: false)
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 4)
        }
    }

    @Test func form_afterSigningOut_isRefusedAsEver() async throws {
        try await signedIn { fixture, anna in
            let token = try #require(
                try await anna.get("/me/addresses/1/replace").first(
                    /name="csrf" value="([a-z2-7]+)"/))
            try await anna.submit("/me/addresses/1/replace", ["csrf": token], token: false)
            let session = anna.cookies["__Host-postern-session"]
            try await anna.get("/me")
            try await anna.submit("/me/sign-out")
            anna.take("__Host-postern-session", session)
            #expect(
                try await anna.submit("/me/addresses/1/replace", ["csrf": token], token: false)
                    .location == "/me/sign-in")
            #expect(try fixture.store.addresses.addresses(user: "anna").count == 2)
        }
    }

    /// A second message would make the code of the first invalid.
    @Test func code_askedForTwice_isSentOnce() async throws {
        try await PortalFixture.with { fixture in
            let anna = Browser(fixture)
            try await anna.get("/me/sign-in")
            let token = try #require(anna.page.first(/name="csrf" value="([a-z2-7]+)"/))
            for _ in 0..<3 {
                let sent = try await anna.submit(
                    "/me/sign-in", ["email": "anna@home.example", "csrf": token], token: false)
                #expect(sent.location == "/me/sent")
            }
            #expect(fixture.mailCount("anna@home.example") == 1)
            try await anna.follow()
            #expect(
                try await anna.submit("/me/sent", ["code": fixture.code("anna@home.example")])
                    .location == "/me")
        }
    }

    /// The second press must not say "You have added this inbox already".
    @Test func inbox_addedTwice_isAddedOnceAndItsCodeAskedFor() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/inboxes")
            let token = try #require(anna.page.first(/name="csrf" value="([a-z2-7]+)"/))
            for _ in 0..<2 {
                let answer = try await anna.submit(
                    "/me/inboxes", ["email": "new@home.example", "csrf": token], token: false)
                #expect(answer.status == 303 && answer.location == "/me/inboxes")
            }
            #expect(fixture.mailCount("new@home.example") == 1)
            let page = try await anna.get("/me/inboxes").text
            #expect(page.contains("A message is on its way.") && page.contains("Another inbox"))
            let code = try #require(page.firstRange(of: #"class="code""#))
            #expect(
                page[code.lowerBound...].prefix(400).contains("autofocus"), "where one types next")
        }
    }

    /// The stored data gives no access, and does not say who did what.
    @Test func marks_ofForms_keepNoTokenAndNoField() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/addresses/1")
            try await anna.submit(
                "/me/addresses/1/notes", ["name": "Quince", "note": "secret-word"])
            let rows = try fixture.store.database.rows("SELECT mark, outcome FROM page_repeats")
            #expect(!rows.isEmpty)
            for row in rows {
                let (mark, outcome): ([UInt8], String?) = try (row["mark"], row["outcome"])
                #expect(
                    mark.count == 32 && outcome?.contains("secret") != true
                        && outcome?.contains("Quince") != true)
                for cookie in anna.cookies.values where cookie.utf8.count > 20 {
                    #expect(outcome?.contains(cookie) != true)
                }
            }
            // The next form deletes them.
            fixture.now += PortalRepository.repetition
            try await anna.get("/me/addresses/1")
            try await anna.submit("/me/addresses/1/notes", ["name": "Quince"])
            let count: Int64? = try fixture.store.database.value(
                "SELECT COUNT(*) FROM page_repeats")
            #expect(count == 1)
        }
    }

    /// A form that failed because of the service may be sent again at once.
    @Test func form_thatFailed_isTakenAtTheSecondTry() throws {
        let fixture = try PortalFixture()
        defer { fixture.stop() }
        let page = fixture.store.page
        let mark = page.formMark(cookie: "c", path: "/me", body: [1])
        #expect(
            try page.beginForm(mark, now: 100) == .first
                && page.beginForm(mark, now: 100) == .underWay)
        try page.endForm(mark, nil)
        #expect(try page.turn(of: mark) == .first && page.beginForm(mark, now: 100) == .first)
        try page.endForm(mark, .led(to: "/me?search=a", telling: "off-1"))
        #expect(
            try page.beginForm(mark, now: 109)
                == .repeated(.led(to: "/me?search=a", telling: "off-1")))
        #expect(try page.beginForm(mark, now: 110) == .first)
    }

    @Test func note_typedInASessionThatHasEnded_isNotLost() async throws {
        try await signedIn { fixture, anna in
            try await anna.get("/me/addresses/1")
            let token = try #require(anna.page.first(/name="csrf" value="([a-z2-7]+)"/))
            fixture.now += 400 * 86_400
            let page = try await anna.submit(
                "/me/addresses/1/notes", ["name": "Shop", "note": "long <text>", "csrf": token],
                token: false)
            #expect(
                page.status == 403 && page.text.contains("long &lt;text&gt;</textarea>")
                    && page.text.contains("Shop</textarea>"))
            #expect(page.text.contains("href=\"/me/sign-in\""))
        }
    }
}
