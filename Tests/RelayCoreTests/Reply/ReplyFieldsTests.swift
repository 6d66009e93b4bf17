// The header fields of a reply that are sent: a closed list.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ReplyFieldsTests {
    /// Fields that the relay writes, the user's own fields that are sent after rewriting, and
    /// fields that describe the body.
    private static let documented: Set<String> = [
        "From", "To", "Cc", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted",
        "X-Postern-Mark", "Feedback-ID",
        "Subject", "MIME-Version", "Importance", "Priority", "X-Priority", "X-MSMail-Priority",
        "Sensitivity",
        "X-Auto-Response-Suppress", "Precedence",
        "Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Content-ID",
        "Content-Description",
        "Content-Language", "Content-Location", "Content-Duration", "Content-Features",
    ]

    private static let known: [String] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../Vectors/field-names.txt")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }()

    @Test func replyFields_everyKnownName_onlyDocumentedPass() throws {
        try #require(Self.known.count > 150)
        let fixture = Fixture(evidence: .signed("inbox.example"))
        let correspondent = try #require(AddrSpec(envelope: "billing@app.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: correspondent
        ).localPart
        let own = [
            "From": "anna@inbox.example", "To": "\(reverse)@relay.example", "Subject": "Hello",
            "MIME-Version": "1.0",
            "Content-Type": "text/plain; charset=utf-8", "Content-Transfer-Encoding": "8bit",
            "Date": "Mon, 1 Sep 2025 10:00:00 +0000", "Message-ID": "<1@mail.home.example>",
        ]
        let fields = Self.known.filter { !["Bcc", "Resent-Bcc"].contains($0) }.map {
            "\($0): \(own[$0] ?? "value")\r\n"
        }
        let decision = fixture.play(
            from: "anna@inbox.example", to: ["\(reverse)@relay.example"],
            message: fields.joined() + "\r\nHello\r\n"
        ).decision
        guard case .relay = decision.outcome else {
            Issue.record("the reply was not relayed: \(decision.outcome)")
            return
        }
        let message = Message.parse(Array((fields.joined() + "\r\nHello\r\n").utf8))
        var outgoing = ModifiedMessage(
            header: message.header, body: message.body, sender: "", recipients: [])
        outgoing.apply(decision.modifications)
        let names = Set(outgoing.header.map(\.name))
        #expect(names.subtracting(Self.documented).isEmpty)
        #expect(names.isSuperset(of: ["From", "To", "Subject", "Importance", "Content-Type"]))
    }
}
