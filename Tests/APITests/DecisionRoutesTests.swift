// /v1/decisions over HTTP: bodies, problems, Idempotency-Key.

import API
import Accounts
import Database
import Decisions
import Foundation
import InternetMessage
import Logging
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct DecisionRoutesTests {
    private static let app = "com.juice.app"

    /// Juice's app, an issuer, and a key with every scope of a team.
    private struct Setting {
        let fixture: APIFixture
        let issuer: SandboxIssuer
        let key: String

        func decide(
            _ body: String, headers: [String: String] = [:], key: String? = nil
        ) async throws -> Response {
            try await fixture.ask(
                .post, "/v1/decisions", key: key ?? self.key, body: body, headers: headers)
        }

        func token(_ sub: String, status: Int64?, nonce: String) throws -> String {
            try issuer.mint(
                SandboxToken(
                    subject: sub, audience: DecisionRoutesTests.app, nonceClaim: nonce,
                    realUserStatus: status),
                now: fixture.now)
        }

        func signUp(_ sub: String, nonce: String, status: Int64 = 1) throws -> String {
            let token = try token(sub, status: status, nonce: nonce)
            return
                #"{"event":"sign_up","client_id":"com.juice.app","identity_token":"\#(token)","nonce":"\#(nonce)"}"#
        }
    }

    /// - Parameter hasPage: whether there is a page that carries out checks.
    private func setting(atOnce: Int? = nil, hasPage: Bool = false) async throws -> Setting {
        let issuer = try SandboxIssuer.make(issuer: "https://issuer.example")
        let policy = try LoadedPolicy(.builtIn)
        let fixture = try APIFixture { fixture in
            let breaker = StoreBreaker()
            var settings = DecisionService.Settings()
            if let atOnce { settings.atOnce = atOnce }
            if hasPage { (settings.ownIssuer, settings.hasPage) = ("https://relay.example", true) }
            let service = DecisionService(
                store: fixture.store, policies: policy,
                verifier: TokenVerifier(issuers: issuer, keys: issuer),
                log: DecisionLogBuffer(fixture.store.decisions, fixture.store.decisionWrites),
                commits: GroupCommit(fixture.store.database),
                reads: GroupRead(fixture.store.database), executor: fixture.pool, breaker: breaker,
                settings: settings,
                now: fixture.clock.now, logger: fixture.log.logger)
            return [
                DecisionRoutes(
                    service: service,
                    idempotency: IdempotencyGuard(
                        store: fixture.store, executor: fixture.pool, breaker: breaker,
                        now: fixture.clock.now))
            ]
        }
        _ = try fixture.store.apps.add(
            team: "juice", clientID: Self.app, group: nil, APIFixture.change)
        return Setting(fixture: fixture, issuer: issuer, key: try fixture.key("juice"))
    }

    @Test func decision_tooManyAtOnce_is429WithRetryAfter() async throws {
        let setting = try await setting(atOnce: 0)
        let answer = try await setting.decide(setting.signUp("jane", nonce: "n1"))
        #expect(answer.status == 429)
        #expect(answer.headers[.retryAfter] == "1")
        #expect(answer.problem == "too-many-requests")
        // With its key too: an answer that may change the next time is not stored.
        let key = ["Idempotency-Key": "k1"]
        #expect(
            try await setting.decide(setting.signUp("jane", nonce: "n1"), headers: key).status
                == 429)
        #expect(
            try await setting.decide(setting.signUp("jane", nonce: "n1"), headers: key).status
                == 429)
    }

    @Test func challenge_wanted_isALinkToThePage() async throws {
        let setting = try await setting(hasPage: true)
        let redirect = "https://juice.example/back"
        try setting.fixture.store.clients.addRedirect(
            team: "juice", clientID: Self.app, uri: redirect, APIFixture.change)
        let user = try setting.fixture.store.users.add(
            id: "carla", name: "carla",
            inbox: InboxAddress(try AddrSpec.typed("carla@home.example")),
            isVerified: true, APIFixture.change)
        _ = try setting.fixture.store.addresses.issue(
            team: "juice", user: user.id, app: Self.app, APIFixture.change)
        let sub: String = try #require(
            try setting.fixture.store.database.value(
                "SELECT a.sub FROM accounts a JOIN users u ON u.id = a.user_id WHERE u.handle = 'carla'"
            ))
        func ask(_ challenge: String, event: String = "sensitive_action") async throws -> Response {
            try await setting.decide(
                #"{"event":"\#(event)","client_id":"com.juice.app","sub":"\#(sub)","challenge":\#(challenge)}"#,
                headers: ["Idempotency-Key": "k\(challenge.utf8.count)\(event)"])
        }
        // The first question about an account is its sign-up.
        _ = try await setting.decide(
            #"{"event":"sign_in","client_id":"com.juice.app","sub":"\#(sub)"}"#)
        let wanted = #"{"redirect_uri":"\#(redirect)","state":"s-1"}"#
        let answer = try await ask(wanted)
        #expect(answer.json["decision"].string == "require_verification", "\(answer.body)")
        let url = try #require(answer.json["challenge_url"].string)
        #expect(url.hasPrefix("https://relay.example/auth/begin?request="))
        #expect(try await ask(wanted).body == answer.body, "the same link again")
        let handle = String(url.dropFirst("https://relay.example/auth/begin?request=".count))
        let pending = try #require(
            try setting.fixture.store.authorizations.open(handle, now: setting.fixture.now))
        #expect(pending.check?.decisionID == answer.json["decision_id"].string)
        #expect(pending.check?.challenges.isEmpty == false)
        #expect(pending.request.target.state == "s-1")
        for (challenge, pointer) in [
            (#"{"redirect_uri":"https://other.example/"}"#, "/challenge/redirect_uri"),
            (
                #"{"redirect_uri":"\#(redirect)","response_mode":"pigeon"}"#,
                "/challenge/response_mode"
            ),
            (#"{"redirect_uri":"\#(redirect)","more":1}"#, "/challenge/more"),
            ("{}", "/challenge/redirect_uri"), ("7", "/challenge"),
            (#"{"redirect_uri":"\#(redirect)","state":"a\nb"}"#, "/challenge/state"),
        ] {
            let refused = try await ask(challenge)
            #expect(refused.status == 422, "\(challenge) \(refused.body)")
            #expect(
                String(decoding: refused.body, as: UTF8.self).contains(pointer),
                "\(challenge) \(refused.body)")
        }
    }

    @Test func description_ofObservedOutcomes_namesEveryWord() throws {
        let text = try String(
            contentsOf: Folders.package.appending(path: "docs/openapi.yaml"), encoding: .utf8)
        func names(_ words: [String]) -> Bool {
            text.contains("{ enum: [\(words.joined(separator: ", "))]")
        }
        #expect(names(CheckMethod.allCases.map(\.rawValue)))
        #expect(names(CheckStrength.allCases.map(\.rawValue)))
        #expect(names(CheckSource.allCases.map(\.rawValue)))
    }

    @Test func challenge_withoutAPage_isRefused() async throws {
        let setting = try await setting()
        let answer = try await setting.decide(
            #"{"event":"sign_in","client_id":"com.juice.app","sub":"x","challenge":{"redirect_uri":"https://a.example/"}}"#
        )
        #expect(answer.status == 422)
        #expect(
            String(decoding: answer.body, as: UTF8.self).contains("no page that carries out checks")
        )
    }

    @Test func decision_made_canBeReadReportedAndLabelled() async throws {
        let setting = try await setting()
        let answer = try await setting.decide(setting.signUp("jane", nonce: "n1"))
        #expect(answer.status == 200)
        #expect(answer.headers[.cacheControl] == "no-store")
        #expect(answer.json["decision"].string == "require_verification")
        let id = try #require(answer.json["decision_id"].string)
        let path = "/v1/decisions/\(id)"
        #expect(try await setting.fixture.ask(.get, path, key: setting.key).body == answer.body)
        func report(_ body: String) async throws -> Response {
            try await setting.fixture.ask(.post, path + "/outcome", key: setting.key, body: body)
        }
        #expect(try await report(#"{"outcome":"passed","challenge":"email_code"}"#).status == 409)
        #expect(
            try await report(#"{"outcome":"challenge_initiated","challenge":"email_code"}"#).status
                == 200)
        #expect(
            try await report(#"{"outcome":"passed","challenge":"email_code"}"#).json["outcomes"]
                .items.first?["outcome"].string
                == "passed")
        #expect(try await report(#"{"outcome":"fraudulent"}"#).json["label"].string == "fraudulent")
        #expect(try await report(#"{"label":"legitimate"}"#).json["label"].string == "legitimate")
        #expect(try await report(#"{"outcome":"passed","challenge":"palm_reading"}"#).status == 422)
        #expect(try await report(#"{"outcome":"passed"}"#).problem == "invalid")
        // Another team learns nothing of it.
        let other = try setting.fixture.key("soda")
        #expect(try await setting.fixture.ask(.get, path, key: other).status == 404)
        #expect(
            try await setting.decide(setting.signUp("jane", nonce: "n2"), key: other).status == 422)
    }

    @Test(arguments: [
        (#"{"event":"sign_in","client_id":"com.juice.app"}"#, 422),
        (#"{"event":"sign_in","client_id":"com.juice.app","sub":7}"#, 422),
        (#"{"event":"sign_off","client_id":"com.juice.app","sub":"a"}"#, 422),
        (#"{"client_id":"com.juice.app","sub":"a"}"#, 422),
        (#"{"event":"sign_in","client_id":"com.soda","sub":"a"}"#, 422),
        (#"{"event":"sign_in","client_id":"com.juice.app","sub":"a","extra":1}"#, 422),
        (#"{"event":"sign_in","client_id":"com.juice.app","sub":"a","context":[1]}"#, 422),
        (#"{"event":"sign_in","client_id":"com.juice.app","sub":"a","sub":"b"}"#, 400), ("[]", 422),
        ("", 400), ("{", 400),
        (
            #"{"event":"sign_in","client_id":"com.juice.app","identity_token":"a.b.c","nonce":"n"}"#,
            422
        ),
    ]) func decision_invalidBody_isRefused(_ body: String, _ status: Int) async throws {
        let setting = try await setting()
        let answer = try await setting.decide(body)
        #expect(answer.status == status, "\(answer.text)")
        #expect(answer.problem != nil)
    }

    @Test(arguments: ["1", "null", "[[1]]", #"{"a":1}"#, #""text""#, "1e999"])
    func context_notDeclared_isLeftOutAndNamed(_ value: String) async throws {
        let setting = try await setting()
        let answer = try await setting.decide(
            #"{"event":"sign_in","client_id":"com.juice.app","sub":"a","context":{"x":\#(value),"Y Z":1}}"#
        )
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer.json["ignored_context"].items.map(\.string) == ["(other)", "x"])
        #expect(answer.json["invalid_context"].items.isEmpty)
        let id = try #require(answer.json["decision_id"].string)
        #expect(
            try await setting.fixture.ask(.get, "/v1/decisions/\(id)", key: setting.key).body
                == answer.body)
    }

    @Test func idempotencyKey_repeated_returnsSameAnswer() async throws {
        let setting = try await setting()
        let headers = ["Idempotency-Key": "k-1"]
        let body = #"{"event":"sign_in","client_id":"com.juice.app","sub":"nobody"}"#
        let first = try await setting.decide(body, headers: headers)
        #expect(first.status == 200)
        #expect(try await setting.decide(body, headers: headers).body == first.body)
        #expect(
            try await setting.decide(body).body != first.body, "without it a question is a new one")
        let other = try await setting.decide(body + " ", headers: headers)
        #expect(other.status == 422)
        // The other team's key with the same name is a different key.
        #expect(
            try await setting.decide(body, headers: headers, key: setting.fixture.key("soda"))
                .status == 422)
        #expect(
            try await setting.decide(body, headers: ["Idempotency-Key": "with space"]).status == 400
        )
        // A refusal is not stored: the key is free.
        let wrong = #"{"event":"sign_in","client_id":"com.unknown","sub":"a"}"#
        #expect(try await setting.decide(wrong, headers: ["Idempotency-Key": "k-2"]).status == 422)
        #expect(try await setting.decide(body, headers: ["Idempotency-Key": "k-2"]).status == 200)
        setting.fixture.wait(seconds: 86_400)
        #expect(
            try await setting.decide(body + " ", headers: headers).status == 200,
            "forgotten after a day")
    }

    @Test func idempotencyKey_newGuardOnSameStore_isRemembered() async throws {
        let setting = try await setting()
        let (store, pool) = (setting.fixture.store, setting.fixture.pool)
        func fresh() -> IdempotencyGuard {
            IdempotencyGuard(
                store: store, executor: pool, breaker: StoreBreaker(), now: { APIFixture.start })
        }
        let team = try store.teams.team("juice").number
        guard
            case .proceed(let claim) = try await fresh().claim(
                team: team, endpoint: "e", key: "k", body: [1])
        else {
            Issue.record("not claimed")
            return
        }
        guard
            case .inFlight = try await fresh().claim(team: team, endpoint: "e", key: "k", body: [1])
        else {
            Issue.record("not in flight")
            return
        }
        await fresh().finish(claim, "{}")
        guard
            case .answered("{}") = try await fresh().claim(
                team: team, endpoint: "e", key: "k", body: [1])
        else {
            Issue.record("not answered")
            return
        }
        guard
            case .otherBody = try await fresh().claim(
                team: team, endpoint: "e", key: "k", body: [2])
        else {
            Issue.record("another body was taken")
            return
        }
    }

    @Test func decision_withoutScope_isRefused() async throws {
        let setting = try await setting()
        let reader = try setting.fixture.key("juice", [.decisionsRead])
        #expect(try await setting.decide("{}", key: reader).status == 403)
        #expect(try await setting.decide("{}", key: setting.fixture.key(nil)).status == 403)
        #expect(try await setting.fixture.ask(.post, "/v1/decisions", body: "{}").status == 401)
    }
}
