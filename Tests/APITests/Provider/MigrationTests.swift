// /auth/usermigrationinfo: an app moves from team juice to team soda.

import Accounts
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct MigrationTests {
    private func token(
        _ fixture: ProviderFixture, _ client: String = "com.example.juice", by key: TeamKey? = nil,
        team: String = "juice"
    ) async throws -> String {
        let secret = try fixture.secret(client, changing: ["iss": .string(team)], by: key)
        let answer = try await fixture.post(
            "/auth/token",
            [
                ("client_id", client), ("client_secret", secret),
                ("grant_type", "client_credentials"), ("scope", "user.migration"),
            ])
        return try #require(answer.json["access_token"].string, "\(answer.text)")
    }

    private func ask(
        _ fixture: ProviderFixture, _ form: [(String, String)], token: String?,
        client: String = "com.example.juice",
        by key: TeamKey? = nil, team: String = "juice"
    ) async throws -> Response {
        let secret = try fixture.secret(client, changing: ["iss": .string(team)], by: key)
        return try await fixture.post(
            "/auth/usermigrationinfo", [("client_id", client), ("client_secret", secret)] + form,
            headers: token.map { ["Authorization": "Bearer \($0)"] } ?? [:])
    }

    @Test func userMigration_appTransferred_mapsOldSubToNewSub() async throws {
        let fixture = try await ProviderFixture()
        let old = try await fixture.claims(try await fixture.authorize())
        let access = try await token(fixture)
        let form = [("sub", old.subject), ("target", "soda")]
        expectAuthError(try await ask(fixture, form, token: access), "invalid_request")
        _ = try fixture.api.store.transfers.start(
            team: "juice", app: "com.example.juice", to: "soda", APIFixture.change)
        let first = try await ask(fixture, form, token: access)
        let subject = try #require(first.json["transfer_sub"].string, "\(first.text)")
        #expect(first.headers[.cacheControl] == "no-store")
        #expect(try await ask(fixture, form, token: access).json["transfer_sub"].string == subject)
        expectAuthError(try await ask(fixture, form, token: nil), "invalid_token", status: 401)
        expectAuthError(
            try await ask(fixture, form, token: "pa_nothing"), "invalid_token", status: 401)
        expectAuthError(
            try await ask(fixture, [("sub", "nobody"), ("target", "soda")], token: access),
            "invalid_request")
        expectAuthError(
            try await ask(fixture, [("sub", old.subject)], token: access), "invalid_request")
        // A user's token is not the client's own.
        let users = try await fixture.signedIn()
        expectAuthError(
            try await ask(fixture, form, token: users.access), "invalid_token", status: 401)

        let done = try fixture.api.store.transfers.finish(
            app: "com.example.juice", keepingRedirects: true,
            Change(actor: "uid:0", now: fixture.api.now))
        #expect(done.state == .finished)
        // The client belongs to team soda now: the old team's key is not valid for it.
        expectAuthError(
            try await ask(fixture, [("transfer_sub", subject)], token: access), "invalid_client")
        let new = try await token(fixture, by: fixture.soda, team: "soda")
        let answer = try await ask(
            fixture, [("transfer_sub", subject)], token: new, by: fixture.soda, team: "soda")
        let sub = try #require(answer.json["sub"].string, "\(answer.text)")
        #expect(sub != old.subject)
        #expect(answer.json["is_private_email"] == .bool(true))
        let email = try #require(answer.json["email"].string)
        // The next identity token says the same, and the transfer subject with it, for 60
        // days; user_hint is the old sub.
        let claims = try await fixture.claims(
            try await fixture.authorize(["user": nil as Any?, "user_hint": old.subject]))
        #expect(claims.subject == sub)
        #expect(claims.all["email"]?.string == email)
        #expect(claims.all["transfer_sub"]?.string == subject)
        #expect(claims.all["real_user_status"] == nil, "it was delivered once")
        fixture.api.wait(seconds: 60 * 86_400)
        let later = try await fixture.claims(try await fixture.authorize())
        #expect(later.subject == sub)
        #expect(later.all["transfer_sub"] == nil)
        let late = try await token(fixture, by: fixture.soda, team: "soda")
        expectAuthError(
            try await ask(
                fixture, [("transfer_sub", subject)], token: late, by: fixture.soda, team: "soda"),
            "invalid_request")
    }
}
