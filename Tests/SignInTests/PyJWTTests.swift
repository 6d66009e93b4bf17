// Tokens and events between Postern and PyJWT: each verifies the other's signatures.

import Foundation
import InternetMessage
import SignIn
import Support
import TestSupport
import Testing

@Suite(
    .blocking,
    .enabled(
        if: Files.python != nil,
        "skipped: no Python with PyJWT and cryptography; see make test-tools"))
struct PyJWTTests {
    private let script = Files.own.appendingPathComponent("Tools/pyjwt_check.py").path

    @Test func token_signedByPostern_isTakenByPyJWT() async throws {
        let (active, next) = (
            try IdentitySigningKey.generate().key, try IdentitySigningKey.generate().key
        )
        var content = IdentityTokenContent(
            issuer: TestIssuer.iss, subject: "s1", audience: TestIssuer.audience,
            issuedAt: TestIssuer.now, lifetime: 600)
        content.nonce = "n\u{E9}\"\\"
        content.email = .relay(AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example"))
        content.realUserStatus = .likelyReal
        let events = try AccountEventKind.allCases.map { kind in
            let event = OutgoingEvent(
                issuer: TestIssuer.iss, audience: TestIssuer.audience, id: "ev_\(kind.rawValue)",
                issuedAt: TestIssuer.now,
                kind: kind,
                subject: "s1",
                relayAddress: AddrSpec(localPart: "x7k2m9q4wd", domain: "relay.example"),
                happenedAt: TestIssuer.now * 1000)
            return JSONValue.string(
                String(decoding: try event.body(signedWith: active), as: UTF8.self))
        }
        let question: JSONValue = .object([
            "jwks": .object(
                try StrictJSON.parseObject(
                    PublishedKeys.document([next.publicJWK, active.publicJWK]), limit: 10_000)),
            "token": .string(try active.sign(content.claims)), "aud": .string(TestIssuer.audience),
            "iss": .string(TestIssuer.iss),
            "events": .array(events),
        ])
        let python = try #require(Files.python)
        let output = try Files.run([python, script, "verify"], input: question.text)
        let answer = try StrictJSON.parseObject(Array(output.utf8), limit: 100_000)
        let claims = try #require(answer["claims"]?.object)
        #expect(Set(claims.members.map(\.name)) == Set(content.claims.members.map(\.name)))
        for member in content.claims.members {
            #expect(claims[member.name] == member.value, "\(member.name)")
        }
        #expect(answer["refused"]?.number?.integer == 1)
        let seen = try #require(answer["events"]?.array)
        #expect(
            seen.compactMap { $0.object?["events"]?.object?["type"]?.string }
                == AccountEventKind.allCases.map(\.rawValue))
        #expect(
            seen.compactMap { $0.object?["jti"]?.string }
                == AccountEventKind.allCases.map { "ev_\($0.rawValue)" })
    }

    @Test func token_signedByPyJWT_isTakenByPostern() async throws {
        let python = try #require(Files.python)
        let lines = try Files.run([python, script, "mint"], input: "").split(separator: "\n")
        #expect(lines.count == 40)
        for line in lines {
            let question = try TokenVerificationRequest(line: Array(line.utf8), now: 0) { _ in nil }
            guard
                case .valid(let claims) = await TokenQuestions(issuers: nil, keys: nil).answer(
                    question
                ).outcome
            else {
                Issue.record("\(question.id.text) was refused")
                continue
            }
            #expect(claims?["sub"]?.string == "s")
        }
    }
}
