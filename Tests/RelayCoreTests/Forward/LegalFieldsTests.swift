// Outgoing header fields: ASCII, lines of 998 octets, with Date and Message-ID, and ids that keep
// threads together.

import InternetMessage
import MailAuth
import MailTesting
import Testing

@testable import RelayCore

struct LegalFieldsTests {
    private static let head = "From: b@app.example\r\nTo: annarelay2@relay.example\r\n"
    private static let whole =
        "Subject: x\r\nDate: Fri, 21 Nov 2025 06:00:00 +0100\r\nMessage-ID: <1@app.example>\r\n"

    private func apply(_ decision: RelayDecision, to octets: [UInt8]) throws -> HeaderSection {
        try #require(decision.outcome == .relay, "\(decision)")
        let old = Message.parse(octets)
        var message = ModifiedMessage(
            header: old.header, body: old.body, sender: "", recipients: [])
        message.apply(decision.modifications)
        let header = Message.parse(message.bytes).header
        for field in header.fields {
            #expect(field.bytes.allSatisfy { $0 < 0x80 }, "\(field.name): \(field.unfoldedValue)")
            #expect(field.fitsLines, "\(field.name)")
        }
        #expect(header.all("Date").count == 1 && header.all("Message-ID").count == 1)
        return header
    }

    /// The header section of a forward as the user gets it.
    private func forward(
        _ octets: [UInt8], fixture: Fixture = Fixture(evidence: .signed("app.example"))
    ) throws -> HeaderSection {
        let message = octets + Array("\r\nHello\r\n".utf8)
        let response = fixture.play(
            from: "b@app.example", to: ["annarelay2@relay.example"], octets: message)
        return try apply(response.decision, to: message)
    }

    private func forward(_ fields: String) throws -> HeaderSection {
        try forward(Array((Self.head + fields).utf8))
    }

