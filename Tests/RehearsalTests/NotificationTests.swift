// Notifications in both dialects, ordered failures, transfers, and the sandbox's own limits.

import Foundation
import Rehearsal
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct NotificationTests {
    private func order(
        _ fixture: AppleFixture, _ type: String, client: String = "com.example.web",
        dialect: AppleEventDialect? = nil,
        booleans: AppleBooleans? = nil
    ) throws -> AppleEventOrder {
        AppleEventOrder(
            client: try #require(fixture.state.seed.client(client)),
            user: try #require(fixture.state.seed.user("anna")),
            type: type, dialect: dialect, booleans: booleans)
    }

    /// The claims as they would be with the identifiers of the public samples.
    private func sampled(_ claims: JSONObject, _ fixture: AppleFixture) -> JSONObject {
        let replacements = [
            ("\(fixture.now)000", "1508184845000"), ("\(fixture.now)", "1508184845"),
            ("com.example.web", "com.mytest.app"),
            (claims["jti"]?.string ?? "", "abede-67890"),
            (
                AppleState.subject("anna", team: "TEAMAAAAAA"),
                "820417.faa325acbc78e1be1668ba852d492d8a.0219"
            ),
            (
                AppleState.privateEmail("anna", team: "TEAMAAAAAA"),
                "ep9ks2tnph@privaterelay.appleid.com"
            ),
        ]
        let text = replacements.reduce(JSONValue.object(claims).text) {
            $0.replacing($1.0, with: $1.1)
        }
        return (try? StrictJSON.parseObject(Array(text.utf8), limit: 10_000)) ?? [:]
    }

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func notification_capturedForms_isWrittenAlike() throws {
        let file = Folders.conformance.appending(path: "apple/notification-payloads.json")
        let document = try StrictJSON.parseObject(Array(Data(contentsOf: file)), limit: 1_000_000)
        let payloads = try #require(document["payloads"]?.array).compactMap {
            $0.object?["claims"]?.object
        }
        #expect(payloads.count == 11)
        for wanted in payloads {
            var fixture = try AppleFixture()
            let isWire = wanted["events"]?.string != nil
            let event =
                try wanted["events"]?.object
                ?? StrictJSON.parseObject(
                    Array((wanted["events"]?.string ?? "").utf8), limit: 10_000)
            let notification = try fixture.state.event(
                try order(
                    fixture, event["type"]?.string ?? "", dialect: isWire ? .wire : .documentation,
                    booleans: event["is_private_email"]?.bool == nil ? nil : .boolean),
                failure: nil, now: fixture.now)
            #expect(try sampled(fixture.claims(notification.payload), fixture) == wanted)
            #expect(notification.body == Array(#"{"payload":"\#(notification.payload)"}"#.utf8))
        }
    }

    @Test(arguments: AppleEventDialect.allCases) func notification_eitherDialect_isTakenByPostern(
        _ dialect: AppleEventDialect
    ) throws {
        var fixture = try AppleFixture()
        let issuer = IssuerConfiguration(
            name: "apple", issuer: "https://appleid.apple.com", source: .inline(""),
            algorithms: [.rs256])
        for type in AppleEventOrder.types + ["something-new"] {
            let notification = try fixture.state.event(
                try order(fixture, type, dialect: dialect), failure: nil, now: fixture.now)
            let event = try IncomingEvent.verify(
                try IncomingEvent.payload(of: notification.body), issuer: issuer,
                keys: JWKSet.parse(fixture.state.keySet(failure: nil)), now: fixture.now
            ) { $0 == "com.example.web" }
            #expect(event.kind == AccountEventKind(type: type) && event.id == notification.id)
            #expect(event.subject == AppleState.subject("anna", team: "TEAMAAAAAA"))
            #expect(event.happenedAt == fixture.now * 1_000)
        }
    }

    @Test func notification_dialectInSeed_isUsed() throws {
        var fixture = try AppleFixture()
        let notification = try fixture.state.event(
            try order(fixture, "consent-revoked", client: "com.example.other"), failure: nil,
            now: fixture.now)
        #expect(
            try fixture.claims(notification.payload)["events"]?.object?["event_time"]
                == .integer(fixture.now))
        #expect(notification.address == nil)
    }

    @Test func notification_consentRevoked_endsTokens() throws {
        var fixture = try AppleFixture()
        let code = try fixture.signIn()["code"]
        let tokens = try fixture.exchange(try fixture.signIn()["code"])
        _ = try fixture.state.event(
            try order(fixture, "consent-revoked"), failure: nil, now: fixture.now)
        let refresh = [
            "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]?.string ?? "",
        ]
        // TN3107 has both under invalid_request: the user has revoked authorization.
        #expect(
            refusal { try fixture.token(refresh) }?.description
                == "invalid_request: anna has revoked the authorization of com.example.web")
        #expect(refusal { try fixture.exchange(code) }?.code == .invalidRequest)
        #expect(try fixture.signIn()["user"] != nil)
    }

    @Test(arguments: ["account-deleted", "account-delete"])
    func notification_accountDeleted_removesUserUntilReset(
        _ type: String
    ) throws {
        var fixture = try AppleFixture()
        let tokens = try fixture.exchange(try fixture.signIn()["code"])
        _ = try fixture.state.event(try order(fixture, type), failure: nil, now: fixture.now)
        #expect(fixture.state.users.map(\.id) == ["ben"])
        let refresh = [
            "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]?.string ?? "",
        ]
        #expect(
            refusal { try fixture.token(refresh) }?.cause == "the Apple Account of anna was deleted"
        )
        let code = try fixture.signIn("ben")["code"]
        fixture.state.reset(auto: false)
        #expect(fixture.state.users.count == 2)
        #expect(refusal { try fixture.exchange(code) }?.code == .invalidGrant)
        #expect(try fixture.signIn("ben")["code"] != code)
    }
}

