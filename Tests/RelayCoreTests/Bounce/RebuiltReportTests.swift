// The team's text returns unchanged or not at all, so that no answer shows which guess of the inbox
// was right.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct RebuiltReportTests {
    /// The header fields of a report that are the original's, as the team sees them.
    private static func original(
        subject: String, id: String, returned: (HeaderSection) -> HeaderSection = { $0 }
    ) throws -> [String] {
        let forward = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let text =
            "From: billing@app.example\r\nTo: annarelay2@relay.example\r\nSubject: \(subject)\r\nMessage-ID: <\(id)>\r\n\r\nHello\r\n"
        let sent = forward.play(
            from: "bounces@app.example", to: ["annarelay2@relay.example"], message: text)
        let parsed = Message.parse(Array(text.utf8))
        var message = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: "bounces@app.example", recipients: [])
        message.apply(sent.decision.modifications)
        let header = returned(HeaderSection(message.header))
        let report = """
            From: MAILER-DAEMON@inbox.example\r
            Subject: Undelivered\r
            MIME-Version: 1.0\r
            Content-Type: multipart/report; report-type=delivery-status; boundary=B\r
            \r
            --B\r
            Content-Type: message/delivery-status\r
            \r
            Reporting-MTA: dns; mx.inbox.example\r
            \r
            Final-Recipient: rfc822; anna@inbox.example\r
            Action: failed\r
            Status: 5.7.1\r
            Diagnostic-Code: smtp; 550 5.7.1 your message "\(subject)" looks like spam\r
            \r
            --B\r
            Content-Type: text/rfc822-headers\r
            \r
            \(String(decoding: header.serialized, as: UTF8.self))\r
            --B--\r

            """
        let fixture = Fixture(directory: forward.directory, engine: forward.engine)
        let answer = fixture.play(from: "", to: [message.sender], message: report)
        #expect(answer.decision.outcome == .relay)
        var out = ModifiedMessage(header: HeaderSection(), body: [], sender: "", recipients: [])
        out.apply(answer.decision.modifications)
        return String(decoding: out.bytes, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    /// Subject and Message-ID are treated alike for a right and a wrong guess.
    @Test func bounceReport_rightOrWrongGuess_isAlike() throws {
        let right = try Self.original(
            subject: "Is it anna@inbox.example?", id: "anna@inbox.example.7@app.example")
        let wrong = try Self.original(
            subject: "Is it jane@inbox.example?", id: "jane@inbox.example.7@app.example")
        #expect(right == wrong.map { $0.replacing("jane", with: "anna") })
        #expect(
            right.contains("Subject: Is it anna@inbox.example?")
                && right.contains("Message-ID: <anna@inbox.example.7@app.example>"))
        #expect(!right.contains { $0.contains("spam") })
    }

    /// The witness confirms a field even if it was folded again. A changed field, or one without a
    /// witness, is left out.
    @Test func bounceReport_fieldNotWitnessed_isLeftOut() throws {
        let folded = try Self.original(subject: "Your order 4711", id: "4711@app.example") {
            header in
            HeaderSection(
                header.fields.map {
                    $0.isNamed("Subject") ? HeaderField("Subject", "Your\r\n order 4711") : $0
                })
        }
        #expect(
            folded.contains("Subject: Your order 4711")
                && folded.contains("Message-ID: <4711@app.example>"))
        let marked = try Self.original(subject: "Your order 4711", id: "4711@app.example") {
            header in
            HeaderSection(
                header.fields.map {
                    $0.isNamed("Subject")
                        ? HeaderField("Subject", "[anna@inbox.example] Your order 4711") : $0
                })
        }
        #expect(
            !marked.contains { $0.contains("order 4711") || $0.contains("anna@") }
                && marked.contains("Message-ID: <4711@app.example>"))
        let bare = try Self.original(subject: "Your order 4711", id: "4711@app.example") { header in
            HeaderSection(header.fields.filter { !$0.isNamed(OriginalWitness.fieldName) })
        }
        #expect(!bare.contains { $0.contains("4711") })
    }

    /// A Date may contain text, so it is left out without a witness.
    @Test func bounceReport_dateNotWitnessed_isLeftOut() throws {
        let told = try Self.original(subject: "Your order 4711", id: "4711@app.example") { header in
            HeaderSection(header.fields + [HeaderField("Date", "anna at inbox example")])
        }
        #expect(
            told.contains("Subject: Your order 4711") && !told.contains { $0.contains("anna at") })
    }
}
