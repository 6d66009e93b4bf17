// The common behaviour of all routes: keys, scopes, rates, bodies, ids, problems.

import Accounts
import Database
import HTTP
import HTTPTypes
import Hummingbird
import TestSupport
import Testing

/// Routes for these tests only.
private struct ProbeRoutes: RouteModule {
    struct Order: Decodable {
        struct Item: Decodable {
            let itemName: String
            let count: Int
        }
        let shippingNote: String?
        let items: [Item]
        let labels: [String: String]?
    }
    struct Secret: Error { let text = "jane@home.example" }

    func addRoutes(to routes: Routes) {
        routes.team(.sourcesRead).get("/v1/own") { _, context -> Hummingbird.Response in
            try .json(["team": context.caller.id])
        }
        routes.operator(.usersRead).get("/v1/all") { _, _ in Hummingbird.Response.empty }
        routes.open.get("/v1/things/{id}") { request, context -> Hummingbird.Response in
            _ = try request.query(["limit"])
            return try .json(["id": try context.pathParameter("id")])
        }
        routes.open.post("/v1/orders") { request, context -> Hummingbird.Response in
            let order = try await request.decode(Order.self, context)
            return try .json(["count": order.items.map(\.count).reduce(0, +)])
        }
        routes.open.get("/v1/fault") { _, _ -> Hummingbird.Response in throw Secret() }
        routes.open.get("/v1/away") { _, _ -> Hummingbird.Response in
            throw StoreFailure.temporary(.busy, "locked")
        }
    }
}

@Suite(.blocking) struct RequestHandlingTests {
    private func fixture(
        requestsPerSecond: Int = 100_000, bodyLimit: Int = 65_536
    ) throws -> APIFixture {
        try APIFixture(requestsPerSecond: requestsPerSecond, bodyLimit: bodyLimit) { _ in
            [ProbeRoutes()]
        }
    }

