// The answer of each route.

import Accounts
import Foundation
import HTTPTypes
import InternetMessage
import RelayCore
import Support
import TestSupport
import Testing

@Suite(.blocking) struct RouteTests {
    let serving: ServingFixture
    var fixture: APIFixture { serving.fixture }
    let juice: String
    let soda: String
    let boss: String

    init() throws {
        serving = try ServingFixture()
        juice = try serving.fixture.key("juice")
        soda = try serving.fixture.key("soda")
        boss = try serving.fixture.key(nil)
    }

    private func lookup(
        _ address: String, from: String? = nil, key: String? = nil
    ) async throws -> Response {
        let from = from.map { ",\"from\":\"\($0)\"" } ?? ""
        return try await fixture.ask(
            .post, "/v1/addresses/lookup", key: key ?? juice,
            body: "{\"address\":\"\(address)\"\(from)}")
    }

    @Test func addressLookup_ownAddress_saysWhetherWritable() async throws {
        let address = try fixture.address(user: "jane", team: "juice").address
        let free = try await lookup(address.wireForm)
        #expect(free.json["can_write"] == .bool(true))
        #expect(free.json["account"]["messages_left_today"] == .integer(100))
        #expect(try await lookup(address.wireForm.uppercased()).json["is_known"] == .bool(true))
        #expect(
            try await lookup(address.wireForm, from: "a@juice.example").json["reasons"]
                == .array([.string("unregistered-source")]))
        _ = try fixture.store.sources.add(
            team: "juice",
            try fixture.store.sources.checked(
                "juice.example", envelopeDomain: nil, now: APIFixture.start),
            APIFixture.change)
        #expect(
            try await lookup(address.wireForm, from: "a@sub.juice.example").json["can_write"]
                == .bool(true))
        try fixture.store.addresses.setForwarding(address, on: false, APIFixture.change)
        #expect(
            try await lookup(address.wireForm).json["reasons"]
                == .array([.string("forwarding-off")]))
        try fixture.store.addresses.retire(address, APIFixture.change)
        #expect(
            try await lookup(address.wireForm).json["reasons"].items.first
                == .string("address-retired"))
    }

    @Test func complaints_ofTeam_areCountedByDay() async throws {
        let today = Day.number(fixture.now)
        for (user, days) in [("jane", [0, 0, 29]), ("june", [0, 30])] {
            if user != "jane" {
                _ = try fixture.store.users.add(
                    id: user, name: nil,
                    inbox: InboxAddress(try AddrSpec.typed("\(user)@home.example")),
                    isVerified: true,
                    APIFixture.change)
            }
            let account = try fixture.address(user: user, team: "juice").account.number
            for (mark, day) in days.enumerated() {
                _ = try fixture.store.complaints.record(
                    account: account, mark: [UInt8(mark)], provider: nil,
                    day: today - Int64(day), now: fixture.now
                )
            }
        }
        let items = try await fixture.ask(.get, "/v1/complaints", key: juice).json["items"].items
        #expect(items.map { $0["complaints"] } == [.integer(3), .integer(1)])
        #expect(items.map { $0["accounts"] } == [.integer(2), .integer(1)])
        #expect(items.first?["day"].string == Timestamp(today * 86_400).text)
        #expect(
            try await fixture.ask(.get, "/v1/complaints", key: soda).json["items"].items.isEmpty)
        #expect(try await fixture.ask(.get, "/v1/complaints?days=3", key: juice).status == 400)
        #expect(try await fixture.ask(.get, "/v1/complaints", key: boss).status == 403)
    }

    @Test func addressLookup_dailyLimitAndUnverifiedInbox_namesReasons() async throws {
        _ = try fixture.store.users.add(
            id: "new", name: nil, inbox: InboxAddress(try AddrSpec.typed("new@home.example")),
            isVerified: false,
            APIFixture.change)
        let address = try fixture.address(user: "new", team: "juice")
        for _ in 0..<100 {
            _ = try fixture.store.counters.reserve(
                account: address.account.number, kind: .forwarded, day: Day.number(fixture.now),
                limit: 100)
        }
        let found = try await lookup(address.address.wireForm)
        #expect(
            found.json["reasons"] == .array([.string("inbox-unverified"), .string("daily-limit")]))
        #expect(found.json["account"]["messages_left_today"] == .integer(0))
    }

    @Test func addressLookup_ofAnotherTeam_looksUnknown() async throws {
        let address = try fixture.address(user: "jane", team: "juice").address.wireForm
        let foreign = try await lookup(address, key: soda)
        let unknown = try await lookup("aaaaaaaaaa@relay.example", key: soda)
        #expect(foreign.status == unknown.status)
        #expect(foreign.text == unknown.text.replacing("aaaaaaaaaa@relay.example", with: address))
        #expect(foreign.headers.map(\.name) == unknown.headers.map(\.name))
    }

    @Test func rejections_ofTeamsSources_areCountedByReason() async throws {
        for team in ["juice", "soda"] {
            _ = try fixture.store.sources.add(
                team: team,
                try fixture.store.sources.checked(
                    "\(team).example", envelopeDomain: nil, now: APIFixture.start),
                APIFixture.change)
        }
        let account = try fixture.address(user: "jane", team: "juice").account.number
        func refuse(_ author: String, _ reply: RefusalReply, at: Int64) throws {
            try fixture.store.rejections.add([
                RefusedForward(
                    at: at,
                    attribution: ForwardAttribution(
                        author: try AddrSpec.typed(author),
                        account: try #require(AccountNumber(UInt64(account))),
                        isRegistered: true),
                    reply: reply, reference: "abcdefgh")
            ])
        }
        try refuse("billing@mail.juice.example", .proofFailed, at: APIFixture.start)
        try refuse("other@juice.example", .proofFailed, at: APIFixture.start + 1)
        try refuse("billing@juice.example", .forwardingOff, at: APIFixture.start + 2)
        try refuse("x@soda.example", .forwardingOff, at: APIFixture.start + 3)
        try refuse("x@nobody.example", .proofFailed, at: APIFixture.start)
        let items = try await fixture.ask(.get, "/v1/rejections", key: juice).json["items"].items
        #expect(items.map { $0["reason"].string } == ["forwarding-off", "proof-failed"])
        #expect(items.last?["count"] == .integer(2))
        #expect(items.last?["source"] == .string("juice.example"))
        let others = try await fixture.ask(.get, "/v1/rejections", key: soda)
        #expect(others.json["items"].items.isEmpty)
        #expect(
            !(try await fixture.ask(.get, "/v1/rejections", key: juice).text.contains("billing")))
        #expect(try fixture.store.rejections.deleteExpired(before: APIFixture.start + 2) == 1)
    }

    @Test func accounts_paged_holdEachOnce() async throws {
        var subs: Set<String> = []
        for number in 0..<5 {
            subs.insert(try fixture.address(user: "user\(number)", team: "juice").account.sub)
        }
        _ = try fixture.address(user: "user0", team: "soda")
        var (found, cursor): ([String], String?) = ([], nil)
        repeat {
            let page = try await fixture.ask(
                .get, "/v1/accounts?limit=2" + (cursor.map { "&cursor=\($0)" } ?? ""), key: juice)
            #expect(page.status == 200)
            found += page.json["items"].items.compactMap { $0["sub"].string }
            cursor = page.json["next_cursor"].string
            if let cursor {
                #expect(
                    try await fixture.ask(.get, "/v1/accounts?cursor=\(cursor)", key: soda).status
                        == 400)
            }
        } while cursor != nil
        #expect(found.count == 5 && Set(found) == subs)
        let everyone = try await fixture.ask(.get, "/v1/accounts", key: boss).json["items"].items
        #expect(everyone.count == 6 && everyone.allSatisfy { $0["user"].string != nil })
        #expect(!(try await fixture.ask(.get, "/v1/accounts", key: juice).text.contains("user0")))
    }

    /// A freeze is a problem of its own kind, and the operator and the team can see it.
    @Test func freeze_newAddressAndLookUp_sayThatTheOperatorFroze() async throws {
        let store = fixture.store
        _ = try await fixture.ask(
            .post, "/v1/users", key: boss,
            body: #"{"user":"joe","inbox":"joe@home.example","is_verified":true}"#)
        let issued = try await fixture.ask(
            .post, "/v1/users/joe/addresses", key: boss, body: #"{"team":"juice"}"#)
        let address = try #require(issued.json["address"].string)
        #expect(
            try await fixture.ask(.get, "/v1/users/joe", key: boss).json["frozen"] == .null)
        for (target, team) in [(FreezeTarget.user("joe"), "soda"), (.team("juice"), "juice")] {
            _ = try await fixture.ask(
                .post, "/v1/users", key: boss,
                body: #"{"user":"ann","inbox":"ann@home.example","is_verified":true}"#)
            try store.freezes.begin(target, reason: "abuse 7", endsAt: nil, APIFixture.change)
            let user = team == "soda" ? "joe" : "ann"
            let refused = try await fixture.ask(
                .post, "/v1/users/\(user)/addresses", key: boss, body: "{\"team\":\"\(team)\"}")
            #expect(refused.status == 403)
            #expect(refused.json["type"] == .string("urn:postern:problem:frozen"))
            #expect(!refused.text.contains("abuse"))
            let found = try await fixture.ask(
                .post, "/v1/addresses/lookup", key: juice, body: "{\"address\":\"\(address)\"}")
            #expect(found.json["can_write"] == .bool(false))
            #expect(
                found.json["reasons"].items == [
                    .string(team == "soda" ? "user-frozen" : "team-frozen")
                ])
            let shown = try await fixture.ask(.get, "/v1/users/joe", key: boss)
            #expect((shown.json["frozen"]["since"].string != nil) == (team == "soda"))
            try store.freezes.end(target, APIFixture.change)
        }
    }

    @Test func users_madeByOperator_canBeReadAndRemoved() async throws {
        let made = try await fixture.ask(
            .post, "/v1/users", key: boss,
            body:
                #"{"user":"jane","name":"Jane","inbox":"jane.private@home.example","is_verified":true}"#
        )
        #expect(made.status == 201)
        #expect(made.json["inboxes"].items.first?["hint"] == .string("j…@home.example"))
        #expect(!made.text.contains("private"))
        #expect(
            try await fixture.ask(
                .post, "/v1/users", key: boss, body: #"{"user":"jane","inbox":"x@home.example"}"#
            ).status == 409
        )
        let issued = try await fixture.ask(
            .post, "/v1/users/jane/addresses", key: boss, body: #"{"team":"juice"}"#)
        #expect(issued.status == 201)
        #expect(
            try await fixture.ask(
                .post, "/v1/users/jane/addresses", key: boss, body: #"{"team":"juice"}"#
            ).status == 200)
        #expect(
            try await fixture.ask(
                .post, "/v1/users/jane/addresses", key: boss, body: #"{"team":"nobody"}"#
            ).status == 404)
        let address = try #require(issued.json["address"].string)
        let off = try await fixture.ask(
            .post, "/v1/addresses/forwarding", key: boss,
            body: "{\"address\":\"\(address)\",\"forwarding\":false}")
        #expect(off.json["changed"] == .bool(true))
        let alias = try await fixture.ask(
            .post, "/v1/users/jane/inboxes", key: boss,
            body: #"{"inbox":"jane@work.example","is_verified":true,"is_reply_only":true}"#)
        #expect(alias.status == 201)
        let number = try #require(alias.json["inbox"].number?.integer)
        #expect(
            try await fixture.ask(.delete, "/v1/users/jane/inboxes/\(number)", key: boss).status
                == 204)
        #expect(
            try await fixture.ask(.delete, "/v1/users/jane/inboxes/\(number)", key: boss).status
                == 404)
        #expect(
            try await fixture.ask(.get, "/v1/users?limit=1", key: boss).json["items"].items.first?[
                "user"] == .string("jane"))
        #expect(try await fixture.ask(.delete, "/v1/users/jane", key: boss).status == 204)
        #expect(try await fixture.ask(.get, "/v1/users/jane", key: boss).status == 404)
        let actors = Set(try fixture.store.audit.entries(limit: 5).map(\.actor))
        #expect(actors.allSatisfy { $0.hasPrefix("key:") })
    }

    @Test func inbox_inPathOrQuery_isNotEchoed() async throws {
        for path in [
            "/v1/users/jane@home.example", "/v1/users?cursor=jane@home.example",
            "/v1/users?jane@home.example=1",
        ] {
            let answer = try await fixture.ask(.get, path, key: boss)
            #expect([400, 404].contains(answer.status))
            #expect(!answer.text.contains("home.example"))
        }
        #expect(!fixture.log.lines.joined().contains("home.example"))
    }

    @Test func sources_listedOrChecked_sayWhatDNSLacks() async throws {
        _ = try fixture.store.sources.add(
            team: "juice",
            try fixture.store.sources.checked(
                "juice.example", envelopeDomain: nil, now: APIFixture.start),
            APIFixture.change)
        let answer = try await fixture.ask(.get, "/v1/sources", key: juice)
        let item = try #require(answer.json["items"].items.first)
        #expect(item["source"] == .string("juice.example"))
        #expect(item["checks"].items.contains { $0["name"] == .string("spf juice.example") })
        let other = try await fixture.ask(
            .post, "/v1/sources/check", key: soda, body: #"{"domain":"juice.example"}"#)
        #expect(other.json["verdict"] == .string("broken"))
        #expect(
            other.json["checks"].items.first?["sentence"].string?.contains(
                "not a registered source") == true)
    }

    @Test func metrics_requested_holdNoAddress() async throws {
        _ = try await fixture.ask(.get, "/v1/users/jane@home.example", key: boss)
        let metrics = try await fixture.ask(.get, "/metrics", key: boss)
        #expect(metrics.headers[.contentType]?.hasPrefix("text/plain; version=0.0.4") == true)
        #expect(metrics.text.contains("postern_build_info{version="))
        #expect(!metrics.text.contains("@"))
        #expect(try await fixture.ask(.get, "/metrics", key: juice).status == 403)
    }
}
