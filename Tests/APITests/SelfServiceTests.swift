// Changes that a team makes itself over HTTP, with a name server that gives the test's answers.

import API
import Accounts
import DNSClient
import DNSTesting
import Events
import Foundation
import HTTP
import HTTPTypes
import MailAuth
import MailCrypto
import Service
import SignIn
import Synchronization
import TestSupport
import Testing

/// A clock on which a day passes between two looks, in seconds.
private final class Days: Sendable {
    private let time = Mutex<Int64>(0)

    func next() -> Int64 {
        time.withLock { time in
            time += 86_400
            return time
        }
    }
}

/// The mailed messages, and whether mail leaves.
private final class Mails: Sendable {
    private let taken = Mutex<[(to: String, team: String, code: String, languages: String?)]>([])
    private let fails = Mutex<(any Error)?>(nil)

    func take(_ code: SourceCode, _ languages: String?) throws {
        if let failure = fails.withLock({ $0 }) { throw failure }
        taken.withLock { $0.append((code.address.wireForm, code.teamName, code.code, languages)) }
    }

    func fail(_ failure: (any Error)?) { fails.withLock { $0 = failure } }
    var all: [(to: String, team: String, code: String, languages: String?)] {
        taken.withLock { $0 }
    }
}

/// A message that the mail server did not accept.
private struct Unsent: UnsentMail { let namedRecipient: Bool }

@Suite(.blocking) struct SelfServiceTests {
    private struct World {
        let fixture: APIFixture
        let dns: TestDNSServer
        let prover: SourceProver
        let mail: Mails
        let juice: String
        let soda: String

        /// Like the service, at the fixture's time.
        func round() async throws {
            try await prover.pool.run { [fixture, prover] in
                _ = try prover.round(fixture.store, now: { fixture.now }, limit: 100)
            }
        }

        func publish(_ domain: String, _ texts: String...) {
            dns.set(
                "_postern-challenge.\(domain)",
                ZoneResolver.Node(records: [.txt: texts.map { .txt(Array($0.utf8)) }]))
        }

        var serving: [String] {
            get throws { try fixture.store.sources.sources(team: "juice").map(\.value) }
        }
    }

    private func world() throws -> World {
        let dns = try TestDNSServer()
        let days = Days()
        let prover = SourceProver {
            // On a clock on which no answer stays in the cache.
            try AresResolver(
                settings: DNSClientSettings(servers: [dns.address], tryMilliseconds: 500, tries: 1),
                now: { days.next() })
        }
        let mail = Mails()
        let fixture = try APIFixture {
            [
                SourceRoutes(
                    $0.parts, examine: { _ in [] }, look: prover.look,
                    mail: { try mail.take($0, $1) }),
                AppRoutes($0.parts), EndpointRoutes($0.parts),
                KeyRoutes($0.parts),
            ]
        }
        for team in ["juice", "soda"] {
            _ = try fixture.store.apps.add(
                team: team, clientID: "com.\(team)", group: nil, APIFixture.change)
        }
        return World(
            fixture: fixture, dns: dns, prover: prover, mail: mail, juice: try fixture.key("juice"),
            soda: try fixture.key("soda")
        )
    }

    @Test func domainSource_challengeRecordSeen_isActive() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        let body = #"{"source":"news.juice.example"}"#
        let made = try await fixture.ask(.post, "/v1/sources", key: key, body: body)
        #expect(made.status == 201, "\(made.text)")
        #expect(made.json["state"].string == "pending")
        #expect(made.json["challenge"]["name"].string == "_postern-challenge.news.juice.example")
        let token = try #require(made.json["challenge"]["value"].string)
        func verify() async throws -> String? {
            try await fixture.ask(.post, "/v1/sources/verify", key: key, body: body).json["state"]
                .string
        }
        #expect(try await verify() == "pending")
        // Another claim's token, and a token with text around it, do not count.
        world.publish("news.juice.example", "another", token + "x", "x" + token)
        #expect(try await verify() == "pending")
        world.dns.program("_postern-challenge.news.juice.example", .responseCode(2))
        #expect(try await verify() == "pending")
        try await world.round()
        #expect(try world.serving.isEmpty)
        let listed = try await fixture.ask(.get, "/v1/sources", key: key)
        #expect(listed.json["items"].items.first?["state"].string == "pending", "\(listed.text)")

