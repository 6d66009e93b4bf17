// Replies of honest users with text that looks like the inbox but is not, or with only a part of
// the inbox.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct HonestReplyTests {
    private static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

    private func outcome(
        _ body: String, type: String = "text/plain; charset=utf-8", encoding: String = "8bit"
    ) -> String {
        let fixture = Fixture(evidence: .signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "b", domain: "app.example")
        ).localPart
        let head =
            "From: anna@inbox.example\r\nTo: \(reverse)@relay.example\r\nSubject: Re: x\r\nMIME-Version: 1.0\r\n"
        let text =
            "\(head)Content-Type: \(type)\r\nContent-Transfer-Encoding: \(encoding)\r\n\r\n\(body)\r\n"
        let decision = fixture.play(
            from: "anna@inbox.example", to: ["\(reverse)@relay.example"], message: text
        ).decision
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reason.code) \(refusal.reason.detail)"
        }
        return "\(decision.outcome)"
    }

    static let texts = [
        "write to anna.second+shop@home.example.org", "anna.second+shop@home.example.org",
        "anna+shop@inbox.example.org",
        "anna.second@home.example.org and anna@inbox.example.net", "xanna.second@home.example",
        "anna.second@home.exampleshop",
        "https://shop.example/?u=anna.second%2Bshop%40home.example.org",
        base64("My name is anna.second"), base64("anna.second"),
        base64("To: anna.second@"), "\(base64("This is anna.second")) is what I got",
        "token=\(base64("{\"u\":\"anna.second\"}")) ok?",
        "https://shop.example/t/\(base64("x|anna.second"))/end",
        "\(base64("hello anna.second@home")) and the rest is plain",
        "\(base64("{\"mail\":\"anna.second@home.example.org\"}")) plain text behind it",
    ]

    @Test(arguments: texts) func reply_withWhatIsNotTheInbox_isNotRefused(_ text: String) {
        #expect(outcome("Hello,\r\n\(text)\r\nRegards") == "relay")
        #expect(outcome("Hello,\r\n> \(text)\r\n> \(text)\r\nRegards") == "relay")
        #expect(
            outcome(
                "<p>Hello</p><p>\(text)</p><blockquote>\(text)</blockquote>",
                type: "text/html; charset=utf-8") == "relay")
        #expect(outcome(Self.base64("Hello,\r\n\(text)"), encoding: "base64") == "relay")
    }

    /// The encoding ends within the text, or plain text follows it.
    @Test(arguments: texts) func reply_base64WithPlainTextBehind_isNotRefused(_ text: String) {
        let encoded = Self.base64("Hello, I am \(text)")
        // Without padding the end of the encoding is unknown: the reply is refused if a name is in
        // it, without an incident.
        let half = outcome(encoded + "\r\n-- \r\nSent from my phone", encoding: "base64")
        #expect(
            half == "relay"
                || !encoded.hasSuffix("=")
                    && half == "unrewritable-part message text: damaged base64"
        )
        #expect(outcome("\(encoded)\r\n\r\nSent from my phone") == "relay")
        for cut in 1...6 {
            #expect(outcome(String(encoded.dropLast(cut)), encoding: "base64") == "relay", "\(cut)")
        }
    }
}
