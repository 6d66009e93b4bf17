// A hit of the leak check is an incident: the message is refused, the incident counted. The log of it is in MilterTests.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

/// A rewriter that overlooks everything.
struct BlindRewriter: BodyRewriting {
    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        RewrittenBody(contentFields: [], body: nil, reasons: [])
    }
}

@Suite(.blocking) struct IncidentTests {
    @Test func whatTheRewritingOverlooksIsRefusedAndCounted() {
        let sound = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let engine = sound.engine.rewriting { _, _ in BlindRewriter() }
        let blind = Fixture(directory: sound.directory, engine: engine)
        let reverse =
            sound.engine.tokens.reverse(
                account: Fixture.anna.number, correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart + "@relay.example"
        let message = "From: anna@inbox.example\r\nTo: \(reverse)\r\n\r\nWrite to anna.second@home.example\r\n"

        #expect(sound.play(from: "anna@inbox.example", to: [reverse], message: message).decision.outcome == .relay)
        #expect(sound.directory.counted(.leakIncident) == 0)
        guard case .refuse(let refusal) = blind.play(from: "anna@inbox.example", to: [reverse], message: message).decision.outcome
        else {
            Issue.record("the message passed")
            return
        }
        #expect("\(refusal.reply.code) \(refusal.reply.enhanced)" == "550 5.7.7")
        #expect(refusal.reason == RelayReason(RelayReason.leakIncident, "message body"))
        #expect(!refusal.reply.text.contains("anna"))
        #expect(sound.directory.counted(.leakIncident) == 1)
        // What has no name in it passes, whoever rewrote it.
        #expect(
            blind.play(
                from: "anna@inbox.example", to: [reverse], message: message.replacing("anna.second@home.example", with: "us")
            ).decision.outcome == .relay)
        #expect(sound.directory.counted(.leakIncident) == 1)
    }
}
