// Every example of SSF, CAEP, RISC and the RFCs on which they are based, and all that must be
// refused.

import Foundation
import SharedSignals
import Support
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: Folders.hasConformance, Folders.skipped)) struct ExampleTests {
    private static func examples(_ file: String) throws -> [JSONObject] {
        let octets = Array(try Data(contentsOf: Folders.conformance.appending(path: "ssf/\(file)")))
        let examples =
            try StrictJSON.parseObject(octets, limit: 1 << 20)["examples"]?.array?.compactMap(
                \.object) ?? []
        try #require(examples.count > 30)
        return examples
    }

    private static func all() throws -> [JSONObject] {
        try examples("openid-examples.json") + examples("rfc-examples.json")
    }

    /// Whether a claims set of the texts breaks a rule of the framework: those with `sub`, with
    /// `exp`, with no subject.
    private static func rule(_ claims: JSONObject) -> Bool {
        claims["sub"] == nil && claims["exp"] == nil && claims["sub_id"]?.object?["format"] != nil
            && claims["jti"] != nil
    }

    @Test func securityEventToken_everyExample_isReadAndWritten() throws {
        var read = 0
        for example in try Self.all() where example["isSET"] == .bool(true) {
            let claims = try #require(example["json"]?.object)
            guard Self.rule(claims) else {
                // A subject within the event, as in older texts, is read too.
                #expect(
                    (try? SecurityEventToken(claims: claims)) == nil || claims["sub_id"] == nil,
                    "\(example["title"]?.string ?? "")")
                continue
            }
            let token = try SecurityEventToken(claims: claims)
            #expect(token.issuer == claims["iss"]?.string && token.id == claims["jti"]?.string)
            #expect(
                token.transaction == claims["txn"]?.string
                    && token.event.subject.json == claims["sub_id"]?.object)
            let event = try #require(claims["events"]?.object?.members.first)
            #expect(token.event.uri == event.name && .object(token.event.payload) == event.value)
            // Our own form of it has the same members.
            let again = SecurityEventToken(
                issuer: token.issuer, audience: token.audience.first ?? "", id: token.id,
                issuedAt: token.issuedAt,
                transaction: token.transaction, happenedAt: token.happenedAt, event: token.event
            ).claims
            for name in ["iss", "jti", "iat", "txn", "toe", "sub_id"] {
                #expect(again[name] == claims[name], "\(name)")
            }
            #expect(again["events"]?.object?[event.name] == event.value)
            read += 1
        }
        #expect(read >= 20, "only \(read)")
    }

    @Test func subjectIdentifier_everyExample_isReadAsWritten() throws {
        var formats: Set<String> = []
        for example in try Self.all() {
            guard let json = example["json"]?.object, let format = json["format"]?.string else {
                continue
            }
            let subject = try SubjectIdentifier(json)
            #expect(subject.json == json && subject.format == format)
            formats.insert(format)
            // A missing member that the format needs is an error.
            for member in json.members
            where member.name != "format" && !["complex"].contains(format) {
                guard
                    [
                        "email", "iss_sub", "opaque", "account", "uri", "phone_number", "did",
                        "aliases",
                    ].contains(format)
                else {
                    continue
                }
                var less = json
                less[member.name] = nil
                #expect(throws: SharedSignalsError.self) { try SubjectIdentifier(less) }
            }
        }
        #expect(
            formats.isSuperset(of: [
                "email", "iss_sub", "opaque", "account", "phone_number", "did", "aliases",
                "complex",
            ]),
            "\(formats)")
    }

    @Test func streamRequest_everyExample_isUnderstood() throws {
        var understood = 0
        for example in try Self.all() {
            guard let json = example["json"]?.object,
                let first = example["http"]?.array?.first?.string
            else { continue }
            switch first.split(separator: " ").prefix(2).joined(separator: " ") {
            case "POST /ssf/stream":
                let request = try StreamRequest(json, isNew: true)
                #expect(
                    request.eventsRequested == json["events_requested"]?.array?.compactMap(\.string)
                )
            case "PATCH /ssf/stream", "PUT /ssf/stream":
                #expect(try StreamRequest(json, isNew: false).streamID == json["stream_id"]?.string)
            case "POST /ssf/status":
                #expect(try StatusRequest(json).status.rawValue == json["status"]?.string)
            case let line where line.hasPrefix("POST /ssf/subject"):
                #expect(try SubjectRequest(json).streamID == json["stream_id"]?.string)
            case let line where line.hasPrefix("POST /ssf/verif"):
                #expect(try VerificationRequest(json).state == json["state"]?.string)
            case "POST /Events":
                let poll = try PollRequest(json)
                #expect(poll.acknowledged == json["ack"]?.array?.compactMap(\.string) ?? [])
                #expect(poll.returnImmediately == json["returnImmediately"]?.bool ?? false)
                #expect(poll.refused.count == json["setErrs"]?.object?.members.count ?? 0)
            default: continue
            }
            understood += 1
        }
        #expect(understood >= 10, "only \(understood)")
    }

    @Test func pushError_everyExample_isKnown() throws {
        let errors = try Self.examples("rfc-examples.json").compactMap { $0["json"] }.filter {
            $0.object?["err"] != nil
        }
        #expect(errors.count >= 3)
        #expect(errors.compactMap(SETError.init).count == errors.count)
    }
}
