// A hit of the leak check is an incident: the message is refused, and the incident is counted.
// MilterTests tests its log.

import InternetMessage
import LeakSearch
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

/// A rewriter that misses everything.
struct BlindRewriter: BodyRewriting {
    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        let content = StretchMap.Content.text(
            StretchMap.Form(), [StretchMap.Stretch(end: body.count, kind: .typed)])
        return RewrittenBody(
            contentFields: [], body: nil, reasons: [], map: StretchMap(body.count, content))
    }
}

/// A rewriter with a map that omits the end of the body.
struct ForgetfulRewriter: BodyRewriting {
    let rewriter: BodyRewriter

    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        var rewritten = try rewriter.rewrite(content: header, body: body)
        var map = StretchMap()
        for piece in rewritten.map.pieces.dropLast() {
            map.append(piece.end - map.end, piece.content)
        }
        rewritten.map = map
        return rewritten
    }
}

@Suite(.blocking) struct LeakIncidentTests {
    @Test func map_thatLeavesOctetsOut_isAnIncident() {
        let sound = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let engine = sound.engine.rewriting { names, budget in
            ForgetfulRewriter(rewriter: BodyRewriter(names: names, budget: budget))
        }
        let reverse =
            sound.engine.tokens.reverse(
                account: Fixture.anna.number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart + "@relay.example"
        let decision = Fixture(directory: sound.directory, engine: engine).play(
            from: "anna@inbox.example", to: [reverse],
            message: "From: anna@inbox.example\r\nTo: \(reverse)\r\n\r\nNothing is in it.\r\n"
        ).decision
        guard case .refuse(let refusal) = decision.outcome else {
            Issue.record("the message passed")
            return
        }
        #expect(refusal.reason == RelayReason(.leakIncident, "message body"))
    }

    @Test func overlookedAddress_inTypedText_isRefusedAndCounted() {
        let sound = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let engine = sound.engine.rewriting { _, _ in BlindRewriter() }
        let blind = Fixture(directory: sound.directory, engine: engine)
        let reverse =
            sound.engine.tokens.reverse(
                account: Fixture.anna.number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart + "@relay.example"
        let message =
            "From: anna@inbox.example\r\nTo: \(reverse)\r\n\r\nWrite to anna.second@home.example\r\n"

        #expect(
            sound.play(from: "anna@inbox.example", to: [reverse], message: message).decision.outcome
                == .relay)
        #expect(sound.directory.counted(.leakIncident) == 0)
        guard
            case .refuse(let refusal) = blind.play(
                from: "anna@inbox.example", to: [reverse], message: message
            ).decision.outcome
        else {
            Issue.record("the message passed")
            return
        }
        #expect("\(refusal.reply.code) \(refusal.reply.enhanced)" == "550 5.7.7")
        #expect(refusal.reason == RelayReason(.leakIncident, "message body"))
        #expect(!refusal.reply.text.contains("anna"))
        #expect(sound.directory.counted(.leakIncident) == 1)
        // A message without a name passes with any rewriter.
        #expect(
            blind.play(
                from: "anna@inbox.example", to: [reverse],
                message: message.replacing("anna.second@home.example", with: "us")
            ).decision.outcome == .relay)
        #expect(sound.directory.counted(.leakIncident) == 1)
    }

    private static func encoded(_ text: String) -> String {
        String(decoding: Base64.encodeUnbroken(Array(text.utf8)), as: UTF8.self)
    }

    private func reason(_ text: String, in fixture: Fixture) -> RelayReason? {
        let reverse =
            fixture.engine.tokens.reverse(
                account: Fixture.anna.number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart + "@relay.example"
        let message = "From: anna@inbox.example\r\nTo: \(reverse)\r\nMIME-Version: 1.0\r\n" + text
        let outcome = fixture.play(from: "anna@inbox.example", to: [reverse], message: message)
            .decision.outcome
        guard case .refuse(let refusal) = outcome else { return nil }
        return refusal.reason
    }

    /// The user's own mail with a wrong declaration of its encoding: rewritten or refused, without
    /// a fault of the relay.
    @Test(arguments: [
        ("utf-16", "8bit", "Write to anna@inbox.example please"),
        ("utf-32", "7bit", "Write to anna@inbox.example please"),
        ("utf-8", "base64", "Not encoded: anna@inbox.example"),
        (
            "utf-8", "base64",
            "\(encoded("Hello from here\r\n"))\r\n\r\n-- \r\nsent by anna@inbox.example"
        ),
        ("utf-8", "quoted-printable", "50 % = half =4 =\r\n=ZZ anna@inbox.example"),
    ])
    func usersOwnMail_brokenEncoding_isNoIncident(charset: String, encoding: String, text: String) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let fields =
            "Content-Type: text/plain; charset=\(charset)\r\nContent-Transfer-Encoding: \(encoding)\r\n"
        let code = reason("\(fields)\r\n\(text)\r\n", in: fixture)?.code
        #expect(code == nil || code == .unrewritablePart)
        #expect(fixture.directory.counted(.leakIncident) == 0)
    }

    /// The rewriting reads two levels of encoding. Deeper ones are the sender's own.
    @Test func overlookedAddress_inEncodedTextAlone_isNoIncident() {
        let sound = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let blind = Fixture(
            directory: sound.directory, engine: sound.engine.rewriting { _, _ in BlindRewriter() })
        let run = Self.encoded("to be read by a program: anna@inbox.example")
        #expect(reason("\r\nSee \(run)\r\n", in: blind)?.code == .unrewritablePart)
        #expect(sound.directory.counted(.leakIncident) == 0)
        #expect(
            reason("\r\nSee \(run) and anna@inbox.example\r\n", in: blind)?.code == .leakIncident)
        #expect(sound.directory.counted(.leakIncident) == 1)
    }
}
