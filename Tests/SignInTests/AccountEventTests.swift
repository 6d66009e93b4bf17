// Events in the form of Apple's notifications, out and in.

import Foundation
import InternetMessage
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct AccountEventTests {
    private let now = TestIssuer.now

    private func outgoing(_ kind: AccountEventKind = .emailDisabled) -> OutgoingEvent {
        OutgoingEvent(
            issuer: TestIssuer.iss, audience: TestIssuer.audience, id: "ev_1", issuedAt: now,
            kind: kind, subject: "s1",
            relayAddress: AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example"),
            happenedAt: now * 1000 - 5)
    }

    private func verify(_ body: [UInt8], _ keys: JWKSet, now: Int64? = nil) throws -> IncomingEvent
    {
        try IncomingEvent.verify(
            IncomingEvent.payload(of: body), issuer: TestIssuer.configuration(), keys: keys,
            now: now ?? self.now
        ) { $0 == TestIssuer.audience }
    }

    private func check(_ body: [UInt8], _ keys: JWKSet, now: Int64? = nil) -> String {
        do {
            _ = try verify(body, keys, now: now)
            return "valid"
        } catch let rejection as TokenRejection {
            return rejection.check.rawValue
        } catch {
            return "\(error)"
        }
    }

    /// The form of Apple's documentation: `events` is a text with JSON in it.
    @Test func outgoingEvent_signed_hasApplesForm() async throws {
        let issuer = try await TestIssuer()
        let body = try outgoing().body(signedWith: issuer.key)
        let outer = try #require(
            try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        #expect(outer.keys.sorted() == ["payload"])
        let token = try CompactJWS(try #require(outer["payload"] as? String))
        let claims = try StrictJSON.parseObject(token.payload, limit: 10_000)
        #expect(claims.members.map(\.name) == ["iss", "aud", "iat", "jti", "events"])
        #expect(
            claims["events"]?.string
                == #"{"type":"email-disabled","sub":"s1","email":"x7k2m9q4wd@relay.example","is_private_email":"true","#
                + #""event_time":1789999999995}"#)
        // No exp and no nonce: a repetition days later is the same event.
        #expect(claims["exp"] == nil)
    }

    @Test(arguments: AccountEventKind.allCases) func outgoingEvent_everyKind_isReadBack(
        _ kind: AccountEventKind
    ) async throws {
        let issuer = try await TestIssuer()
        let event = try verify(outgoing(kind).body(signedWith: issuer.key), try await issuer.keys())
        #expect(event.kind == kind)
        #expect(event.id == "ev_1")
        #expect(event.subject == "s1")
        #expect(event.audience == TestIssuer.audience)
        #expect(event.isPrivateEmail == true)
        #expect(event.happenedAt == now * 1000 - 5)
        #expect(event.email != nil)
        #expect(!"\(event)".contains("relay.example"))
    }

    private func body(
        _ issuer: TestIssuer, events: JSONValue, _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> [UInt8] {
        var claims: JSONObject = [
            "iss": .string(TestIssuer.iss), "aud": .string(TestIssuer.audience),
            "iat": .integer(now), "jti": "j",
            "events": events,
        ]
        change(&claims)
        return JSONValue.object(["payload": .string(try issuer.key.sign(claims))]).octets
    }

    @Test func incomingEvent_applesVariants_isUnderstood() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        for type in ["account-delete", "account-deleted"] {
            let events = JSONValue.string(#"{"type":"\#(type)","sub":"s","event_time":1508184845}"#)
            let event = try verify(body(issuer, events: events), keys)
            #expect(event.kind == .accountDelete)
            // The example in Apple's documentation is in seconds.
            #expect(event.happenedAt == 1_508_184_845_000)
        }
        let millis = try verify(
            body(
                issuer, events: #"{"type":"consent-revoked","sub":"s","event_time":1508184845123}"#),
            keys)
        #expect(millis.happenedAt == 1_508_184_845_123)
        let without = try verify(
            body(issuer, events: #"{"type":"email-enabled","sub":"s","is_private_email":false}"#),
            keys)
        #expect(without.happenedAt == now * 1000)
        #expect(without.isPrivateEmail == false)
        // Clocks differ. A time in the future counts as now, or it would block all later events.
        let ahead = try verify(
            body(
                issuer,
                events: .string(
                    #"{"type":"email-enabled","sub":"s","event_time":\#((now + 60) * 1000)}"#)),
            keys)
        #expect(ahead.happenedAt == now * 1000)
        // The form of Apple's documentation: an object, in seconds.
        let documented = try verify(
            body(
                issuer,
                events: .object([
                    "type": "email-disabled", "sub": "s", "event_time": .integer(1_508_184_845),
                ])), keys)
        #expect(documented.kind == .emailDisabled && documented.happenedAt == 1_508_184_845_000)
        // To be acknowledged and ignored.
        #expect(
            try verify(body(issuer, events: #"{"type":"something-new","sub":"s"}"#), keys).kind
                == nil)
    }

    @Test func incomingEvent_timeOutOfRange_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        func check(_ time: String) throws -> String {
            self.check(
                try body(
                    issuer,
                    events: .string(#"{"type":"consent-revoked","sub":"s","event_time":\#(time)}"#)),
                keys)
        }
        for bad in [
            "99999999999999", "\((now + 61) * 1000)", "\(now + 61)", "0", "1", "946684799", "-1",
            "1e300", "1508184845.5",
            "\"1508184845\"", "null",
        ] {
            #expect(try check(bad) == "claims", "\(bad)")
        }
        for good in [
            "946684800", "946684800000", "\(now)", "\(now * 1000)", "\((now + 60) * 1000 + 999)",
            "1.508184845e9",
        ] {
            #expect(try check(good) == "valid", "\(good)")
        }
    }

    @Test func incomingEvent_afterSevenDays_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        let body = try outgoing().body(signedWith: issuer.key)
        #expect(check(body, keys, now: now + 7 * 86_400) == "valid")
        #expect(check(body, keys, now: now + 7 * 86_400 + 1) == "iat")
        #expect(check(body, keys, now: now - 60) == "valid")
        #expect(check(body, keys, now: now - 61) == "iat")
    }

    @Test func incomingEvent_wrongClaim_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        let good: JSONValue = #"{"type":"email-enabled","sub":"s"}"#
        #expect(check(try body(issuer, events: good), keys) == "valid")
        #expect(
            check(try body(issuer, events: good) { $0["iss"] = "https://other.example" }, keys)
                == "iss")
        #expect(
            check(try body(issuer, events: good) { $0["aud"] = "com.example.other" }, keys) == "aud"
        )
        #expect(check(try body(issuer, events: good) { $0["jti"] = nil }, keys) == "claims")
        #expect(check(try body(issuer, events: good) { $0["jti"] = "" }, keys) == "claims")
        #expect(check(try body(issuer, events: good) { $0["iat"] = nil }, keys) == "iat")
        #expect(
            check(try body(issuer, events: good) { $0["exp"] = .integer(now - 61) }, keys) == "exp")
        #expect(check(try body(issuer, events: .null), keys) == "claims")
        // An object of another kind: a security event token's, by URI (RFC 8417).
        #expect(
            check(
                try body(issuer, events: .object(["https://schemas.example/event": .object([:])])),
                keys) == "claims")
        #expect(check(try body(issuer, events: .array(["type"])), keys) == "claims")
        #expect(check(try body(issuer, events: "not json"), keys) == "claims")
        #expect(check(try body(issuer, events: #"{"type":"email-enabled"}"#), keys) == "sub")
        #expect(check(try body(issuer, events: #"{"sub":"s"}"#), keys) == "claims")
        #expect(
            check(try body(issuer, events: #"{"type":"email-enabled","sub":"s","sub":"t"}"#), keys)
                == "claims")
        #expect(
            check(
                try body(issuer, events: #"{"type":"email-enabled","sub":"s","event_time":"x"}"#),
                keys) == "claims")
        #expect(
            check(
                try body(
                    issuer, events: #"{"type":"email-enabled","sub":"s","is_private_email":1}"#),
                keys) == "claims")
        let other = try await TestIssuer()
        #expect(check(try body(other, events: good), keys) == "kid")
    }

    @Test func incomingEvent_invalidBody_isRefused() async throws {
        let keys = try await TestIssuer().keys()
        for body in [
            "", "{}", "[]", "{\"payload\":1}", "{\"payload\":\"a\",\"payload\":\"b\"}",
            "payload=abc", "{\"payload\":\"a.b.c\"}",
        ] {
            #expect(check(Array(body.utf8), keys) == "format", "\(body)")
        }
        #expect(
            check([UInt8](repeating: 0x20, count: IncomingEvent.maximumBodyLength + 1), keys)
                == "format")
    }

    /// An identity token of the same issuer is signed with the same key, but is not an event.
    @Test func incomingEvent_identityToken_isRefused() async throws {
        let issuer = try await TestIssuer()
        let body = JSONValue.object(["payload": .string(try issuer.token())]).octets
        #expect(check(body, try await issuer.keys()) == "claims")
    }

    /// Nor is an event an identity token: it has neither exp nor sub.
    @Test func identityToken_thatIsAnEvent_isRefused() async throws {
        let issuer = try await TestIssuer()
        let token = try CompactJWS(try issuer.key.sign(outgoing().claims))
        let keys = try await issuer.keys()
        #expect(throws: TokenRejection.self) {
            try TokenChecks.verify(
                token, issuer: TestIssuer.configuration(), keys: keys,
                audience: TestIssuer.audience, nonce: nil, now: now)
        }
    }
}