    /// The header section of a reply as the team gets it.
    private func reply(
        _ fields: String, from: String = "anna@inbox.example"
    ) throws -> HeaderSection {
        let fixture = Fixture(evidence: .signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "b", domain: "app.example")
        ).localPart
        let text = "From: \(from)\r\nTo: \(reverse)@relay.example\r\n\(fields)\r\nHello\r\n"
        let response = fixture.play(
            from: "anna@inbox.example", to: ["\(reverse)@relay.example"], message: text)
        return try apply(response.decision, to: Array(text.utf8))
    }

    // MARK: ASCII

    @Test(arguments: ["Subject", "X-Shop", "Comments", "List-ID"])
    func text_beyondASCII_leavesInEncodedWords(_ name: String) throws {
        for text in [
            "Café", "Ihre Bestellung für Jürgen", "日本語の件名",
            "é\(String(repeating: " lang", count: 300))", "\u{1F9C3}",
        ] {
            let header = try forward(
                "\(name): \(text)\r\n"
                    + Self.whole.replacingOccurrence(of: "\(name): x\r\n", with: ""))
            #expect(header.first(name)?.decodedValue == text)
        }
    }

    @Test func subject_octetsThatAreNotUTF8_areReadInTheCharsetOfTheMessage() throws {
        func subject(_ octets: [UInt8], _ charset: String) throws -> String? {
            let rest = "\r\nContent-Type: text/plain; charset=\(charset)\r\n"
            return try forward(Array((Self.head + "Subject: ").utf8) + octets + Array(rest.utf8))
                .first("Subject")?.decodedValue
        }
        #expect(try subject([0x43, 0x61, 0x66, 0xE9], "iso-8859-1") == "Café")
        #expect(try subject([0x43, 0x61, 0x66, 0xE9], "utf-8") == "Café")
        #expect(try subject([0x80, 0x31], "us-ascii") == "€1")
        #expect(try subject([0xD0, 0xD2, 0xC9, 0xD7, 0xC5, 0xD4], "koi8-r") == "привет")
    }

    @Test func addressFields_namesBeyondASCII_leaveInEncodedWords() throws {
        let header = try forward(
            Array(
                "From: Café <b@app.example>\r\nTo: Jürgen <annarelay2@relay.example>\r\nCc: \"Zoë, Å\" <z@app.example>\r\n"
                    .utf8)
                + Array("Reply-To: b@app.example (Ünal)\r\n\(Self.whole)".utf8))
        for (name, shown) in [
            ("From", "Café"), ("To", "Jürgen"), ("Cc", "Zoë, Å"), ("Reply-To", "Ünal"),
        ] {
            let mailbox = header.first(name).flatMap {
                AddressList.parse($0.rawValue).mailboxes.first
            }
            #expect(mailbox?.displayName == shown, "\(name)")
        }
        #expect(header.first("X-Postern-Original-From")?.decodedValue == "Café <b@app.example>")
    }

    @Test func to_groupBeyondASCII_staysAGroup() throws {
        let header = try forward(
            Array("From: b@app.example\r\nTo: Empfänger:;\r\n\(Self.whole)".utf8))
        #expect(
            header.first("To").map { AddressList.parse($0.rawValue).addresses } == [
                .group(name: "Empfänger", [])
            ])
    }

    @Test func contentFields_parametersBeyondASCII_leaveByRFC2231() throws {
        let header = try forward(
            Self.whole + "Content-Type: application/pdf; name=\"Rechnung für Sie.pdf\"\r\n"
                + "Content-Disposition: attachment; filename=\"Rechnung für Sie.pdf\"\r\n")
        let type = header.first("Content-Type").map { ContentType.parse($0.rawValue) }
        #expect(
            type?.matches("application", "pdf") == true
                && type?.parameters["name"] == "Rechnung für Sie.pdf")
        let disposition = header.first("Content-Disposition").map {
            ContentDisposition.parse($0.rawValue)
        }
        #expect(disposition?.filename == "Rechnung für Sie.pdf")
    }

    @Test func otherFields_beyondASCII_leaveInASCII() throws {
        let header = try forward(
            Self.whole + "Received: from é by mx.app.example; Fri, 21 Nov 2025 06:00:00 +0100\r\n"
                + "List-Unsubscribe: <https://app.example/é>, <mailto:u@app.example?subject=é>\r\n")
        #expect(header.all("Received").contains { $0.unfoldedValue.hasPrefix("from ? by") })
        #expect(
            header.first("List-Unsubscribe")?.unfoldedValue.hasPrefix(
                "<https://app.example/%C3%A9>") == true)
    }

    @Test func reply_fieldsBeyondASCII_leaveInASCII() throws {
        let header = try reply(
            "Subject: Café\r\nContent-Type: text/plain; name=\"é.txt\"\r\nImportance: höch\r\n",
            from: "Ännå <anna@inbox.example>"
        )
        #expect(header.first("Subject")?.decodedValue == "Café")
        #expect(
            header.first("Content-Type").flatMap {
                ContentType.parse($0.rawValue).parameters["name"]
            } == "é.txt")
    }

    // MARK: Lines

    @Test(arguments: [900, 966, 980, 985]) func listUnsubscribe_longURI_staysWithinTheLine(
        _ length: Int
    ) throws {
        let value = "<mailto:u@app.example?subject=\(String(repeating: "a", count: length - 48))>"
        let header = try forward(Self.whole + "List-Unsubscribe: \(value)\r\n")
        let written = try #require(header.first("List-Unsubscribe")).unfoldedBytes.filter {
            !$0.isWhiteSpace
        }
        #expect(written.count > length && written.last == UInt8(ascii: ">"))
    }

    @Test func fields_longLines_areFolded() throws {
        let words = String(repeating: "word ", count: 300) + "end"
        let header = try forward(
            Self.whole.replacingOccurrence(of: "Subject: x", with: "Subject: \(words)")
                + "X-Long: \(String(repeating: "a", count: 2_000))\r\n")
        #expect(header.first("Subject")?.decodedValue == words)
        #expect(
            header.first("X-Long")?.unfoldedValue.filter { $0 != " " }
                == String(repeating: "a", count: 2_000))
    }

    @Test func cc_manyAddresses_growAndStayWithinTheLine() throws {
        let list = (0..<30).map { "person.number.\($0)@app.example" }.joined(separator: ",")
        let header = try forward(Self.whole + "Cc: \(list)\r\n")
        #expect(header.first("Cc").map { AddressList.parse($0.rawValue).mailboxes.count } == 30)
    }

    // MARK: Date and Message-ID

    @Test func forward_withoutDateAndID_hasBothAndTheSameWhenRepeated() throws {
        let first = try forward("Subject: x\r\n")
        #expect(first.first("Date")?.unfoldedValue == MessageDate.format(Fixture.now))
        let id = try #require(first.first("Message-ID"))
        #expect(
            MessageIDs.ids(in: id.rawValue).first?.suffix(14) == Array("@relay.example".utf8)[...])
        #expect(try forward("Subject: x\r\n").first("Message-ID") == id)
        #expect(try forward("Subject: y\r\n").first("Message-ID") != id)
        // The team never had this id.
        let answer = try reply(
            "In-Reply-To: \(id.unfoldedValue)\r\nReferences: \(id.unfoldedValue)\r\n")
        #expect(answer.first("In-Reply-To") == nil && answer.first("References") == nil)
    }

    @Test func forward_withDateAndID_keepsThem() throws {
        let header = try forward(Self.whole)
        for field in Message.parse(Array(Self.whole.utf8)).header.fields {
            #expect(header.fields.contains(field))
        }
    }

    // MARK: Threads

    @Test(arguments: [
        ("<abc123>", "<abc123>"), ("abc123", "<abc123>"), ("abc@app.example", "<abc@app.example>"),
        ("abc@esp.example", "<abc@esp.example>"),
        ("<abc@>", "<abc@>"), ("<@app.example>", "<@app.example>"),
        ("<\(String(repeating: "a", count: 140))>", "<\(String(repeating: "a", count: 140))>"),
        ("<abc@app.example", "<abc@app.example>"), ("<1@app.example>", "<1@app.example>"),
        ("<1@esp.example>", "<1@esp.example>"),
    ])
    func messageID_ofAnyForm_isThatOfTheAnswer(_ written: String, _ expected: String) throws {
        let rest = "Subject: x\r\nDate: Fri, 21 Nov 2025 06:00:00 +0100\r\n"
        let header = try forward(rest + "Message-ID: \(written)\r\n")
        let id = try #require(header.first("Message-ID"))
        let ids = MessageIDs.ids(in: id.rawValue)
        #expect(ids.count == 1 && ids.allSatisfy { MessageIDs.isLegal($0) })
        let references =
            header.first("References").map {
                "References: \($0.unfoldedValue) \(id.unfoldedValue)\r\n"
            } ?? ""
        let answer = try reply("In-Reply-To: \(id.unfoldedValue)\r\n" + references)
        #expect(answer.first("In-Reply-To")?.unfoldedValue == expected)
        // The next message of the team names it, and the user's program finds it.
        let next = try forward(
            rest
                + "Message-ID: <2@app.example>\r\nIn-Reply-To: \(written)\r\nReferences: \(written)\r\n"
        )
        for name in ["In-Reply-To", "References"] {
            #expect(
                next.first(name).map { MessageIDs.ids(in: $0.rawValue).contains(ids[0]) } == true,
                "\(name)")
        }
    }

    @Test func messageID_ofTheUserWithoutBrackets_isFoundAgain() throws {
        let sent = try reply("Message-ID: mine@laptop\r\n")
        let id = try #require(sent.first("Message-ID")).unfoldedValue
        #expect(!id.contains("mine"))
        let answer = try forward(Self.whole + "In-Reply-To: \(id)\r\n")
        #expect(answer.first("In-Reply-To")?.unfoldedValue == "<mine@laptop>")
    }
}
