// A team ends the consents that its users gave it, and has its events sent again.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct AccountChangeTests {
    let serving: ServingFixture
    var fixture: APIFixture { serving.fixture }
    let address: RelayAddress
    let juice: String
    let soda: String
    let boss: String

    init() throws {
        serving = try ServingFixture()
        let fixture = serving.fixture
        _ = try fixture.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, APIFixture.change)
        _ = try fixture.store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://hooks.juice.example/"),
            allowsPrivate: false, APIFixture.change)
        address = try fixture.address(user: "jane", team: "juice", app: "com.juice")
        juice = try fixture.key("juice")
        soda = try fixture.key("soda")
        boss = try fixture.key(nil)
    }

    private var path: String { "/v1/accounts/\(address.account.sub)" }

    @Test func consentRevocation_byTeam_isDoneAndReportedOnce() async throws {
        #expect(try await fixture.ask(.post, path + "/revoke", key: soda, body: "{}").status == 404)
        #expect(
            try await fixture.ask(
                .post, path + "/revoke", key: juice, body: #"{"client_id":"com.soda"}"#
            ).status == 422)
        #expect(
            try await fixture.ask(
                .post, path + "/revoke", key: juice, body: #"{"client":"com.juice"}"#
            ).status == 422)
        #expect(try await fixture.ask(.post, path + "/revoke", key: juice, body: "").status == 400)
        let empty = try await fixture.ask(
            .post, path + "/revoke", key: juice, body: #"{"client_id":null}"#)
        #expect(
            empty.status == 422 && empty.text.contains("give a client_id"),
            "an empty variable ended every consent")
        let answer = try await fixture.ask(
            .post, path + "/revoke", key: juice, body: #"{"client_id":"com.juice"}"#)
        #expect(answer.status == 200, "\(answer.text)")
        #expect(
            answer.json["revoked"] == .integer(1)
                && answer.json["credential_state"].string == "revoked")
        #expect(
            try await fixture.ask(.post, path + "/revoke", key: juice, body: "{}").json["revoked"]
                == .integer(0))
        let events = try await fixture.ask(.get, "/v1/events", key: juice)
        #expect(events.json["items"].items.map { $0["type"].string } == ["consent-revoked"])
        #expect(
            try fixture.store.audit.entries(limit: 10).contains {
                $0.action == "grant.revoke" && $0.actor.hasPrefix("key:")
            })
    }

    @Test func accountDeletion_byTeam_leavesNoTombstone() async throws {
        #expect(try await fixture.ask(.delete, path, key: soda).status == 404)
        #expect(try await fixture.ask(.delete, path, key: juice).status == 204)
        #expect(try await fixture.ask(.delete, path, key: juice).status == 404)
        #expect(try await fixture.ask(.get, path, key: juice).status == 404)
        func stones() throws -> Int64 {
            try fixture.store.database.read { connection throws(StoreFailure) in
                try connection.value("SELECT COUNT(*) FROM tombstones", Int64.self) ?? -1
            }
        }
        #expect(try stones() == 0)
        // The operator's switch counts as the user's own.
        let again = try fixture.address(user: "jane", team: "juice", app: "com.juice")
        #expect(again.account.sub != address.account.sub)
        #expect(
            try await fixture.ask(.delete, "/v1/accounts/\(again.account.sub)", key: boss).status
                == 204)
        #expect(try stones() == 1)
        let types = try await fixture.ask(.get, "/v1/events", key: juice).json["items"].items.map {
            $0["type"].string
        }
        #expect(types == ["account-delete", "account-delete"])
    }

    @Test func events_ofTeam_arePagedAndRetried() async throws {
        for number in 0..<5 {
            try fixture.store.addresses.setForwarding(
                address.address, on: number % 2 == 1, APIFixture.change)
        }
        var (seen, cursor): ([String], String?) = ([], nil)
        repeat {
            let page = try await fixture.ask(
                .get, "/v1/events?limit=2" + (cursor.map { "&cursor=\($0)" } ?? ""), key: juice)
            #expect(page.status == 200, "\(page.text)")
            seen += page.json["items"].items.compactMap { $0["jti"].string }
            cursor = page.json["next_cursor"].string
        } while cursor != nil
        #expect(seen.count == 5 && Set(seen).count == 5)
        #expect(try await fixture.ask(.get, "/v1/events", key: soda).json["items"].items.isEmpty)
        #expect(try await fixture.ask(.get, "/v1/events", key: boss).json["items"].items.count == 5)
        #expect(try await fixture.ask(.get, "/v1/events?state=lost", key: juice).status == 400)
        let first = try #require(seen.last)
        _ = try fixture.store.outbox.park(jti: first, APIFixture.change)
        #expect(
            try await fixture.ask(.get, "/v1/events?state=parked", key: juice).json["items"].items
                .map { $0["jti"].string } == [
                    first
                ]
        )
        #expect(try await fixture.ask(.post, "/v1/events/\(first)/retry", key: soda).status == 404)
        #expect(try await fixture.ask(.post, "/v1/events/nonsense/retry", key: juice).status == 404)
        let retried = try await fixture.ask(.post, "/v1/events/\(first)/retry", key: juice)
        #expect(
            retried.status == 200 && retried.json["state"].string == "pending", "\(retried.text)")
        let event = try #require(try fixture.store.outbox.events(jti: first).first)
        let leases = fixture.store.leases
        let lease = try #require(
            try leases.take(
                OutboxRepository.lease, seen: leases.state(OutboxRepository.lease), holder: "test"))
        #expect(
            try fixture.store.outbox.recordResults(
                [DeliveryResult(event)], under: lease, now: APIFixture.start))
        #expect(
            try await fixture.ask(.post, "/v1/events/\(first)/retry", key: juice).problem
                == "conflict")
    }

    /// A logged decision is in its user's download, with its reasons.
    @Test func userDownload_loggedDecision_isIncludedWithReasons() async throws {
        let asked = try await fixture.ask(
            .post, "/v1/decisions", key: juice,
            body:
                #"{"event":"sensitive_action","client_id":"com.juice","sub":"\#(address.account.sub)"}"#
        )
        #expect(asked.status == 200, "\(asked.text)")
        let id = try #require(asked.json["decision_id"].string)
        try serving.flushDecisions()
        let records = try fixture.store.persons.records(user: "jane", now: fixture.now)
        let section = try #require(
            records.first { $0.name == "decisions" }, "\(records.map(\.name))")
        let row = try #require(section.rows.first)
        func text(_ name: String) -> String {
            row.first { $0.name == name }.map { "\($0.value)" } ?? ""
        }
        #expect(row.contains { "\($0.value)".contains(id) }, "\(row)")
        for reason in asked.json["reasons"].items.compactMap({ $0["code"].string ?? $0.string }) {
            #expect(row.contains { "\($0.value)".contains(reason) }, "\(reason) is not in \(row)")
        }
    }
}
