// The replies in docs/MAIL-REPLIES.md equal those that the relay makes. POSTERN_TEST_RECORD=1
// writes them again.

import Foundation
import PairTesting
import TestSupport
import Testing

@Suite(.blocking) struct ReplyDocumentTests {
    /// Programs by the id of their form, with their common name.
    private static let programs = [
        ("gmail-web-reply", "Gmail in a browser"), ("outlook-2016-reply", "Outlook 2016"),
        ("owa-reply", "Outlook on the web"),
        ("outlook-ios-reply", "Outlook on iOS"),
        ("apple-ios-reply", "Mail on iOS"),
        ("thunderbird-inline", "Thunderbird, answered between the lines"),
        ("yahoo-reply", "Yahoo Mail"),
        ("exchange-oof", "An absence notice of Exchange"),
    ]

    private static let document = DocumentSection(
        "replies", by: "ReplyDocumentTests", in: "MAIL-REPLIES.md")

    private static let mail =
        """
        From: Juice Shop <orders@juice.example>\r
        To: annarelay2@relay.example\r
        Subject: Your order 4711\r
        Date: Fri, 21 Nov 2025 05:00:00 +0000\r
        Message-ID: <4711@juice.example>\r
        MIME-Version: 1.0\r
        Content-Type: text/plain; charset=utf-8\r
        \r
        Your order 4711 is on its way.\r
        Follow it at https://track.carrier.example/4711?to=jane.k77x@home.example\r
        Questions? Write to help@juice.example.\r

        """

    /// The words of a message: its first text.
    private static func words(_ part: ReadPart) -> String? {
        if part.type.elementsEqual("text/plain".utf8) || part.type.elementsEqual("text/html".utf8) {
            return String(decoding: part.content.filter { $0 != 0x0D }, as: UTF8.self)
        }
        return part.parts.lazy.compactMap(words).first
    }

    private static func section(_ id: String, _ title: String) throws -> String {
        let relay = PairRelay(forms: PairTests.forms)
        let form = try #require(PairTests.forms.firstIndex { $0.id.utf8.elementsEqual(id.utf8) })
        let pair = PairSpec(seed: 1, form: form, shape: .plain, plants: [])
        let seen = relay.see(Array(mail.utf8), from: "bounces@juice.example") {
            let answer = ProgramAnswer(PairTests.forms[form], to: $0, pair)
            return (answer.octets, answer.sender, answer.recipients)
        }
        let (sent, arrived) = (ReadPart(seen.sent), ReadPart(try #require(seen.octets)))
        func fence(_ part: ReadPart) -> String {
            let text = words(part) ?? ""
            // White space at line ends is not shown, and editors remove it.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
                String(
                    decoding: line.utf8.reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed(),
                    as: UTF8.self)
            }
            let shown = lines.joined(separator: "\n").trimmingCharacters(in: .newlines)
            return "```text\nSubject: \(part.text("subject"))\n\n\(shown)\n```\n"
        }
        return
            "### \(title)\n\nThe user sends:\n\n\(fence(sent))\nThe team gets:\n\n\(fence(arrived))"
    }

    @Test func mailDocument_repliesOfTenPrograms_areThoseOfTheRelay() throws {
        #expect(
            try Self.document.holds(
                try Self.programs.map { try Self.section($0.0, $0.1) }.joined(separator: "\n")))
    }
}
