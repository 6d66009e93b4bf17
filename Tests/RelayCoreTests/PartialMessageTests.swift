// Pieces of divided messages (RFC 2046 section 5.2.2): the relay never sees the complete message.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct PartialMessageTests {
    private static let users = AuthenticationEvidence(
        spf: [SPFFinding(result: .pass, identity: .mailFrom, domain: "inbox.example", reason: "")])

    private static func message(from author: String, to recipient: String, _ type: String) -> String
    {
        "From: \(author)\r\nTo: \(recipient)\r\nMessage-ID: <1@app.example>\r\nMIME-Version: 1.0\r\nContent-Type:\(type)\r\n\r\n"
            + "From: Else <else@app.example>\r\nSubject: Inside\r\n\r\nmy inbox is anna@inb"
    }

    private static func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    /// The type in the forms that programs accept when they join pieces.
    private static let pieces = [
        " message/partial; id=\"1@x.example\"; number=1; total=2", "Message/PARTIAL;number=2;id=1",
        "\r\n message/partial",
        " message/partial (one of three); number=3",
    ]

    @Test(arguments: pieces) func forward_pieceOfAMessage_isRefused(_ type: String) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let answer = fixture.play(
            from: "bounce@app.example", to: ["annarelay2@relay.example"],
            message: Self.message(from: "billing@app.example", to: "annarelay2@relay.example", type)
        )
        #expect(
            Self.code(answer.decision) == "550 5.6.1"
                && answer.decision.reasons.map(\.code) == [.partialMessage])
    }

    /// Each piece has a half of the inbox, which no search finds.
    @Test(arguments: pieces) func reply_pieceOfAMessage_isRefused(_ type: String) throws {
        let fixture = Fixture(evidence: Self.users)
        let correspondent = try #require(AddrSpec(envelope: "billing@app.example"))
        let reverse =
            fixture.engine.tokens.reverse(
                account: Fixture.anna.number, correspondent: correspondent
            ).localPart
            + "@relay.example"
        let answer = fixture.play(
            from: "anna@inbox.example", to: [reverse],
            message: Self.message(from: "anna@inbox.example", to: reverse, type))
        #expect(
            Self.code(answer.decision) == "550 5.6.1"
                && answer.decision.reasons.map(\.code) == [.partialMessage])
    }

    @Test(arguments: [
        " text/partial", " message/rfc822", " message/partially",
        " text/plain; name=\"message/partial\"",
    ])
    func forward_otherType_isRelayed(_ type: String) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let answer = fixture.play(
            from: "bounce@app.example", to: ["annarelay2@relay.example"],
            message: Self.message(from: "billing@app.example", to: "annarelay2@relay.example", type)
        )
        #expect(Self.code(answer.decision) == "relay")
    }
}
