// /v1/lists over HTTP: a team keeps its own lists, and sees no other team's lists.

import API
import Accounts
import CEL
import Decisions
import Foundation
import Logging
import TestSupport
import Testing

@Suite(.blocking) struct ListRoutesTests {
    private func fixture() throws -> (APIFixture, juice: String, other: String) {
        let fixture = try APIFixture { [ListRoutes($0.parts)] }
        _ = try fixture.store.teams.add(id: "other", name: "Other", APIFixture.change)
        return (fixture, try fixture.key("juice"), try fixture.key("other"))
    }

    @Test func list_createdAndFilled_belongsToItsTeamOnly() async throws {
        let (fixture, juice, other) = try fixture()
        let made = try await fixture.ask(
            .post, "/v1/lists", key: juice, body: #"{"name":"bad","kind":"range"}"#)
        #expect(made.status == 201, "\(made.text)")
        #expect(made.json["kind"].string == "range")
        #expect(
            try await fixture.ask(
                .post, "/v1/lists", key: juice, body: #"{"name":"bad","kind":"text"}"#
            ).status == 409)
        let added = try await fixture.ask(
            .post, "/v1/lists/bad/entries", key: juice,
            body:
                #"{"entries":[{"value":"198.51.100.7/24","reason":"farm"},{"value":"2001:db8::1","expires_at":"2099-01-01T00:00:00Z"}]}"#
        )
        #expect(added.status == 200, "\(added.text)")
        #expect(added.json["added"].number?.integer == 2)
        let page = try await fixture.ask(.get, "/v1/lists/bad/entries?limit=1", key: juice)
        #expect(page.text.contains("198.51.100.0/24"))
        let cursor = try #require(page.json["next_cursor"].string)
        let rest = try await fixture.ask(.get, "/v1/lists/bad/entries?cursor=\(cursor)", key: juice)
        #expect(rest.text.contains("2001:db8::1") && rest.text.contains("2099-01-01T00:00:00Z"))
        // A lookup a second later has it.
        let lists = ListsInForce(
            fixture.store.liveLists, now: fixture.now,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let number = try fixture.store.teams.team("juice").number
        #expect(
            lists.lists(team: number)?.contains(
                "198.51.100.9", in: LiveListName("bad", .range, isTeams: true)) == true)
        // Another team has no list of that name, and a cursor of one team is not valid for another.
        for path in ["/v1/lists/bad", "/v1/lists/bad/entries"] {
            #expect(try await fixture.ask(.get, path, key: other).status == 404)
        }
        #expect(
            try await fixture.ask(
                .post, "/v1/lists", key: other, body: #"{"name":"bad","kind":"text"}"#
            ).status == 201)
        #expect(
            try await fixture.ask(.get, "/v1/lists/bad/entries?cursor=\(cursor)", key: other).status
                == 400)
        let removed = try await fixture.ask(
            .post, "/v1/lists/bad/entries/remove", key: juice,
            body: #"{"values":["198.51.100.0/24","192.0.2.1"]}"#)
        #expect(removed.json["removed"].number?.integer == 1)
        #expect(removed.json["entries"].number?.integer == 1)
        #expect(try await fixture.ask(.delete, "/v1/lists/bad", key: juice).status == 204)
        #expect(try await fixture.ask(.delete, "/v1/lists/bad", key: juice).status == 404)
        #expect(try await fixture.ask(.get, "/v1/lists", key: juice).text == #"{"items":[]}"#)
        #expect(try await fixture.ask(.get, "/v1/lists", key: other).text.contains("bad"))
    }

    @Test func listEntries_replaced_changeAllOrNothing() async throws {
        let (fixture, juice, other) = try fixture()
        let change = APIFixture.change
        try fixture.store.liveLists.create(team: "juice", name: "bad", kind: .range, change)
        try fixture.store.liveLists.add(
            team: "juice", name: "bad", [LiveListEntry("198.51.100.0/24")], change)
        func values() throws -> [String] {
            try fixture.store.liveLists.entries(
                team: "juice", name: "bad", limit: 10_000, now: fixture.now
            ).map(\.value)
        }
        // More than one transaction of entries, with one that is refused at the end.
        let many = (0..<2_500).map { "{\"value\":\"2001:db8:\(String($0, radix: 16))::/48\"}" }
        let faulty =
            "{\"entries\":[\((many + ["{\"value\":\"no range\"}"]).joined(separator: ","))]}"
        #expect(
            try await fixture.ask(.put, "/v1/lists/bad/entries", key: juice, body: faulty).status
                == 422)
        #expect(try values() == ["198.51.100.0/24"])
        let rows: Int64? = try fixture.store.database.value(
            "SELECT COUNT(*) FROM live_list_entries")
        #expect(rows == 1, "nothing is written before everything was looked at")
        let whole = "{\"entries\":[\((many + many.prefix(3)).joined(separator: ","))]}"
        let answer = try await fixture.ask(.put, "/v1/lists/bad/entries", key: juice, body: whole)
        #expect(
            answer.status == 200 && answer.json["entries"].number?.integer == 2_500,
            "\(answer.text)")
        #expect(try values().count == 2_500)
        #expect(
            try await fixture.ask(.put, "/v1/lists/bad/entries", key: other, body: whole).status
                == 404)
        #expect(
            try await fixture.ask(
                .put, "/v1/lists/bad/entries", key: juice, body: #"{"entries":[]}"#
            ).status == 200)
        #expect(try values().isEmpty)
    }

    @Test(arguments: [
        ("/v1/lists", #"{"name":"9a","kind":"text"}"#, 422),
        ("/v1/lists", #"{"name":"a","kind":"regex"}"#, 422),
        ("/v1/lists", #"{"name":"a"}"#, 422),
        ("/v1/lists/bad/entries", #"{"entries":[{"value":"no range"}]}"#, 422),
        (
            "/v1/lists/bad/entries",
            #"{"entries":[{"value":"192.0.2.1","expires_at":"yesterday"}]}"#, 422
        ),
        (
            "/v1/lists/bad/entries",
            #"{"entries":[{"value":"192.0.2.1","expires_at":"2001-01-01T00:00:00Z"}]}"#, 422
        ),
        (
            "/v1/lists/bad/entries",
            #"{"entries":[{"value":"192.0.2.1","reason":"of jane@home.example"}]}"#, 422
        ),
        ("/v1/lists/none/entries", #"{"entries":[{"value":"192.0.2.1"}]}"#, 404),
        ("/v1/lists/bad/entries/remove", #"{"values":"192.0.2.1"}"#, 422),
    ])
    func list_invalidRequest_isRefused(_ path: String, _ body: String, _ status: Int) async throws {
        let (fixture, juice, _) = try fixture()
        try fixture.store.liveLists.create(
            team: "juice", name: "bad", kind: .range, APIFixture.change)
        let answer = try await fixture.ask(.post, path, key: juice, body: body)
        #expect(answer.status == status, "\(answer.text)")
        #expect(!answer.text.contains("jane@home.example"))
    }

    @Test func listEntries_moreThanAThousand_areRefused() async throws {
        let (fixture, juice, _) = try fixture()
        try fixture.store.liveLists.create(
            team: "juice", name: "long", kind: .text, APIFixture.change)
        func add(_ count: Int) async throws -> Int {
            let values = (0..<count).map {
                "{\"value\":\"\($0)-\(String(repeating: "é", count: 120))\"}"
            }
            return try await fixture.ask(
                .post, "/v1/lists/long/entries", key: juice,
                body: "{\"entries\":[\(values.joined(separator: ","))]}"
            ).status
        }
        #expect(try await add(1_000) == 200)
        #expect(try await add(1_001) == 409)
    }

    /// Values of a personal list are stored as keyed hashes: the listing does not reveal them.
    @Test func listEntries_personal_areNotReturned() async throws {
        let (fixture, juice, _) = try fixture()
        _ = try await fixture.ask(
            .post, "/v1/lists", key: juice, body: #"{"name":"people","kind":"personal"}"#)
        let added = try await fixture.ask(
            .post, "/v1/lists/people/entries", key: juice,
            body: #"{"entries":[{"value":"jane@home.example"}]}"#)
        #expect(added.json["added"].number?.integer == 1)
        #expect(
            try await !fixture.ask(.get, "/v1/lists/people/entries", key: juice).text.contains(
                "jane"))
    }
}