@Suite(.blocking) struct FailureTests {
    @Test func failure_ofAToken_isNoticedByReceiver() throws {
        var fixture = try AppleFixture()
        let keys = try JWKSet.parse(fixture.state.keySet(failure: nil))
        let issuer = IssuerConfiguration(
            name: "apple", issuer: "https://appleid.apple.com", source: .inline(""),
            algorithms: [.rs256])
        func check(_ failure: AppleFailure?) throws -> TokenRejection.Check? {
            let token = try #require(try fixture.signIn(failure: failure)["id_token"])
            do throws(TokenRejection) {
                _ = try TokenChecks.verify(
                    CompactJWS(token), issuer: issuer, keys: keys, audience: "com.example.web",
                    nonce: ExpectedNonce("n-1", form: .raw), now: fixture.now)
                return nil
            } catch { return error.check }
        }
        #expect(try check(nil) == nil)
        #expect(try check(.wrongSignature) == .signature)
        #expect(try check(.unknownKid) == .key)
        #expect(try check(.wrongIssuer) == .issuer)
        #expect(try check(.wrongAudience) == .audience)
        #expect(try check(.wrongNonce) == .nonce)
        #expect(try check(.expired) == .expiry)
        let before = try fixture.signIn()["id_token"]
        #expect(try fixture.signIn(failure: .replay)["id_token"] == before)
        #expect(try fixture.signIn()["id_token"] != before)
        #expect(
            String(decoding: fixture.state.keySet(failure: .noKeys), as: UTF8.self)
                == #"{"keys":[]}"#)
    }

    @Test func failure_ordered_happensAsOftenAsOrdered() {
        var failures = AppleFailures()
        func add(_ failure: AppleFailure, _ place: AppleFailure.Place, times: Int = 1) -> Bool {
            failures.add(failure, at: place, times: times, seconds: 1)
        }
        let unsuited = [
            add(.noKeys, .token), add(.timeout, .events), add(.wrongNonce, .events),
            add(.replay, .keys),
        ]
        #expect(unsuited == [false, false, false, false])
        let suited = [add(.status500, .token, times: 2), add(.replay, .token)]
        #expect(suited == [true, true])
        var taken: [AppleFailure?] = [failures.take(.keys)?.failure]
        for _ in 0..<4 { taken.append(failures.take(.token)?.failure) }
        #expect(taken == [nil, .status500, .status500, .replay, nil])
        let many = (0...AppleFailures.maximum).map { _ in add(.garbage, .keys) }
        #expect(many.count(where: { $0 }) == AppleFailures.maximum && many.last == false)
    }

