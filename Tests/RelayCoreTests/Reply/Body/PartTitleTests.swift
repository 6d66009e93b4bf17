// The name in a refusal of the part that cannot be rewritten: the name of the file, or plain words;
// never a name that reveals the inbox.

import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct PartTitleTests {
    /// The refusal of a reply with these parts. The last part contains the inbox.
    private static func refusal(
        _ parts: [String], author: String = "anna@inbox.example"
    ) throws -> Refusal {
        let engine = Fixture(evidence: .init()).engine
        let header = HeaderSection([
            HeaderField("From", "<\(author)>"),
            HeaderField("Content-Type", "multipart/mixed; boundary=m"),
        ])
        let content = String(
            decoding: Base64.encode(Array("\u{1}\u{2}\u{3}anna@inbox.example\u{4}".utf8)),
            as: UTF8.self)
        let attached = parts.enumerated().map { index, fields in
            "--m\r\n\(fields)\r\nContent-Transfer-Encoding: base64\r\n\r\n\(index == parts.count - 1 ? content : "AAAA")\r\n"
        }
        let body = "--m\r\nContent-Type: text/plain\r\n\r\nHello\r\n\(attached.joined())--m--\r\n"
        let rewriting = ReplyRewriting(
            engine: engine, account: Fixture.anna, header: header, envelopeSender: author,
            isAutomatic: false, now: Fixture.now,
            hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        let refusal = #expect(throws: Refusal.self) {
            try rewriting.rewrite(body: Array(body.utf8))
        }
        return try #require(refusal)
    }

    private static func named(_ file: String) throws -> Refusal {
        try refusal(["Content-Type: application/pdf\r\nContent-Disposition: attachment; \(file)"])
    }

    /// A content type such as
    /// `application/vnd.openxmlformats-officedocument.wordprocessingml.document` is not shown to
    /// the user.
    @Test(arguments: [
        ("filename=Offer.pdf", "(\"Offer.pdf\")"),
        ("filename=\"The offer, 2nd.docx\"", "(\"The offer, 2nd.docx\")"),
        ("filename*=utf-8\'\'%C3%9Cbersicht.pdf", "(\"?bersicht.pdf\")"),
        ("filename=\"=?utf-8?Q?Offer_for_you.pdf?=\"", "(\"Offer for you.pdf\")"),
        ("filename*0=Off; filename*1=er.pdf", "(\"Offer.pdf\")"),
        ("filename=\"a\\\"b%c.pdf\"", "(\"a?b?c.pdf\")"),
        (
            "filename=\"\(String(repeating: "long", count: 20))\"",
            "(\"\(String(repeating: "long", count: 15))...\")"
        ),
        ("filename=\"  \"", "(the first attachment, a PDF)"),
    ])
    func partTitle_withFileName_namesTheFile(file: String, expected: String) throws {
        let refusal = try Self.named(file)
        #expect(refusal.reply.enhanced == "5.7.7")
        #expect(
            refusal.reply.text.contains("cannot be rewritten \(expected); send it"),
            "\(refusal.reply.text)")
        #expect(
            refusal.reason.detail == "part 2, application/pdf", "the log shows no name of a file")
    }

    @Test(arguments: [
        "filename=\"anna@inbox.example.pdf\"", "filename=\"letter of ANNA@Inbox.Example.pdf\"",
        "filename=\"anna%40inbox.example\"",
        "filename*=utf-8\'\'anna%40inbox.example.pdf",
        "filename*0=\"anna@in\"; filename*1=\"box.example\"",
        "filename=\"=?utf-8?B?YW5uYUBpbmJveC5leGFtcGxl?=\"",
        "filename=\"YW5uYUBpbmJveC5leGFtcGxl\"",
        "filename=\"anna=inbox.example.pdf\"",
        "filename=\"\(String(repeating: "x", count: 70)) anna@inbox.example.pdf\"",
        "filename=\"anna.second.pdf\"",
    ])
    func partTitle_fileNameWithTheInbox_omitsIt(file: String) throws {
        let refusal = try Self.named(file)
        #expect(
            refusal.reply.text.contains("cannot be rewritten (an attachment); send it"),
            "\(refusal.reply.text)")
        #expect(!"\(refusal)".contains("anna"), "\(refusal)")
    }

    @Test func partTitle_withoutFileName_countsTheAttachment() throws {
        let pdf = "Content-Type: application/pdf"
        #expect(try Self.refusal([pdf]).reply.text.contains("(the first attachment, a PDF)"))
        #expect(
            try Self.refusal([pdf, "Content-Type: text/html", "Content-Type: image/gif"]).reply.text
                .contains(
                    "(the second attachment, a picture)"))
        #expect(
            try Self.refusal(Array(repeating: pdf, count: 12)).reply.text.contains(
                "(the 12th attachment, a PDF)"))
        #expect(
            try Self.refusal(Array(repeating: pdf, count: 23)).reply.text.contains(
                "(the 23rd attachment, a PDF)"))
    }

    /// Types and charsets are also chosen by the message.
    @Test func partTitle_typeWithTheInbox_omitsIt() throws {
        let refusal = try Self.refusal(["Content-Type: application/anna.second"])
        #expect(!"\(refusal)".contains("anna"), "\(refusal)")
        #expect(refusal.reason.detail == "an attachment")
    }
}
