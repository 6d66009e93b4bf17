// GET /v1/accounts/{sub} and its credential state.

import API
import Accounts
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct AccountRoutesTests {
    private func fixture() throws -> (APIFixture, RelayAddress) {
        let fixture = try APIFixture {
            [AccountRoutes($0.parts, listings: $0.parts.store.listings)]
        }
        _ = try fixture.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, APIFixture.change)
        _ = try fixture.store.apps.add(
            team: "juice", clientID: "com.press", group: nil, APIFixture.change)
        return (fixture, try fixture.address(user: "jane", team: "juice", app: "com.juice"))
    }

    @Test func account_read_showsUserToOperatorOnly() async throws {
        let (fixture, address) = try fixture()
        let path = "/v1/accounts/\(address.account.sub)"
        let team = try await fixture.ask(.get, path, key: try fixture.key("juice"))
        #expect(team.status == 200)
        #expect(team.json["sub"].string == address.account.sub)
        #expect(team.json["email"].string == address.address.wireForm)
        #expect(team.json["credential_state"].string == "authorized")
        #expect(team.json["is_private_email"] == .bool(true))
        #expect(team.json["consents"].items.map { $0["client_id"].string } == ["com.juice"])
        #expect(team.json["user"] == .null)
        #expect(!team.text.contains("home.example"))
        let all = try await fixture.ask(.get, path, key: try fixture.key(nil))
        #expect(all.json["user"].string == "jane")
        #expect(all.json["team"].string == "juice")
    }

    @Test func account_ofAnotherTeam_isNotFound() async throws {
        let (fixture, address) = try fixture()
        let other = try fixture.key("soda")
        let foreign = try await fixture.ask(.get, "/v1/accounts/\(address.account.sub)", key: other)
        let unknown = try await fixture.ask(
            .get, "/v1/accounts/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", key: other)
        #expect(foreign.status == 404)
        #expect(unknown.status == 404)
        #expect(foreign.json["detail"] == unknown.json["detail"])
        let state = try await fixture.ask(
            .get, "/v1/accounts/\(address.account.sub)/credential-state", key: other)
        #expect(state.status == 200)
        #expect(state.json["credential_state"].string == "not_found")
        #expect(
            try await fixture.ask(
                .get, "/v1/accounts/x", key: try fixture.key("juice", [.sourcesRead])
            ).status == 403)
        #expect(try await fixture.ask(.get, "/v1/accounts/x").status == 401)
    }

    @Test func credentialState_grantChanged_followsGrant() async throws {
        let (fixture, address) = try fixture()
        let key = try fixture.key("juice")
        let path = "/v1/accounts/\(address.account.sub)/credential-state"
        func state(_ query: String = "") async throws -> String? {
            try await fixture.ask(.get, path + query, key: key).json["credential_state"].string
        }
        #expect(try await state() == "authorized")
        #expect(try await state("?client_id=com.juice") == "authorized")
        #expect(try await state("?client_id=com.press") == "not_found")
        #expect(try await state("?client_id=com.unknown") == "not_found")
        try fixture.store.grants.revokeAll(account: address.account.number, APIFixture.change)
        #expect(try await state() == "revoked")
        try fixture.store.accounts.delete(account: address.account.number, APIFixture.change)
        #expect(try await state() == "not_found")
        #expect(try await fixture.ask(.get, path + "?x=1", key: key).status == 400)
    }
}
