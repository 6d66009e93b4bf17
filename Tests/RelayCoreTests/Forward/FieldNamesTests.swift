// The table of fields with addresses or links, and every way in which a field or a link of a
// forward is written.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Testing

@testable import RelayCore

struct FieldNamesTableTests {
    @Test func table_isThatOfTheDocs() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let lines = try String(contentsOf: root.appending(path: "docs/MAIL.md"), encoding: .utf8)
            .split(separator: "\n")
        let head = try #require(lines.firstIndex(of: "| fields | in a forward | in a reply |"))
        let shown = lines[(head + 2)...].prefix { $0.hasPrefix("|") }
        let rows = FieldNames.rows.map { row in
            "| \(row.names.map { "`\($0)`" }.joined(separator: ", ")) | \(row.inForward.rawValue) | \(row.inReply.rawValue) |"
        }
        #expect(shown.map { String($0) } == rows)
    }

    @Test(arguments: [
        ("FROM", FieldNames.InForward.reverse), ("cc", .reverse), ("Reply-To", .reverse),
        ("In-Reply-To", .ids),
        ("References", .ids),
        ("List-Post", .links), ("List-Anything", .links), ("X-List-Help", .links),
        ("X-Unsubscribe", .links),
        ("Unsubscribe", .links), ("X-Unsubscribe-Web", .links), ("X-Original-Reply-To", .removed),
        ("Mail-Followup-To", .removed),
        ("Return-Receipt-To", .removed), ("Resent-From", .removed), ("X-Anything-To", .removed),
        ("Subject", nil),
        ("Received", nil),
        ("To-Do", nil), ("Message-ID", nil), ("X-List", nil),
    ])
    func name_ofEachKind_isFound(_ name: String, _ expected: FieldNames.InForward?) {
        #expect(FieldNames.inForward(HeaderField(name, "x")) == expected)
    }

    private static let orders = AddrSpec(localPart: "orders", domain: "app.example")

    /// The message as the user gets it, and the reverse address of `orders@app.example`.
    private func forward(
        _ fields: String, body: String = "Hello\r\n"
    ) throws -> (message: Message, reverse: String) {
        let fixture = Fixture(evidence: .signed("app.example"))
        let header =
            "From: b@app.example\r\nTo: annarelay2@relay.example\r\n\(fields)Subject: x\r\n"
        let old = Message.parse(Array((header + "\r\n" + body).utf8))
        let decision = fixture.play(
            from: "b@app.example", to: ["annarelay2@relay.example"], octets: old.bytes
        ).decision
        try #require(decision.outcome == .relay)
        var message = ModifiedMessage(
            header: old.header, body: old.body, sender: "", recipients: [])
        message.apply(decision.modifications)
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: Self.orders)
        return (
            Message.parse(message.bytes),
            "mailto:\(reverse.localPart.replacingOccurrence(of: "=", with: "%3D"))@relay.example"
        )
    }

    @Test(arguments: [
        "<mailto:orders@app.example>", "=?utf-8?Q?=3Cmailto=3Aorders=40app=2Eexample=3E?=",
        "=?us-ascii?Q?=3Cmailto=3Aorders=40app=2Eexample=3E?=",
        "=?utf-8?B?PG1haWx0bzpvcmRlcnNAYXBwLmV4YW1wbGU+?=",
        "<mailto:=?utf-8?Q?orders=40app=2Eexample?=>",
        "=?utf-8?Q?=3Cmailto=3Aorders?=\r\n =?utf-8?Q?=40app=2Eexample=3E?=",
        "<mailto:orders%40app.example>", "<MAILTO:orders@app.example>",
        "< mailto:orders@app.example >", "<orders@app.example>",
        "<mailto:\r\n orders@app.example>", "(by mail) <mailto:orders@app.example>",
    ])
    func listField_writtenInAnyWay_leadsThroughTheRelay(_ value: String) throws {
        for name in [
            "List-Unsubscribe", "List-Post", "List-Owner", "X-List-Unsubscribe", "X-Unsubscribe",
        ] {
            let (message, reverse) = try forward("\(name): \(value)\r\n")
            #expect(message.header.first(name)?.unfoldedValue == "<\(reverse)>", "\(name)")
        }
    }

    @Test(arguments: [
        "orders@app.example", "mailto:orders@app.example",
        "=?utf-8?Q?mailto=3Aorders=40app=2Eexample?=",
        "mailto:orders%40app.example",
        "<mailto:orders@app.example",
    ])
    func listField_withoutBrackets_isRemoved(_ value: String) throws {
        for name in ["List-Unsubscribe", "X-Unsubscribe"] {
            #expect(try forward("\(name): \(value)\r\n").message.header.first(name) == nil)
        }
    }

    @Test(arguments: [
        "List-Id: =?utf-8?Q?Caf=C3=A9?= <news.app.example>",
        "List-Unsubscribe: <https://app.example/?u=a@b.example>",
        "X-Unsubscribe: https://app.example/?u=a@b.example",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    ])
    func listField_withoutMail_stays(_ field: String) throws {
        let (message, _) = try forward(field + "\r\n")
        #expect(message.header.fields.contains(HeaderField(bytes: Array(field.utf8))))
    }

    @Test(arguments: [
        "X-Original-Reply-To", "Mail-Reply-To", "X-Complaints-To", "Resent-Reply-To",
        "Return-Receipt-To", "X-Reply-To",
    ])
    func fieldOfAnswersElsewhere_isRemoved(_ name: String) throws {
        #expect(try forward("\(name): orders@app.example\r\n").message.header.first(name) == nil)
    }

    // MARK: Links

    private static let zeros = String(repeating: "0", count: 2_000)

    @Test(arguments: [
        "&#0000000000000000000109;ailto:", "&#x000000000000000000006D;ailto:",
        "mail&#\(zeros)116;o:", "m&#\(zeros)97ilto:",
        "mail\(String(repeating: "\n", count: 300))to:",
        "m\(String(repeating: "\t", count: 70))ailto:", "mailto&colon;",
        "mail&Tab;to:",
        "mailto&#58", "&#109&#97&#105&#108&#116&#111&#58", "MAILTO&#x3a;",
    ])
    func link_schemeWrittenInAnyWay_leadsThroughTheRelay(_ scheme: String) throws {
        // Before it, enough octets to put the scheme across the border of two windows.
        for before in [0, 16_300, 16_384 - 500] {
            let body =
                "<p>\(String(repeating: "<br>\r\n", count: before / 6))</p>\r\n<a href=\"\(scheme)orders@app.example\">x</a>\r\n"
            let (message, reverse) = try forward("Content-Type: text/html\r\n", body: body)
            #expect(
                String(decoding: message.body, as: UTF8.self).contains("\"\(reverse)\""),
                "\(before)")
        }
    }

    @Test(arguments: [
        "orders&commat;app.example", "orders&#64app.example", "orders%40app.example",
        "orders@app&period;example",
        "&#111;rders@app.example",
        "orders@app.example&#x20;", "orders&#000000000000000000000064;app.example",
    ])
    func link_addressWrittenInAnyWay_leadsThroughTheRelay(_ address: String) throws {
        let (message, reverse) = try forward(
            "Content-Type: text/html\r\n", body: "<a href=\"mailto:\(address)\">x</a>\r\n")
        #expect(String(decoding: message.body, as: UTF8.self).contains("\"\(reverse)\""))
    }
}
