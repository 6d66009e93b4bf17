// GET /v1/accounts/{sub} and its credential state.

import Accounts
import API
import Foundation
import Testing

@Suite struct AccountRouteTests {
    private func rig() throws -> (APIFixture, RelayAddress) {
        let rig = try APIFixture { [AccountRoutes($0.parts)] }
        _ = try rig.store.apps.add(team: "juice", clientID: "com.juice", group: nil, APIFixture.change)
        _ = try rig.store.apps.add(team: "juice", clientID: "com.press", group: nil, APIFixture.change)
        return (rig, try rig.address(user: "jane", team: "juice", app: "com.juice"))
    }

    @Test func aTeamSeesItsAccountAndTheOperatorWhoseItIs() async throws {
        let (rig, address) = try rig()
        let path = "/v1/accounts/\(address.account.sub)"
        let team = try await rig.ask(.get, path, key: try rig.key("juice"))
        #expect(team.status == 200)
        #expect(team.json["sub"].string == address.account.sub)
        #expect(team.json["email"].string == address.address.wireForm)
        #expect(team.json["credential_state"].string == "authorized")
        #expect(team.json["is_private_email"] == .bool(true))
        #expect(team.json["consents"].items.map { $0["client_id"].string } == ["com.juice"])
        #expect(team.json["user"] == .null)
        #expect(!team.text.contains("home.example"))
        let all = try await rig.ask(.get, path, key: try rig.key(nil))
        #expect(all.json["user"].string == "jane")
        #expect(all.json["team"].string == "juice")
    }

    @Test func anotherTeamsAccountLooksLikeNone() async throws {
        let (rig, address) = try rig()
        let other = try rig.key("soda")
        let foreign = try await rig.ask(.get, "/v1/accounts/\(address.account.sub)", key: other)
        let unknown = try await rig.ask(.get, "/v1/accounts/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", key: other)
        #expect(foreign.status == 404)
        #expect(unknown.status == 404)
        #expect(foreign.json["detail"] == unknown.json["detail"])
        let state = try await rig.ask(.get, "/v1/accounts/\(address.account.sub)/credential-state", key: other)
        #expect(state.status == 200)
        #expect(state.json["credential_state"].string == "not_found")
        #expect(try await rig.ask(.get, "/v1/accounts/x", key: try rig.key("juice", [.sourcesRead])).status == 403)
        #expect(try await rig.ask(.get, "/v1/accounts/x").status == 401)
    }

    @Test func theCredentialStateFollowsTheGrant() async throws {
        let (rig, address) = try rig()
        let key = try rig.key("juice")
        let path = "/v1/accounts/\(address.account.sub)/credential-state"
        func state(_ query: String = "") async throws -> String? {
            try await rig.ask(.get, path + query, key: key).json["credential_state"].string
        }
        #expect(try await state() == "authorized")
        #expect(try await state("?client_id=com.juice") == "authorized")
        #expect(try await state("?client_id=com.press") == "not_found")
        #expect(try await state("?client_id=com.unknown") == "not_found")
        try rig.store.grants.revokeAll(account: address.account.number, APIFixture.change)
        #expect(try await state() == "revoked")
        try rig.store.accounts.delete(account: address.account.number, APIFixture.change)
        #expect(try await state() == "not_found")
        #expect(try await rig.ask(.get, path + "?x=1", key: key).status == 400)
    }
}