        world.dns.program("_postern-challenge.news.juice.example")
        world.publish("news.juice.example", "another", token)
        #expect(try await verify() == "active")
        #expect(try world.serving == ["news.juice.example"])
        #expect(
            try await fixture.ask(.get, "/v1/sources", key: key).json["items"].items.first?["state"]
                .string == "active")
        #expect(
            try await fixture.ask(.post, "/v1/sources/remove", key: key, body: body).status == 204)
        #expect(try world.serving.isEmpty)
        #expect(
            try await fixture.ask(.post, "/v1/sources/remove", key: key, body: body).status == 404)
        // The old record does not prove a new claim.
        _ = try await fixture.ask(.post, "/v1/sources", key: key, body: body)
        #expect(try await verify() == "pending")
        try await world.round()
        #expect(try world.serving.isEmpty)
    }

    /// The service looks again each month, and a record that is missing for seven days stops the
    /// domain; the endpoint gets an event before.
    @Test func domainSource_recordGone_stopsAfterSevenDays() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        #expect(
            try await fixture.ask(
                .put, "/v1/endpoints", key: key,
                body: #"{"url":"https://juice.example/events","client_id":"com.juice"}"#
            ).status == 200)
        let made = try await fixture.ask(
            .post, "/v1/sources", key: key, body: #"{"source":"juice.example"}"#)
        world.publish("juice.example", try #require(made.json["challenge"]["value"].string))
        try await world.round()
        #expect(try world.serving == ["juice.example"])
        fixture.wait(seconds: 30 * 86_400)
        world.dns.set("_postern-challenge.juice.example", nil)
        try await world.round()
        #expect(try world.serving == ["juice.example"])
        let events = try fixture.store.outbox.events(team: "juice")
        #expect(events.map(\.type) == [.sourceUnproved] && events.first?.sub == "juice.example")
        let shown = try await fixture.ask(.get, "/v1/sources", key: key)
        #expect(shown.json["items"].items.first?["stops_at"].string != nil, "\(shown.text)")
        fixture.wait(seconds: 7 * 86_400)
        try await world.round()
        #expect(try world.serving.isEmpty)
        #expect(
            try await fixture.ask(.get, "/v1/sources", key: key).json["items"].items.first?["state"]
                .string == "stopped")
    }

    @Test func addressSource_codeGiven_isActive() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        let body = #"{"source":"Team@Partner.Example"}"#
        func state() async throws -> String? {
            try await fixture.ask(.get, "/v1/sources", key: key).json["items"].items.first?["state"]
                .string
        }
        let made = try await fixture.ask(
            .post, "/v1/sources", key: key, body: body, headers: ["Accept-Language": "de"])
        #expect(
            made.status == 201 && made.json["state"].string == "pending"
                && made.json["kind"].string == "address", "\(made.text)")
        #expect(
            made.json["mailed_code"]["tries_left"] == .integer(5)
                && made.json["challenge"].string == nil)
        let mail = try #require(world.mail.all.first)
        #expect(
            mail.to == "team@partner.example" && mail.team == "The Juice Company"
                && mail.languages == "de")
        #expect(!made.text.contains(mail.code))
        // A repeated request while a code is in use sends no second message.
        #expect(try await fixture.ask(.post, "/v1/sources", key: key, body: body).status == 201)
        #expect(world.mail.all.count == 1)
        let listed = try await fixture.ask(.get, "/v1/sources", key: key)
        #expect(
            listed.json["items"].items.first?["mailed_code"]["tries_left"] == .integer(5),
            "\(listed.text)")
        func verify(_ code: String, _ key: String? = nil) async throws -> Response {
            try await fixture.ask(
                .post, "/v1/sources/verify", key: key ?? world.juice,
                body: #"{"source":"team@partner.example","code":"\#(code)"}"#)
        }
        // The look at the DNS does not prove it, and another team's key does not either.
        let bare = try await fixture.ask(.post, "/v1/sources/verify", key: key, body: body)
        #expect(bare.status == 422 && bare.text.contains("/code"), "\(bare.text)")
        #expect(try await verify(mail.code, world.soda).status == 404)
        try await world.round()
        #expect(try await state() == "pending")
        let wrong = try await verify(mail.code == "000000" ? "000001" : "000000")
        #expect(wrong.status == 422 && wrong.text.contains("tries left: 4"), "\(wrong.text)")
        #expect(try world.serving.isEmpty)
        let right = try await verify("\(mail.code.prefix(3)) \(mail.code.dropFirst(3))")
        #expect(
            right.status == 200 && right.json["state"].string == "active"
                && right.json["proved_at"].string != nil,
            "\(right.text)")
        #expect(try world.serving == ["team@partner.example"])
        // It is proved permanently: no later look ends it.
        fixture.wait(seconds: 400 * 86_400)
        try await world.round()
        #expect(try world.serving == ["team@partner.example"])
        #expect(try await fixture.ask(.post, "/v1/sources", key: key, body: body).status == 201)
        #expect(
            try await fixture.ask(.post, "/v1/sources/code", key: key, body: body).status == 409)
        #expect(world.mail.all.count == 1)
        #expect(
            try await fixture.ask(.post, "/v1/sources/remove", key: key, body: body).status == 204)
        #expect(try world.serving.isEmpty)
        #expect(try await verify(mail.code).status == 404)
    }

    /// A message that was not sent leaves only its count; one whose recipient the mail server never
    /// received leaves not even that. The same request sends another message.
    @Test func addressSource_mailNotSent_getsAnotherCode() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        let body = #"{"source":"team@partner.example"}"#
        world.mail.fail(Unsent(namedRecipient: false))
        for _ in 0..<5 {
            #expect(try await fixture.ask(.post, "/v1/sources", key: key, body: body).status == 503)
        }
        world.mail.fail(Unsent(namedRecipient: true))
        let failed = try await fixture.ask(.post, "/v1/sources", key: key, body: body)
        #expect(failed.status == 503 && failed.problem == "mail-unavailable", "\(failed.text)")
        let listed = try await fixture.ask(.get, "/v1/sources", key: key)
        #expect(
            listed.json["items"].items.first?["state"].string == "pending"
                && !listed.text.contains("mailed_code"))
        world.mail.fail(Problem.invalid("the mail server refuses mail to this address"))
        #expect(try await fixture.ask(.post, "/v1/sources", key: key, body: body).status == 422)
        world.mail.fail(nil)
        #expect(try await fixture.ask(.post, "/v1/sources", key: key, body: body).status == 201)
        // Three messages to one address, sent or not. The answer does not reveal the teams.
        let full = try await fixture.ask(.post, "/v1/sources/code", key: key, body: body)
        #expect(
            full.status == 409 && full.text.contains("daily limit of messages to this address")
                && !full.text.contains("teams"), "\(full.text)")
        #expect(world.mail.all.count == 1)
    }

    @Test func source_codeForDomainOrRelayAddress_isRefused() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        _ = try await fixture.ask(
            .post, "/v1/sources", key: key, body: #"{"source":"juice.example"}"#)
        for (path, body) in [
            ("/v1/sources/verify", #"{"source":"juice.example","code":"123456"}"#),
            ("/v1/sources/code", #"{"source":"juice.example"}"#),
            ("/v1/sources", #"{"source":"x@relay.example"}"#),
            ("/v1/sources", #"{"source":"x@in.relay.example"}"#),
            ("/v1/sources", #"{"source":"a@b@c"}"#),
            ("/v1/sources", #"{"source":"@partner.example"}"#),
        ] {
            let answer = try await fixture.ask(.post, path, key: key, body: body)
            #expect(answer.status == 422, "\(path) \(body): \(answer.text)")
        }
        #expect(
            try await fixture.ask(
                .post, "/v1/sources/code", key: key, body: #"{"source":"a@none.example"}"#
            ).status == 404)
        #expect(world.mail.all.isEmpty)
    }

    @Test func teamSettings_ofAnotherTeam_areNotFound() async throws {
        let world = try world()
        let (fixture, juice, soda) = (world.fixture, world.juice, world.soda)
        _ = try await fixture.ask(
            .post, "/v1/sources", key: juice, body: #"{"source":"marker-juice.example"}"#)
        _ = try await fixture.ask(
            .post, "/v1/sources", key: juice, body: #"{"source":"marker@juice.example"}"#)
        _ = try await fixture.ask(
            .put, "/v1/endpoints", key: juice,
            body: #"{"url":"https://marker-juice.example/e","client_id":"com.juice"}"#)
        _ = try await fixture.ask(
            .post, "/v1/apps/com.juice/redirect-uris", key: juice,
            body: #"{"uri":"https://marker-juice.example/in"}"#)
        let secret = try await fixture.ask(.post, "/v1/apps/com.juice/secrets", key: juice)
        #expect(
            secret.status == 201 && secret.json["secret"].string?.hasPrefix("ps_") == true,
            "\(secret.text)")
        let name = try #require(secret.json["name"].string)
        let key = try await fixture.ask(
            .post, "/v1/keys", key: juice, body: #"{"scopes":["sources:read"]}"#)
        let id = try #require(key.json["id"].string)
        let before = try fixture.store.audit.entries().count
        for path in ["/v1/sources", "/v1/apps", "/v1/endpoints", "/v1/keys", "/v1/client-keys"] {
            let answer = try await fixture.ask(.get, path, key: soda)
            #expect(
                answer.status == 200 && !answer.text.contains("juice") && !answer.text.contains(id),
                "\(answer.text)")
        }
        let asked: [(HTTPRequest.Method, String, String?)] = [
            (.post, "/v1/sources/verify", #"{"source":"marker-juice.example"}"#),
            (.post, "/v1/sources/remove", #"{"source":"marker-juice.example"}"#),
            (.post, "/v1/sources/verify", #"{"source":"marker@juice.example","code":"123456"}"#),
            (.post, "/v1/sources/code", #"{"source":"marker@juice.example"}"#),
            (.post, "/v1/sources/remove", #"{"source":"marker@juice.example"}"#),
            (.put, "/v1/endpoints", #"{"url":"https://soda.example/e","client_id":"com.juice"}"#),
            (.post, "/v1/endpoints/remove", #"{"client_id":"com.juice"}"#),
            (.post, "/v1/apps/com.juice/redirect-uris", #"{"uri":"https://soda.example/in"}"#),
            (
                .post, "/v1/apps/com.juice/redirect-uris/remove",
                #"{"uri":"https://marker-juice.example/in"}"#
            ),
            (.post, "/v1/apps/com.juice/secrets", nil),
            (.delete, "/v1/apps/com.juice/secrets/\(name)", nil),
            (.delete, "/v1/keys/\(id)", nil),
        ]
        for (method, path, body) in asked {
            let answer = try await fixture.ask(method, path, key: soda, body: body)
            #expect(answer.status == 404, "\(path): \(answer.text)")
        }
        #expect(try fixture.store.audit.entries().count == before)
    }

    @Test func teamSettings_ofOwnTeam_canBeChanged() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        let path = "/v1/apps/com.juice/redirect-uris"
        let added = try await fixture.ask(
            .post, path, key: key, body: #"{"uri":"https://juice.example/in"}"#)
        #expect(
            added.json["redirect_uris"].items.map(\.string) == ["https://juice.example/in"],
            "\(added.text)")
        _ = try await fixture.ask(
            .post, path, key: key,
            body: #"{"uri":"https://juice.example/bye","after_sign_out":true}"#)
        for uri in [
            "http://juice.example/in", "https://*.example/", "https://juice.example/#x",
            "javascript:alert(1)",
        ] {
            #expect(
                try await fixture.ask(.post, path, key: key, body: #"{"uri":"\#(uri)"}"#).status
                    == 422, "\(uri)")
        }
        let apps = try await fixture.ask(.get, "/v1/apps", key: key)
        let app = try #require(apps.json["items"].items.first)
        #expect(
            app["post_logout_redirect_uris"].items.map(\.string) == ["https://juice.example/bye"],
            "\(apps.text)")
        let removed = try await fixture.ask(
            .post, path + "/remove", key: key, body: #"{"uri":"https://juice.example/in"}"#)
        #expect(removed.json["redirect_uris"].items.isEmpty)

        var names: [String] = []
        for _ in 0..<2 {
            let issued = try await fixture.ask(.post, "/v1/apps/com.juice/secrets", key: key)
            names.append(try #require(issued.json["name"].string))
        }
        #expect(try await fixture.ask(.post, "/v1/apps/com.juice/secrets", key: key).status == 409)
        #expect(
            try await fixture.ask(.delete, "/v1/apps/com.juice/secrets/\(names[0])", key: key)
                .status == 204)
        let shown = try await fixture.ask(.get, "/v1/apps", key: key)
        #expect(!shown.text.contains("ps_") && shown.text.contains(names[1]))

        let info = Data(try P256PrivateKey.generate().publicKey.publicKeyInfo).base64EncodedString()
        let text = "-----BEGIN PUBLIC KEY-----\\n\(info)\\n-----END PUBLIC KEY-----\\n"
        let put = try await fixture.ask(
            .post, "/v1/client-keys", key: key, body: #"{"public_key":"\#(text)","kid":"k1"}"#)
        #expect(put.status == 201 && put.json["kid"].string == "k1", "\(put.text)")
        #expect(
            try await fixture.ask(
                .post, "/v1/client-keys", key: key, body: #"{"public_key":"nonsense"}"#
            ).status == 422)
        #expect(try await fixture.ask(.delete, "/v1/client-keys/k1", key: key).status == 204)
        #expect(try await fixture.ask(.delete, "/v1/client-keys/k1", key: key).status == 404)
    }

    @Test func endpoint_urlNotHTTPS_isRefused() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        for url in [
            "http://juice.example/e", "https://u:p@juice.example/", "ftp://juice.example/",
            "juice.example",
        ] {
            #expect(
                try await fixture.ask(.put, "/v1/endpoints", key: key, body: #"{"url":"\#(url)"}"#)
                    .status == 422, "\(url)")
        }
        let set = try await fixture.ask(
            .put, "/v1/endpoints", key: key, body: #"{"url":"https://127.0.0.1/e"}"#)
        #expect(set.status == 200)
        // It is accepted, but Postern never connects to it: only an administrator allows that.
        #expect(
            try fixture.store.endpoints.endpoint(team: "juice", app: nil).allowsPrivate == false)
        #expect(
            try await fixture.ask(.post, "/v1/endpoints/remove", key: key, body: "{}").status == 204
        )
        #expect(try await fixture.ask(.get, "/v1/endpoints", key: key).text == #"{"items":[]}"#)
    }

    @Test func apiKey_issuedByAnotherKey_hasLessAndEndsWithIt() async throws {
        let world = try world()
        let (fixture, key) = (world.fixture, world.juice)
        let made = try await fixture.ask(
            .post, "/v1/keys", key: key,
            body:
                #"{"scopes":["sources:read"],"note":"report","expires_at":"2099-01-01T00:00:00Z"}"#
        )
        #expect(made.status == 201, "\(made.text)")
        let lesser = try #require(made.json["key"].string)
        #expect(try await fixture.ask(.get, "/v1/sources", key: lesser).status == 200)
        #expect(try await fixture.ask(.get, "/v1/keys", key: lesser).status == 403)
        #expect(
            try await fixture.ask(
                .post, "/v1/sources", key: lesser, body: #"{"source":"a.example"}"#
            ).status == 403)
        for scopes in [#"["keys:write"]"#, #"["users:write"]"#, #"["nonsense"]"#, "[]"] {
            #expect(
                try await fixture.ask(.post, "/v1/keys", key: key, body: #"{"scopes":\#(scopes)}"#)
                    .status == 422)
        }
        let listed = try await fixture.ask(.get, "/v1/keys", key: key)
        #expect(!listed.text.contains(lesser) && listed.text.contains("report"))
        for own in try fixture.store.apiKeys.keys(team: "juice") where own.issuedBy == nil {
            _ = try fixture.store.apiKeys.revoke(own.id, APIFixture.change)
        }
        try fixture.keys.refresh()
        #expect(try await fixture.ask(.get, "/v1/sources", key: lesser).status == 401)
    }
}