    @Test func apiKey_revoked_isRefused() async throws {
        let fixture = try fixture()
        let key = try fixture.key("juice", [.sourcesRead])
        let answer = try await fixture.ask(.get, "/v1/own", key: key)
        #expect(answer.status == 200)
        #expect(answer.json["team"] == .string("juice"))
        let id = try #require(try fixture.store.apiKeys.keys().first?.id)
        _ = try fixture.store.apiKeys.revoke(id, APIFixture.change)
        try fixture.keys.refresh()
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 401)
    }

    /// A new key works at once, not only from the next second on.
    @Test func apiKey_justIssued_isAccepted() async throws {
        let fixture = try fixture()
        func issue() throws -> String {
            try fixture.store.apiKeys.issue(
                team: "juice", scopes: [.sourcesRead], expiresAt: nil, note: "", APIFixture.change
            )
            .text
            .revealed
        }
        #expect(try await fixture.ask(.get, "/v1/own", key: try issue()).status == 200)
        // A client that tries keys must not make the store busy: beyond twenty at once, a new key
        // waits for the next refresh.
        for _ in 0..<20 {
            #expect(
                try await fixture.ask(.get, "/v1/own", key: try APIKeyText.random().revealed).status
                    == 401)
        }
        let late = try issue()
        #expect(try await fixture.ask(.get, "/v1/own", key: late).status == 401)
        fixture.wait(seconds: 1)
        #expect(try await fixture.ask(.get, "/v1/own", key: late).status == 200)
    }

    @Test(arguments: ["", "x", "pk_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "pk_", "ключ"])
    func apiKey_wrong_isRefusedWithChallenge(_ key: String) async throws {
        let answer = try await fixture().ask(.get, "/v1/own", key: key)
        #expect(answer.status == 401)
        #expect(answer.problem == "unauthorized")
        #expect(answer.headers[.wwwAuthenticate]?.hasPrefix("Bearer") == true)
    }

    @Test func apiKey_oneCharacterChanged_isRefused() async throws {
        let fixture = try fixture()
        let key = try fixture.key("juice", [.sourcesRead])
        for position in [4, 20, key.count - 1] {
            var characters = Array(key)
            characters[position] = characters[position] == "a" ? "b" : "a"
            #expect(try await fixture.ask(.get, "/v1/own", key: String(characters)).status == 401)
        }
        #expect(try await fixture.ask(.get, "/v1/own").status == 401)
        #expect(
            try await fixture.ask(.get, "/v1/own", headers: ["Authorization": "Basic \(key)"])
                .status == 401)
    }

    @Test func apiKey_expired_isRefusedWithReason() async throws {
        let fixture = try fixture()
        let key = try fixture.key("juice", [.sourcesRead], expiresAt: APIFixture.start + 60)
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200)
        fixture.wait(seconds: 60)
        let answer = try await fixture.ask(.get, "/v1/own", key: key)
        #expect(answer.status == 401)
        #expect(answer.text.contains("expired"))
    }

    @Test func apiKey_wrongScopeOrKind_is403() async throws {
        let fixture = try fixture()
        #expect(
            try await fixture.ask(.get, "/v1/own", key: fixture.key("juice", [.addressesRead]))
                .status == 403)
        #expect(try await fixture.ask(.get, "/v1/own", key: fixture.key(nil)).status == 403)
        #expect(try await fixture.ask(.get, "/v1/all", key: fixture.key("juice")).status == 403)
        #expect(try await fixture.ask(.get, "/v1/all", key: fixture.key(nil)).status == 204)
    }

    @Test func apiKey_rotated_worksUntilOverlapEnds() async throws {
        let fixture = try fixture()
        let old = try fixture.key("juice", [.sourcesRead])
        let id = try #require(try fixture.store.apiKeys.keys().first?.id)
        let new = try fixture.store.apiKeys.rotate(
            id, overlap: 3600, expiresAt: nil, APIFixture.change
        ).text.revealed
        try fixture.keys.refresh()
        for key in [old, new] {
            #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200)
        }
        fixture.wait(seconds: 3600)
        #expect(try await fixture.ask(.get, "/v1/own", key: old).status == 401)
        #expect(try await fixture.ask(.get, "/v1/own", key: new).status == 200)
    }

    @Test func apiKey_storeClosed_isStillChecked() async throws {
        let fixture = try fixture()
        let key = try fixture.key("juice", [.sourcesRead])
        try fixture.store.database.close()
        #expect(throws: (any Error).self) { try fixture.keys.refresh() }
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200)
        #expect(
            try await fixture.ask(
                .get, "/v1/own", key: String(key.dropLast()) + (key.hasSuffix("a") ? "b" : "a")
            ).status == 401)
    }

    @Test func apiKey_teamRemoved_isRefused() async throws {
        let fixture = try fixture()
        let key = try fixture.key("soda", [.sourcesRead])
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200)
        try fixture.store.teams.remove("soda", APIFixture.change)
        #expect(try fixture.keys.refresh())
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 401)
    }

    @Test func apiKey_overItsRate_is429WithRetryAfter() async throws {
        let fixture = try fixture(requestsPerSecond: 1)
        let (key, other) = (
            try fixture.key("juice", [.sourcesRead]), try fixture.key("soda", [.sourcesRead])
        )
        for _ in 0..<2 { #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200) }
        let answer = try await fixture.ask(.get, "/v1/own", key: key)
        #expect(answer.status == 429)
        #expect(answer.problem == "too-many-requests")
        #expect(answer.headers[.retryAfter] == "1")
        #expect(try await fixture.ask(.get, "/v1/own", key: other).status == 200)
        fixture.wait(seconds: 1)
        #expect(try await fixture.ask(.get, "/v1/own", key: key).status == 200)
    }

    @Test func route_missingOrWrongMethod_is404Or405() async throws {
        let fixture = try fixture()
        let missing = try await fixture.ask(.get, "/v1/nothing")
        #expect(missing.status == 404)
        #expect(missing.problem == "not-found")
        let wrong = try await fixture.ask(.delete, "/v1/orders")
        #expect(wrong.status == 405)
        #expect(wrong.headers[.allow] == "POST")
        #expect(try await fixture.ask(.head, "/v1/orders").body.isEmpty)
    }

    @Test func requestID_given_isKeptOnlyIfHarmless() async throws {
        let fixture = try fixture()
        func id(_ given: String) async throws -> String? {
            try await fixture.ask(.get, "/v1/things/a", headers: ["X-Request-Id": given]).headers[
                try #require(HTTPField.Name("X-Request-Id"))]
        }
        #expect(try await id("abc-1.2_3") == "abc-1.2_3")
        for harmful in ["jane@home.example", "a b", String(repeating: "a", count: 65), "<script>"] {
            let taken = try #require(try await id(harmful))
            #expect(taken.count == 16 && taken != harmful)
        }
    }

    @Test func problem_faultOrStoreAway_is500Or503WithoutDetails() async throws {
        let fixture = try fixture()
        let fault = try await fixture.ask(.get, "/v1/fault")
        #expect(fault.status == 500)
        #expect(fault.problem == "fault")
        #expect(!fault.text.contains("home.example"))
        #expect(!fixture.log.lines.joined().contains("home.example"))
        let away = try await fixture.ask(.get, "/v1/away")
        #expect(away.status == 503)
        #expect(away.headers[.retryAfter] == "5")
    }

    @Test func log_ofRequests_holdsNoPathsQueriesOrKeys() async throws {
        let fixture = try fixture()
        let key = try fixture.key("juice", [.sourcesRead])
        _ = try await fixture.ask(.get, "/v1/own", key: key)
        _ = try await fixture.ask(.get, "/v1/things/jane@home.example?limit=jane@home.example")
        _ = try await fixture.ask(.get, "/jane@home.example")
        let log = fixture.log.lines.joined(separator: "\n")
        #expect(log.contains("route=/v1/things/{id} status=200"))
        #expect(log.contains("team=juice"))
        #expect(!log.contains("home.example"))
        #expect(!log.contains(key))
    }

    static let bodies: [(body: String, status: Int, says: String)] = [
        (#"{"items":[{"item_name":"a","count":2},{"item_name":"b","count":3}]}"#, 200, "5"),
        (#"{"items":[],"labels":{"anyThing":"x"}}"#, 200, "0"),
        ("", 400, "a JSON body is required"),
        ("{", 400, "octet 1"),
        (#"{"items":[]} x"#, 400, "text after the value"),
        (#"{"items":[],"items":[]}"#, 400, "twice"),
        (#"{"items":[],"surprise":1}"#, 422, #""pointer":"/surprise""#),
        (#"{"items":[{"item_name":"a","count":2,"x":1}]}"#, 422, #""pointer":"/items/0/x""#),
        (#"{"items":[{"item_name":"a","count":"2"}]}"#, 422, #""pointer":"/items/0/count""#),
        (#"{"items":[{"item_name":"a","count":2.5}]}"#, 422, "must be a whole number"),
        (#"{"items":[{"count":2}]}"#, 422, #""pointer":"/items/0/item_name""#),
        (#"{"items":{}}"#, 422, "must be an array"),
        ("[]", 422, "must be an object"),
        (String(repeating: "[", count: 40), 400, "not valid JSON"),
        (#"{"items":[],"shipping_note":"\ud800"}"#, 400, "surrogate"),
        (#"{"items":[],"shipping_note":"\#u{1}"}"#, 400, "not valid JSON"),
        (#"{"items":[{"item_name":"a","count":1e999}]}"#, 422, "must be a whole number"),
    ]

    @Test(arguments: bodies) func requestBody_json_isReadStrictly(
        _ body: String, _ status: Int, _ says: String
    ) async throws {
        let answer = try await fixture().ask(.post, "/v1/orders", body: body)
        #expect(answer.status == status, "\(answer.text)")
        #expect(answer.text.contains(says), "\(answer.text)")
    }

    @Test func requestBody_tooLargeOrOtherType_isRefused() async throws {
        let fixture = try fixture(bodyLimit: 100)
        let large = try await fixture.ask(
            .post, "/v1/orders", body: #"{"items":[]}"# + String(repeating: " ", count: 100))
        #expect(large.status == 413)
        #expect(large.problem == "too-large")
        let other = try await fixture.ask(
            .post, "/v1/orders", body: #"{"items":[]}"#, headers: ["Content-Type": "text/plain"])
        #expect(other.status == 415)
        let latin = try await fixture.ask(
            .post, "/v1/orders", body: #"{"items":[]}"#,
            headers: ["Content-Type": "application/json; charset=latin1"])
        #expect(latin.status == 415)
    }

    @Test func query_unknownOrRepeatedParameter_isRefused() async throws {
        let fixture = try fixture()
        #expect(try await fixture.ask(.get, "/v1/things/a?limit=3").status == 200)
        for query in ["limt=3", "limit=1&limit=2", "limit=%ff"] {
            #expect(try await fixture.ask(.get, "/v1/things/a?\(query)").status == 400)
        }
        #expect(try await fixture.ask(.get, "/v1/things/a%20b").json["id"] == .string("a b"))
    }

    @Test func cursor_ofAnotherListing_isRefused() throws {
        let cursors = Cursors(key: [1, 2, 3])
        let cursor = cursors.cursor(after: "x7k2", of: "accounts team:juice")
        #expect(try cursors.position(cursor, of: "accounts team:juice") == "x7k2")
        #expect(throws: Problem.self) { try cursors.position(cursor, of: "accounts team:soda") }
        #expect(throws: Problem.self) {
            try Cursors(key: [1]).position(cursor, of: "accounts team:juice")
        }
        for broken in [
            "", "a", String(cursor.dropLast()), cursor + "A", "é",
            String(repeating: "A", count: 5000),
        ] {
            #expect(throws: Problem.self) {
                try cursors.position(broken, of: "accounts team:juice")
            }
        }
    }
}
