// /ssf sentence by sentence, in the order of the certification plans.

import Accounts
import Foundation
import HTTPTypes
import SharedSignals
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct StreamRoutesTests {
    private static let pollBody = #"{"returnImmediately":true}"#

    private func fixture() async throws -> (ProviderFixture, key: String) {
        let fixture = try await ProviderFixture()
        return (fixture, try fixture.api.key("juice"))
    }

    /// An access token that an app obtained for itself.
    private func token(
        _ fixture: ProviderFixture, _ client: String, scope: String = "ssf.manage"
    ) async throws -> String {
        let answer = try await fixture.client(
            "/auth/token", client, [("grant_type", "client_credentials"), ("scope", scope)])
        try #require(answer.status == 200, "\(answer.text)")
        #expect(answer.json["scope"].string == scope)
        return try #require(answer.json["access_token"].string)
    }

    @Test func metadata_requested_listsTransmitterFeatures() async throws {
        let (fixture, _) = try await fixture()
        let answer = try await fixture.api.ask(.get, "/.well-known/ssf-configuration")
        #expect(answer.status == 200 && answer.headers[.contentType] == "application/json")
        let json = answer.json
        #expect(json["spec_version"] == "1_0" && json["issuer"].string == ProviderFixture.issuer)
        #expect(
            json["delivery_methods_supported"].items == ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"])
        #expect(json["authorization_schemes"].items.first?["spec_urn"] == "urn:ietf:rfc:6749")
        #expect(json["default_subjects"] == "ALL")
        for name in [
            "jwks_uri", "configuration_endpoint", "status_endpoint", "verification_endpoint",
            "add_subject_endpoint",
            "remove_subject_endpoint",
        ] {
            #expect(json[name].string?.hasPrefix(ProviderFixture.issuer + "/") == true, "\(name)")
        }
        guard case .object(let members) = json else { return }
        #expect(
            members.members.allSatisfy { $0.value.array?.isEmpty != true },
            "empty lists are left out")
    }

    @Test func stream_created_isReadChangedAndDeleted() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        #expect(try await api.ask(.get, "/ssf/stream", key: key).text == "[]")
        let wanted = SecurityEventURI.sessionRevoked
        let made = try await api.ask(
            .post, "/ssf/stream", key: key,
            body:
                #"{"events_requested":["\#(wanted)","urn:example:unknown"],"description":"Juice","unknown":1}"#
        )
        #expect(made.status == 201 && made.headers[.cacheControl] == "no-store")
        let id = try #require(made.json["stream_id"].string)
        #expect(
            made.json["iss"].string == ProviderFixture.issuer
                && made.json["aud"] == "com.example.juice")
        // Without delivery, the stream is polled, at an address of ours.
        #expect(made.json["delivery"]["method"] == "urn:ietf:rfc:8936")
        #expect(
            made.json["delivery"]["endpoint_url"].string
                == "\(ProviderFixture.issuer)/ssf/poll/\(id)")
        #expect(made.json["events_delivered"].items == [.string(wanted)])
        #expect(made.json["events_requested"].items.count == 2)
        #expect(try await api.ask(.get, "/ssf/stream?stream_id=\(id)", key: key).json == made.json)
        #expect(try await api.ask(.get, "/ssf/stream", key: key).json.items == [made.json])
        // A second one is not allowed.
        #expect(try await api.ask(.post, "/ssf/stream", key: key, body: "{}").status == 409)

        let changed = try await api.ask(
            .patch, "/ssf/stream", key: key,
            body:
                #"{"stream_id":"\#(id)","iss":"\#(ProviderFixture.issuer)","events_requested":["\#(SecurityEventURI.accountPurged)"]}"#
        )
        #expect(changed.status == 200 && changed.json["description"] == "Juice")
        #expect(changed.json["events_delivered"].items == [.string(SecurityEventURI.accountPurged)])
        let wrong = try await api.ask(
            .patch, "/ssf/stream", key: key, body: #"{"stream_id":"\#(id)","aud":"someone"}"#)
        #expect(wrong.status == 400)

        let push =
            #"{"method":"urn:ietf:rfc:8935","endpoint_url":"https://r.example/events","authorization_header":"Bearer s3cr3t"}"#
        let replaced = try await api.ask(
            .put, "/ssf/stream", key: key, body: #"{"stream_id":"\#(id)","delivery":\#(push)}"#)
        #expect(
            replaced.status == 200 && replaced.json["description"] == .null
                && replaced.json["events_requested"] == .null)
        #expect(replaced.json["events_delivered"].items.count == EventType.supportedURIs.count)
        #expect(replaced.json["delivery"]["endpoint_url"] == "https://r.example/events")
        #expect(!replaced.text.contains("s3cr3t"))
        #expect(
            try await api.ask(.put, "/ssf/stream", key: key, body: #"{"stream_id":"\#(id)"}"#)
                .status == 400)
        #expect(
            try await api.ask(.post, "/ssf/poll/\(id)", key: key, body: Self.pollBody).status == 409
        )

        #expect(try await api.ask(.delete, "/ssf/stream?stream_id=\(id)", key: key).status == 204)
        #expect(try await api.ask(.delete, "/ssf/stream?stream_id=\(id)", key: key).status == 404)
        #expect(try await api.ask(.get, "/ssf/stream?stream_id=\(id)", key: key).status == 404)
        #expect(try await api.ask(.post, "/ssf/stream", key: key, body: "{}").status == 201)
    }

    @Test func streamStatus_set_isReadBack() async throws {
        let (fixture, key) = try await fixture()
        let id = try #require(
            try await fixture.api.ask(.post, "/ssf/stream", key: key, body: "{}").json["stream_id"]
                .string)
        func status() async throws -> Response {
            try await fixture.api.ask(.get, "/ssf/status?stream_id=\(id)", key: key)
        }
        #expect(try await status().text == #"{"stream_id":"\#(id)","status":"enabled"}"#)
        for state in ["paused", "disabled", "enabled"] {
            let set = try await fixture.api.ask(
                .post, "/ssf/status", key: key,
                body: #"{"stream_id":"\#(id)","status":"\#(state)","reason":"because"}"#)
            #expect(
                set.status == 200
                    && set.text
                        == #"{"stream_id":"\#(id)","status":"\#(state)","reason":"because"}"#
            )
            #expect(try await status().text == set.text)
        }
        for body in [
            #"{"stream_id":"\#(id)","status":"sleepy"}"#, #"{"stream_id":"\#(id)"}"#,
            #"{"status":"paused"}"#, "[]", "{",
        ] {
            #expect(
                try await fixture.api.ask(.post, "/ssf/status", key: key, body: body).status == 400,
                "\(body)")
        }
    }

    @Test func streamSubject_unknownUser_isAddedAndRemoved() async throws {
        let (fixture, key) = try await fixture()
        let id = try #require(
            try await fixture.api.ask(.post, "/ssf/stream", key: key, body: "{}").json["stream_id"]
                .string)
        let body =
            #"{"stream_id":"\#(id)","subject":{"format":"email","email":"nobody@relay.example"}}"#
        let added = try await fixture.api.ask(.post, "/ssf/subjects/add", key: key, body: body)
        #expect(added.status == 200 && added.text.isEmpty)
        #expect(
            try await fixture.api.ask(.post, "/ssf/subjects/remove", key: key, body: body).status
                == 204)
        let wrong = #"{"stream_id":"\#(id)","subject":{"format":"email"}}"#
        #expect(
            try await fixture.api.ask(.post, "/ssf/subjects/add", key: key, body: wrong).status
                == 400)
    }

    @Test func verification_requested_isPolledAndAcknowledged() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        let id = try #require(
            try await api.ask(.post, "/ssf/stream", key: key, body: "{}").json["stream_id"].string)
        func poll(_ body: String) async throws -> JSONValue {
            try await api.ask(.post, "/ssf/poll/\(id)", key: key, body: body).json
        }
        #expect(try await poll(Self.pollBody) == .object(["sets": .object([:])]))
        for state in ["one", "two"] {
            let asked = try await api.ask(
                .post, "/ssf/verification", key: key,
                body: #"{"stream_id":"\#(id)","state":"\#(state)"}"#)
            #expect(asked.status == 204 && asked.text.isEmpty)
        }
        let first = try await poll(#"{"maxEvents":1,"returnImmediately":true}"#)
        #expect(first["moreAvailable"] == .bool(true))
        let member = try #require(first["sets"].object?.members.first)
        let jws = try CompactJWS(try #require(member.value.string))
        #expect(jws.type == "secevent+jwt")
        let claims = try StrictJSON.parseObject(jws.payload, limit: 65_536)
        #expect(
            claims["jti"]?.string == member.name && claims["sub"] == nil && claims["exp"] == nil)
        #expect(
            claims["events"]?.object?[SecurityEventURI.verification] == .object(["state": "one"]))
        #expect(claims["sub_id"]?.object == SubjectIdentifier.opaque(id).json)
        // An acknowledgement alone; the answer only says that more events wait.
        let alone = try await poll(
            #"{"maxEvents":0,"returnImmediately":true,"ack":["\#(member.name)"]}"#)
        #expect(
            alone["sets"].object?.members.isEmpty == true && alone["moreAvailable"] == .bool(true))
        let second = try await poll("{}")
        let other = try #require(second["sets"].object?.members.first).name
        #expect(other != member.name)
        #expect(
            try await poll(#"{"ack":["\#(other)"],"returnImmediately":true}"#)
                == .object(["sets": .object([:])]))
        for body in [
            "", "[]", #"{"ack":1}"#, #"{"maxEvents":-1}"#, #"{"returnImmediately":true}x"#,
        ] {
            #expect(
                try await api.ask(.post, "/ssf/poll/\(id)", key: key, body: body).status == 400,
                "\(body)")
        }
        for _ in 0..<10 {
            _ = try await api.ask(
                .post, "/ssf/verification", key: key, body: #"{"stream_id":"\#(id)"}"#)
        }
        #expect(
            try await api.ask(
                .post, "/ssf/verification", key: key, body: #"{"stream_id":"\#(id)"}"#
            ).status == 429)
    }

    @Test func poll_waiting_isAnsweredOnNewEvent() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        let id = try #require(
            try await api.ask(.post, "/ssf/stream", key: key, body: "{}").json["stream_id"].string)
        async let waiting = api.ask(.post, "/ssf/poll/\(id)", key: key, body: #"{"maxEvents":5}"#)
        #expect(
            try await api.ask(
                .post, "/ssf/verification", key: key, body: #"{"stream_id":"\#(id)"}"#
            ).status == 204)
        #expect(try await waiting.json["sets"].object?.members.count == 1)
    }

    @Test func stream_wrongTokenOrID_isRefused() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        let requests: [(HTTPRequest.Method, String, String?)] = [
            (.post, "/ssf/stream", "{}"), (.get, "/ssf/stream?stream_id=none", nil),
            (.patch, "/ssf/stream", #"{"stream_id":"none"}"#),
            (
                .put, "/ssf/stream",
                #"{"stream_id":"none","delivery":{"method":"urn:ietf:rfc:8936"}}"#
            ),
            (.delete, "/ssf/stream?stream_id=none", nil), (.get, "/ssf/status?stream_id=none", nil),
            (.post, "/ssf/status", #"{"stream_id":"none","status":"paused"}"#),
            (
                .post, "/ssf/subjects/add",
                #"{"stream_id":"none","subject":{"format":"opaque","id":"1"}}"#
            ),
            (
                .post, "/ssf/subjects/remove",
                #"{"stream_id":"none","subject":{"format":"opaque","id":"1"}}"#
            ),
            (.post, "/ssf/verification", #"{"stream_id":"none"}"#), (.post, "/ssf/poll/none", "{}"),
        ]
        for (method, path, body) in requests {
            let wrong = try await api.ask(method, path, key: "wrong-token", body: body)
            #expect(wrong.status == 401, "\(method) \(path)")
            #expect(wrong.headers[.wwwAuthenticate]?.contains("error=\"invalid_token\"") == true)
            #expect(try await api.ask(method, path, body: body).status == 401)
            if body != "{}" || path != "/ssf/stream" {
                #expect(
                    try await api.ask(method, path, key: key, body: body).status == 404,
                    "\(method) \(path)")
            }
        }
        for body in [
            "{", "[]", "", #"{"delivery":[]}"#,
            #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"http://r.example"}}"#,
        ] {
            #expect(
                try await api.ask(.post, "/ssf/stream", key: key, body: body).status == 400,
                "\(body)")
        }
    }

    @Test func accessToken_ofApp_managesItsStreamOnly() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        let token = try await token(fixture, "com.example.press")
        let made = try await api.ask(.post, "/ssf/stream", key: token, body: "{}")
        #expect(made.status == 201 && made.json["aud"] == "com.example.press")
        let id = try #require(made.json["stream_id"].string)
        #expect(
            try await api.ask(.post, "/ssf/poll/\(id)", key: token, body: Self.pollBody).status
                == 200)
        // The team sees it too; another app, another team and a token with only the read scope
        // cannot change it.
        #expect(try await api.ask(.get, "/ssf/stream", key: key).json.items.count == 1)
        let other = try await self.token(fixture, "com.example.juice.web")
        #expect(try await api.ask(.get, "/ssf/stream?stream_id=\(id)", key: other).status == 404)
        let soda = try await self.token(fixture, "com.example.soda")
        #expect(try await api.ask(.get, "/ssf/stream", key: soda).text == "[]")
        let reading = try await self.token(fixture, "com.example.press", scope: "ssf.read")
        #expect(try await api.ask(.get, "/ssf/stream?stream_id=\(id)", key: reading).status == 200)
        let refused = try await api.ask(.delete, "/ssf/stream?stream_id=\(id)", key: reading)
        #expect(
            refused.status == 403
                && refused.headers[.wwwAuthenticate]?.contains("insufficient_scope") == true)
        // It gives no other access, and expires.
        #expect(try await api.ask(.get, "/auth/userinfo", key: token).status == 401)
        api.wait(seconds: 3_601)
        #expect(try await api.ask(.get, "/ssf/stream?stream_id=\(id)", key: token).status == 401)
    }

    /// Made-up tokens must not cause an unlimited number of look-ups.
    @Test func accessToken_manyUnknown_isRateLimitedPerClient() async throws {
        let (fixture, key) = try await fixture()
        let api = fixture.api
        let good = try await token(fixture, "com.example.juice")
        func answer(_ token: String, _ client: String) async throws -> Response {
            try await api.ask(.get, "/ssf/stream", key: token, headers: ["X-Forwarded-For": client])
        }
        func ask(_ token: String, from client: String = "192.0.2.1") async throws -> Int {
            try await answer(token, client).status
        }
        #expect(try await ask(good) == 200)
        // Text that cannot be a token is refused, and is not counted.
        for text in [
            "short", "pa_" + String(repeating: "A", count: 32),
            "pa_" + String(repeating: "a", count: 33), good + "a",
        ] {
            for _ in 0..<30 { #expect(try await ask(text) == 401) }
        }
        let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
        func madeUp(_ number: Int) -> String {
            "pa_" + String(repeating: "q", count: 30) + String(letters[number / 32])
                + String(letters[number % 32])
        }
        var refused: [Int] = []
        for number in 0..<60 { refused.append(try await ask(madeUp(number))) }
        #expect(refused == Array(repeating: 401, count: 19) + Array(repeating: 429, count: 41))
        let held = try await answer(madeUp(99), "192.0.2.1")
        #expect(held.problem == "too-many-requests" && held.headers[.retryAfter] == "1")
        // Tokens that were valid lately, keys, and other clients are not delayed; a new token of
        // this client is, for a second.
        #expect(try await ask(good) == 200)
        #expect(try await ask(key) == 200)
        let new = try await token(fixture, "com.example.press")
        #expect(try await ask(new) == 429)
        #expect(try await ask(new, from: "192.0.2.2") == 200)
        #expect(try await ask(new) == 200)
        let newer = try await token(fixture, "com.example.press")
        #expect(try await ask(newer) == 429)
        api.wait(seconds: 1)
        #expect(try await ask(newer) == 200)
    }

    @Test func accessToken_ofUser_isRefused() async throws {
        let (fixture, _) = try await fixture()
        let tokens = try await fixture.signedIn()
        #expect(try await fixture.api.ask(.get, "/ssf/stream", key: tokens.access).status == 401)
        let wrong = try await fixture.client(
            "/auth/token", "com.example.juice",
            [("grant_type", "client_credentials"), ("scope", "ssf.manage email")])
        #expect(wrong.status == 400 && wrong.json["error"] == "invalid_scope")
    }
}
