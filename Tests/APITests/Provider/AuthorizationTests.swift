// POST /v1/authorizations: the requests and answers of an operator's sign-in page, and the data
// that the app gets.

import Database
import Foundation
import HTTPTypes
import InternetMessage
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct AuthorizationTests {
    @Test func authorization_granted_returnsCodeIDTokenAndState() async throws {
        let fixture = try await ProviderFixture()
        let state = "ünchanged \"\\ / & = % +\u{1F511}\n"
        let answer = try await fixture.authorize(["state": state])
        #expect(answer.status == 200)
        #expect(answer.json["state"].string == state)
        #expect(answer.json["expires_in"] == .integer(300))
        #expect(answer.headers[.cacheControl] == "no-store")
        #expect(try await fixture.authorize(["state": nil]).json["state"] == .null)
        let claims = try await fixture.claims(answer)
        #expect(claims.authenticatedAt == fixture.api.now)
        #expect(claims.nonceSupported == true)
        let earlier = try await fixture.authorize(["auth_time": fixture.api.now - 86_400])
        #expect(try await fixture.claims(earlier).authenticatedAt == fixture.api.now - 86_400)
    }

    @Test func userName_firstTimeOrReturn_isGiven() async throws {
        let fixture = try await ProviderFixture()
        func name(_ answer: Response) -> [String?] {
            let name = answer.json["user"]["name"]
            return [name["firstName"].string, name["lastName"].string]
        }
        let first = try await fixture.authorize()
        #expect(name(first) == ["Jane Mary", "Doe"])
        #expect(try await fixture.authorize().json["user"] == .null)
        // An app of the same group is not a first time; an app outside it is.
        #expect(
            try await fixture.authorize(["client_id": "com.example.juice.web"]).json["user"]
                == .null)
        #expect(
            name(try await fixture.authorize(["client_id": "com.example.press"])) == [
                "Jane Mary", "Doe",
            ])
        let tokens = try await fixture.signedIn()
        #expect(try await fixture.revoke(tokens.refresh).status == 200)
        let back = try await fixture.authorize(["name": ["first_name": "J.", "last_name": "D."]])
        #expect(name(back) == ["J.", "D."])
        #expect(try await fixture.claims(back).subject == fixture.claims(first).subject)
        #expect(try await fixture.authorize().json["user"] == .null)
        // Without the scope, none.
        _ = try await fixture.revoke(try await fixture.signedIn().refresh)
        let silent = try await fixture.authorize(["scopes": ["openid"]])
        #expect(silent.json["user"] == .null)
    }

    @Test func realUserStatus_firstAuthorization_isGivenOnceAndKept() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.authorize(["real_user_status": 2])
        #expect(try await fixture.claims(first).realUserStatus == .likelyReal)
        let exchanged = try await fixture.redeem(try #require(first.json["code"].string))
        #expect(try await fixture.claims(exchanged).realUserStatus == .likelyReal)
        let again = try await fixture.authorize(["real_user_status": 1])
        #expect(try await fixture.claims(again).realUserStatus == nil)
        let account = try #require(try fixture.api.store.accounts.accounts(user: "jane").first)
        #expect(
            try fixture.api.store.grants.grants(account: account.number).first?.realUserStatus == 2)
        // On return it is needed again, and the earlier one is kept.
        let refresh = try #require(exchanged.json["refresh_token"].string)
        _ = try await fixture.revoke(refresh)
        #expect(
            try await fixture.claims(try await fixture.authorize(["real_user_status": 1]))
                .realUserStatus == .unknown)
        let grant = try #require(try fixture.api.store.grants.grants(account: account.number).first)
        #expect(grant.priorStatus == 2)
    }

    @Test func realUserStatus_missing_countsAsUnsupported() async throws {
        let fixture = try await ProviderFixture()
        #expect(
            try await fixture.claims(try await fixture.authorize()).realUserStatus == .unsupported)
        let account = try #require(try fixture.api.store.accounts.accounts(user: "jane").first)
        #expect(
            try fixture.api.store.grants.grants(account: account.number).first?.realUserStatus == 0)
    }

    @Test func emailClaim_emailScope_isRelayAddress() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.authorize()
        let exchanged = try await fixture.redeem(try #require(first.json["code"].string))
        let refreshed = try await fixture.refresh(
            try #require(exchanged.json["refresh_token"].string))
        let address = try #require(try fixture.api.store.addresses.addresses(user: "jane").first)
            .address
        for answer in [first, exchanged, refreshed, try await fixture.authorize()] {
            let claims = try await fixture.claims(answer)
            #expect(claims.email?.revealed == address)
            #expect(claims.isPrivateEmail == true)
            #expect(claims.emailVerified == true)
        }
        #expect(first.json["user"]["email"].string == address.wireForm)
        let without = try await fixture.authorize(["scopes": ["openid", "name"]])
        #expect(try await fixture.claims(without).email == nil)
        let code = try #require(without.json["code"].string)
        #expect(try await fixture.claims(try await fixture.redeem(code)).email == nil)
    }

    @Test func emailClaim_hideMyEmailFalse_isInbox() async throws {
        let fixture = try await ProviderFixture()
        let shown = try await fixture.claims(try await fixture.authorize(["hide_my_email": false]))
        #expect(shown.email?.revealed.wireForm == "jane@home.example")
        #expect(shown.isPrivateEmail == false)
        // For another user it is hidden, with or without the member.
        for (user, hide) in [("joe", true), ("jim", nil)] as [(String, Bool?)] {
            _ = try fixture.api.store.users.add(
                id: user, name: nil,
                inbox: InboxAddress(try AddrSpec.typed("\(user)@home.example")), isVerified: true,
                APIFixture.change)
            let answer = try await fixture.authorize(["user": user, "hide_my_email": hide])
            #expect(!answer.text.contains("home.example"))
            #expect(try await fixture.claims(answer).isPrivateEmail == true)
        }
        // One app's data does not change because another app requests otherwise.
        let other = try await fixture.claims(
            try await fixture.authorize([
                "user": "joe", "hide_my_email": false, "client_id": "com.example.press",
            ]),
            audience: "com.example.press")
        #expect(other.isPrivateEmail == true)
    }

    /// A new default inbox must not reach apps that got the old one.
    @Test func emailClaim_defaultInboxChanged_keepsSharedInbox() async throws {
        let fixture = try await ProviderFixture()
        let inboxes = fixture.api.store.inboxes
        let tokens = try await fixture.signedIn(["hide_my_email": false])
        let secret = try inboxes.add(
            user: "jane", InboxAddress(try AddrSpec.typed("secret@clinic.example")),
            isVerified: true, isReplyOnly: false,
            APIFixture.change)
        try inboxes.makeDefault(user: "jane", .number(secret.number), APIFixture.change)
        #expect(
            try await fixture.claims(try await fixture.refresh(tokens.refresh)).email?.revealed
                .wireForm == "jane@home.example")
        for hide in [nil, false, true] as [Bool?] {
            let again = try await fixture.claims(
                try await fixture.authorize(["hide_my_email": hide]))
            #expect(again.email?.revealed.wireForm == "jane@home.example")
        }
        // Without the shared inbox, no other one is shared.
        try inboxes.remove(
            user: "jane", .address(InboxAddress(try AddrSpec.typed("jane@home.example"))),
            APIFixture.change)
        #expect(
            try await fixture.claims(try await fixture.refresh(tokens.refresh)).all["email"] == nil)
        #expect(try await fixture.claims(try await fixture.authorize([:])).all["email"] == nil)
        #expect(
            try await fixture.claims(try await fixture.authorize(["hide_my_email": false])).all[
                "email"] == nil)
        // The user shares another one by a choice at a sign-in.
        let chosen = try await fixture.claims(
            try await fixture.authorize(["hide_my_email": false, "inbox": secret.number]))
        #expect(chosen.email?.revealed.wireForm == "secret@clinic.example")
    }

    @Test func emailClaim_returnWithoutScope_sharesNoNewInbox() async throws {
        let fixture = try await ProviderFixture()
        let store = fixture.api.store
        _ = try await fixture.authorize(["hide_my_email": false])
        let account = try #require(try store.accounts.accounts(user: "jane").first).number
        _ = try store.inboxes.add(
            user: "jane", InboxAddress(try AddrSpec.typed("secret@clinic.example")),
            isVerified: true, isReplyOnly: false,
            APIFixture.change)
        try store.inboxes.remove(
            user: "jane", .address(InboxAddress(try AddrSpec.typed("jane@home.example"))),
            APIFixture.change)
        try store.grants.revokeAll(account: account, APIFixture.change)
        // A return without the scope says nothing about the address.
        #expect(try await fixture.authorize(["scopes": ["openid"]]).status == 200)
        let later = try await fixture.authorize()
        #expect(later.status == 200 && !later.text.contains("clinic"), "\(later.text)")
    }

    /// If a team got one inbox, a second app of it, with another inbox for hidden mail, must not
    /// get that one.
    @Test func emailClaim_inboxChosenForHiddenMail_isNotShared() async throws {
        let fixture = try await ProviderFixture()
        _ = try await fixture.authorize(["hide_my_email": false])
        let secret = try fixture.api.store.inboxes.add(
            user: "jane", InboxAddress(try AddrSpec.typed("secret@clinic.example")),
            isVerified: true, isReplyOnly: false,
            APIFixture.change)
        for hide in [true, nil] as [Bool?] {
            let other = try await fixture.authorize([
                "client_id": "com.example.press", "hide_my_email": hide, "inbox": secret.number,
            ])
            #expect(!other.text.contains("clinic"))
            let claims = try await fixture.claims(other, audience: "com.example.press")
            #expect(claims.email?.revealed.wireForm == "jane@home.example")
        }
        #expect(
            try await fixture.claims(try await fixture.authorize()).email?.revealed.wireForm
                == "jane@home.example")
    }

    @Test func authorization_inboxChosen_isUsedIfVerified() async throws {
        let fixture = try await ProviderFixture()
        let work = try fixture.api.store.inboxes.add(
            user: "jane", InboxAddress(try AddrSpec.typed("jane@office.example")), isVerified: true,
            isReplyOnly: false,
            APIFixture.change)
        let byNumber = try await fixture.claims(
            try await fixture.authorize(["inbox": work.number, "hide_my_email": false]))
        #expect(byNumber.email?.revealed.wireForm == "jane@office.example")
        let byAddress = try await fixture.claims(
            try await fixture.authorize(["inbox": "jane@home.example", "hide_my_email": false]))
        #expect(byAddress.email?.revealed.wireForm == "jane@home.example")
        let unverified = try fixture.api.store.inboxes.add(
            user: "jane", InboxAddress(try AddrSpec.typed("new@office.example")), isVerified: false,
            isReplyOnly: false,
            APIFixture.change)
        #expect(try await fixture.authorize(["inbox": unverified.number]).status == 409)
        let unknown = try await fixture.authorize(["inbox": "secret.person@office.example"])
        #expect(unknown.status == 404)
        #expect(!unknown.text.contains("secret.person"))
    }

    @Test func orgIDClaim_managedAccount_isInEveryToken() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.authorize(["org_id": "school-17"])
        let exchanged = try await fixture.redeem(try #require(first.json["code"].string))
        let refreshed = try await fixture.refresh(
            try #require(exchanged.json["refresh_token"].string))
        for answer in [first, exchanged, refreshed] {
            #expect(try await fixture.claims(answer).orgID == "school-17")
        }
        // Policies know the user as managed, until an authorization without one.
        func isManaged() throws -> Bool? {
            try fixture.api.store.database.read { connection throws(StoreFailure) in
                try connection.value("SELECT is_managed FROM users", Int64.self).map { $0 == 1 }
            }
                ?? nil
        }
        #expect(try isManaged() == true)
        #expect(try await fixture.claims(try await fixture.authorize()).orgID == nil)
        #expect(try isManaged() == false)
    }

    @Test func userHint_subOfTeam_identifiesUser() async throws {
        let fixture = try await ProviderFixture()
        let sub = try await fixture.claims(try await fixture.authorize()).subject
        let answer = try await fixture.authorize(["user": nil, "user_hint": sub])
        #expect(try await fixture.claims(answer).subject == sub)
        #expect(try await fixture.authorize(["user_hint": sub]).status == 200)
        _ = try fixture.api.store.users.add(
            id: "joe", name: nil, inbox: InboxAddress(try AddrSpec.typed("joe@home.example")),
            isVerified: true, APIFixture.change
        )
        #expect(try await fixture.authorize(["user": "joe", "user_hint": sub]).status == 409)
        // Another team's subject names no user here.
        #expect(
            try await fixture.authorize([
                "user": nil, "user_hint": sub, "client_id": "com.example.soda",
            ]).status == 422)
    }

    @Test func authorization_invalidMember_isRefusedWithPointer() async throws {
        let fixture = try await ProviderFixture()
        _ = try fixture.api.store.users.add(
            id: "new", name: nil, inbox: InboxAddress(try AddrSpec.typed("new@home.example")),
            isVerified: false,
            APIFixture.change)
        let cases: [([String: Any?], Int, String?)] = [
            (["user": nil], 422, "/user"), (["user": "nobody"], 404, nil),
            (["user": "new"], 409, nil),
            (["client_id": nil], 422, "/client_id"), (["client_id": "com.example.none"], 404, nil),
            (["redirect_uri": nil], 422, "/redirect_uri"),
            (["redirect_uri": ProviderFixture.redirect + "?x=1"], 422, nil),
            (["scopes": ["openid", "admin"]], 422, "/scopes"),
            (["scopes": "email"], 422, "/scopes"),
            (["nonce": ""], 422, "/nonce"),
            (["nonce": String(repeating: "n", count: 513)], 422, "/nonce"),
            (["state": String(repeating: "s", count: 4_097)], 422, "/state"),
            (["real_user_status": 3], 422, "/real_user_status"),
            (["real_user_status": -1], 422, "/real_user_status"),
            (["auth_time": fixture.api.now + 1], 422, "/auth_time"),
            (["scopes": ["openid"], "hide_my_email": false], 422, "/hide_my_email"),
            (["hide_my_email": "no"], 422, "/hide_my_email"),
            (["code_challenge": "x", "code_challenge_method": "S256"], 422, "/code_challenge"),
            (
                ["code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"], 422,
                "/code_challenge_method"
            ),
            (
                [
                    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                    "code_challenge_method": "plain",
                ], 422,
                "/code_challenge_method"
            ),
            (["code_challenge_method": "S256"], 422, "/code_challenge"),
            (["inbox": true], 422, "/inbox"),
            (["org_id": "a\nb"], 422, "/org_id"), (["unknown": 1], 422, "/unknown"),
            (["user_hint": "x"], 422, "/user_hint"),
        ]
        for (changes, status, pointer) in cases {
            let answer = try await fixture.authorize(changes)
            #expect(answer.status == status, "\(changes): \(answer.text)")
            #expect(answer.problem != nil)
            if let pointer {
                #expect(
                    answer.json["errors"].items.first?["pointer"].string == pointer,
                    "\(changes): \(answer.text)")
            }
        }
        // None of these was a consent.
        #expect(try fixture.api.store.accounts.accounts().isEmpty)
    }

    @Test func authorization_withoutOperatorScope_isRefused() async throws {
        let fixture = try await ProviderFixture()
        let body =
            "{\"user\":\"jane\",\"client_id\":\"com.example.juice\",\"redirect_uri\":\"\(ProviderFixture.redirect)\"}"
        #expect(try await fixture.api.ask(.post, "/v1/authorizations", body: body).status == 401)
        #expect(
            try await fixture.api.ask(
                .post, "/v1/authorizations", key: try fixture.api.key("juice"), body: body
            ).status == 403)
        let reader = try fixture.api.key(nil, [.usersRead])
        #expect(
            try await fixture.api.ask(.post, "/v1/authorizations", key: reader, body: body).status
                == 403)
        let right = try fixture.api.key(nil, [.authorizationsWrite])
        #expect(
            try await fixture.api.ask(.post, "/v1/authorizations", key: right, body: body).status
                == 200)
    }

    @Test func subClaim_sameUser_isOnePerTeam() async throws {
        let fixture = try await ProviderFixture()
        func sub(_ client: String) async throws -> String {
            try await fixture.claims(
                try await fixture.authorize(["client_id": client]), audience: client
            ).subject
        }
        let juice = try await sub("com.example.juice")
        #expect(try await sub("com.example.juice.web") == juice)
        #expect(try await sub("com.example.press") == juice)
        #expect(try await sub("com.example.soda") != juice)
    }

    @Test func discovery_document_listsEndpointsAndKeys() async throws {
        let fixture = try await ProviderFixture()
        let answer = try await fixture.api.ask(.get, "/.well-known/openid-configuration")
        #expect(answer.status == 200)
        #expect(answer.json["issuer"].string == ProviderFixture.issuer)
        #expect(answer.json["authorization_endpoint"].string == "https://sign-in.example/")
        for (name, path) in [
            ("token_endpoint", "/auth/token"), ("revocation_endpoint", "/auth/revoke"),
            ("jwks_uri", "/auth/keys"),
        ] { #expect(answer.json[name].string == ProviderFixture.issuer + path) }
        #expect(answer.json["id_token_signing_alg_values_supported"].items == ["ES256", "RS256"])
        let keys = try await fixture.api.ask(.get, "/auth/keys")
        #expect(keys.status == 200)
        #expect(try JWKSet.parse(keys.body).keys.count == 2)
        #expect(!keys.text.contains("\"d\""))
    }
}
