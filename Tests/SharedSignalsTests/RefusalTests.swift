// Faults of messages, and the form of our own.

import SharedSignals
import Support
import TestSupport
import Testing

@Suite(.blocking) struct SharedSignalsRefusalTests {
    private static func object(_ text: String) throws -> JSONObject {
        try StrictJSON.parseObject(Array(text.utf8), limit: text.utf8.count)
    }

    @Test(arguments: [
        #""sub":"x""#, #""exp":9"#, #""jti":7"#, #""jti":"""#, #""iat":"now""#, #""iat":-1"#,
        #""aud":[1]"#, #""aud":{}"#,
        #""events":{}"#,
        #""events":"{}""#, #""events":{"urn:a":1}"#, #""sub_id":"x""#,
        #""sub_id":{"format":"email"}"#,
        #""sub_id":{"email":"a@b.example"}"#,
        #""txn":1"#, #""toe":"x""#,
    ]) func securityEventToken_ruleBroken_isRefused(_ wrong: String) throws {
        let good =
            #"{"iss":"https://i.example","jti":"j","iat":1,"aud":"a","sub_id":{"format":"opaque","id":"1"},"events":{"urn:a":{}}}"#
        #expect(try SecurityEventToken(claims: Self.object(good)).event.uri == "urn:a")
        var claims = try Self.object(good)
        let member = try #require(try Self.object("{\(wrong)}").members.first)
        claims[member.name] = member.value
        #expect(throws: SharedSignalsError.self) { try SecurityEventToken(claims: claims) }
    }

    @Test func securityEventToken_severalEvents_takesKnownOne() throws {
        let claims = try Self.object(
            #"{"iss":"i","jti":"j","iat":1,"sub_id":{"format":"opaque","id":"1"},"events":{"urn:a":{},"urn:b":{"x":1}}}"#
        )
        #expect(
            try SecurityEventToken(claims: claims, known: ["urn:b"]).event.payload["x"]
                == .integer(1))
        #expect(try SecurityEventToken(claims: claims).event.uri == "urn:a")
    }

    @Test(arguments: [
        #"{"format":"aliases","identifiers":[]}"#,
        #"{"format":"aliases","identifiers":[{"format":"aliases","identifiers":[]}]}"#,
        #"{"format":"complex"}"#,
        #"{"format":"complex","user":{"format":"complex","user":{"format":"opaque","id":"1"}}}"#,
        #"{"format":"complex","user":"x"}"#, #"{"format":""}"#, #"{"format":"iss_sub","iss":"i"}"#,
        #"{"format":"email","email":null}"#,
    ]) func subjectIdentifier_invalid_isRefused(_ text: String) throws {
        let json = try Self.object(text)
        #expect(throws: SharedSignalsError.self) { try SubjectIdentifier(json) }
    }

    @Test(arguments: [
        #"{"delivery":1}"#, #"{"delivery":{"method":"urn:ietf:rfc:8935"}}"#,
        #"{"delivery":{"method":"carrier-pigeon"}}"#,
        #"{"events_requested":"all"}"#, #"{"events_requested":[1]}"#, #"{"description":[]}"#,
        #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"https://r.example/","authorization_header":"a\r\nb: c"}}"#,
    ]) func streamRequest_invalid_isRefused(_ text: String) throws {
        let json = try Self.object(text)
        #expect(throws: SharedSignalsError.self) { try StreamRequest(json, isNew: true) }
    }

    @Test(arguments: [
        #"{"maxEvents":-1}"#, #"{"maxEvents":"1"}"#, #"{"maxEvents":1.5}"#,
        #"{"returnImmediately":1}"#, #"{"ack":"x"}"#,
        #"{"ack":[1]}"#,
        #"{"setErrs":[]}"#, #"{"setErrs":{"x":"y"}}"#,
    ]) func pollRequest_invalid_isRefused(_ text: String) throws {
        let json = try Self.object(text)
        #expect(throws: SharedSignalsError.self) { try PollRequest(json) }
    }

    @Test func securityEventToken_ofPostern_hasInteroperabilityForm() {
        let event = SecurityEvent.caep(
            SecurityEventURI.sessionRevoked,
            of: .issuerSubject(issuer: "https://i.example", subject: "s"), at: 7, by: .user,
            reason: "why")
        let claims = SecurityEventToken(
            issuer: "https://i.example", audience: "app", id: "j", issuedAt: 8, transaction: "t",
            happenedAt: 7, event: event
        ).claims
        #expect(
            JSONValue.object(claims).text
                == #"{"iss":"https://i.example","aud":"app","iat":8,"jti":"j","txn":"t","toe":7,"sub_id":{"format":"iss_sub","iss":"https://i.example","sub":"s"},"events":{"https://schemas.openid.net/secevent/caep/event-type/session-revoked":{"event_timestamp":7,"initiating_entity":"user","reason_admin":{"en":"why"}}}}"#
        )
        #expect("\(event.subject)" == "<subject: iss_sub>")
    }
}