    @Test func journal_full_keepsNewest() {
        var journal = AppleJournal()
        for number in 0..<(AppleJournal.maximum + 5) {
            journal.note(
                at: 0, "GET", "/\(number)", clientID: nil, status: 200, cause: "\u{1B}[31m")
        }
        #expect(journal.entries.count == AppleJournal.maximum)
        #expect(journal.entries.first?.path == "/204" && journal.entries.last?.path == "/5")
    }

    @Test func clock_offsetTooLarge_isRefused() throws {
        var fixture = try AppleFixture()
        let taken = [-AppleState.maximumClockOffset, 0, AppleState.maximumClockOffset + 1].map {
            fixture.state.setClock(offset: $0)
        }
        #expect(taken == [true, true, false])
    }
}

@Suite(.blocking) struct MigrationTests {
    @Test func migration_appTransferred_givesNewSub() throws {
        var fixture = try AppleFixture()
        let tokens = try fixture.exchange(try fixture.signIn()["code"])
        let sub = AppleState.subject("anna", team: "TEAMAAAAAA")
        let access =
            try fixture.token(["grant_type": "client_credentials", "scope": "user.migration"])[
                "access_token"]?.string ?? ""
        func ask(
            _ parameters: [String: String], _ bearer: String?, team: String = "TEAMAAAAAA",
            key: String = "KEYAAAAAAA"
        ) throws -> JSONObject {
            let secret = try fixture.secret(team: team, key: key)
            let form = ["client_id": "com.example.web", "client_secret": secret].merging(parameters)
            { $1 }
            return try fixture.state.migrationInfo(
                AppleParameters(form.map { (name: WireText($0.key), value: WireText($0.value)) }),
                authorization: bearer.map { "Bearer \($0)" },
                now: fixture.now
            ).body
        }
        let giving = ["sub": sub, "target": "TEAMBBBBBB"]
        #expect(refusal { try ask(giving, nil) }?.code == .invalidRequest)
        #expect(
            refusal { try ask(giving, tokens["access_token"]?.string) }?.code == .invalidRequest)
        #expect(
            refusal { try ask(["sub": sub, "target": "TEAMAAAAAA"], access) }?.code
                == .invalidRequest)
        #expect(
            refusal { try ask(["sub": "1", "target": "TEAMBBBBBB"], access) }?.code
                == .invalidRequest)
        let transferSub = try #require(try ask(giving, access)["transfer_sub"])
        let taking = ["transfer_sub": transferSub.string ?? ""]
        // Not before the transfer.
        #expect(
            refusal { try ask(taking, nil, team: "TEAMBBBBBB", key: "KEYBBBBBBB") }?.code
                == .invalidClient)
        let client = try #require(fixture.state.seed.client("com.example.web"))
        let moved = ["TEAMAAAAAA", "TEAMXXXXXX", "TEAMBBBBBB"].map {
            fixture.state.transfer(client, to: $0, now: fixture.now)
        }
        #expect(moved == [false, false, true])
        #expect(refusal { try ask(giving, access) }?.code == .invalidClient)
        let taken = try ask(taking, nil, team: "TEAMBBBBBB", key: "KEYBBBBBBB")
        #expect(taken["sub"] == .string(AppleState.subject("anna", team: "TEAMBBBBBB")))
        #expect(taken["email"] == .string(AppleState.privateEmail("anna", team: "TEAMBBBBBB")))
        #expect(taken["is_private_email"] == .bool(true))
        // Tokens say both for 60 days.
        let claims = try fixture.claims(try fixture.signIn()["id_token"])
        #expect(claims["sub"] == taken["sub"] && claims["transfer_sub"] == transferSub)
        fixture.now += AppleState.transferWindow
        #expect(try fixture.claims(try fixture.signIn()["id_token"])["transfer_sub"] == nil)
        #expect(
            refusal { try ask(taking, nil, team: "TEAMBBBBBB", key: "KEYBBBBBBB") }?.cause.contains(
                "60 days") == true)
    }
}
