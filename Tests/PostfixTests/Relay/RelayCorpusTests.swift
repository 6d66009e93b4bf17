// Public messages with a planted inbox through the whole relay: no part of it arrives, and the
// message keeps its meaning.

import Foundation
import InternetMessage
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayCorpusTests {
    private static let inbox = "anna.bergstroem@home.example"

    private static let root: URL =
        ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"].map { URL(fileURLWithPath: $0) }
        ?? URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "shared/conformance")

    private static let replies = [
        "replies/crisp/test/fixtures/email_german.txt",
        "replies/crisp/test/fixtures/email_emoji.txt",
        "replies/crisp/test/fixtures/email_tricky_20_html_entities.txt",
        "replies/crisp/test/fixtures/email_fr_multiline.txt",
        "calendar/method-samples/apple-caldavtester__implicit_scenario1_tzid-reset_4.ics",
        "calendar/method-samples/apple-caldavtester__performance_schedule_2.ics",
        "calendar/method-samples/calcard__ical_047.ics",
        "mail/mimekit/messages/japanese.txt",
        "mail/mikel-mail/emails/attachment_emails/attachment_with_encoded_name.eml",
        "mail/mikel-mail/emails/multi_charset/japanese_iso_2022.eml",
        "mail/postal-mime/test/fixtures/mixed.eml",
        "mail/postal-mime/test/fixtures/calendar-event.eml", "mail/zbateson/emails/m1003.txt",
        "mail/zbateson/emails/m2010.txt",
        "mail/cpython-test_email/msg_16.txt",
    ]

    /// Reports, and the status that the rebuilt report must have.
    private static let reports = [
        ("bounces/set-of-emails/rfc3464-26.eml", "5.1.1"),
        ("bounces/mikel-mail/multipart_report_emails/report_422.eml", "4.2.2"),
        ("bounces/mimekit/bounce.txt", "5.1.1"), ("bounces/set-of-emails/rfc3464-08.eml", "5.7.1"),
        ("bounces/kumomta/data/rfc3464/6.eml", "5.1.1"),
    ]

    private static var isThere: Bool { FileManager.default.fileExists(atPath: root.path) }

    @Test(.enabled(if: isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func reply_publicMessages_arriveWithoutTheInbox() throws {
        let fixture = try RelayFixture(RelayFixtures.options())
        defer { fixture.stop() }
        try fixture.addTeam("juice", name: "The Juice Company", source: RelayFixtures.team)
        try fixture.addUser("anna", inboxes: [Self.inbox])
        let address = try fixture.address("juice", "anna")
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let reverse = try fixture.arrival(for: Self.inbox).address("From")
        for (number, name) in Self.replies.enumerated() {
            let planted = try Self.planted(name, reverse: reverse)
            let result = try fixture.postfix.send(
                from: "<\(Self.inbox)>", to: ["<\(reverse)>"], message: planted)
            #expect(result.data?.code == 250, "\(name): \(result)")
            let arrived = try fixture.arrival(for: "news@juice.example", number: number + 1)
            try expectNothing(of: Self.inbox, reverse, in: arrived, name)
            #expect(arrived.value("From") == address, "\(name)")
            let before = Self.words(planted)
            #expect(!before.isEmpty, "\(name) says nothing")
            // Names next to addresses are removed from a quotation, and so is the text after the
            // host of a link.
            let lost = before.subtracting(Self.words(arrived.data))
            #expect(lost.count <= 6, "\(name): \(lost)")
            #expect(Self.shape(planted) == Self.shape(arrived.data), "\(name)")
        }
    }

    @Test(.enabled(if: isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"))
    func bounce_publicReports_areRebuiltWithoutTheInbox() throws {
        let fixture = try RelayFixture(RelayFixtures.options())
        defer { fixture.stop() }
        try fixture.addTeam("juice", name: "The Juice Company", source: RelayFixtures.team)
        try fixture.addUser("anna", inboxes: [Self.inbox])
        let address = try fixture.address("juice", "anna")
        for (number, (name, status)) in Self.reports.enumerated() {
            try fixture.send(
                from: "bounce@juice.example", to: [address],
                RelayFixtures.message(to: address, id: "\(number)@juice.example"))
            let forward = try fixture.arrival(for: Self.inbox, number: number + 1)
            let result = try fixture.postfix.send(
                from: "<>", to: [forward.mailFrom],
                message: try Self.planted(name, reverse: forward.address("From"), isReport: true))
            #expect(result.data?.code == 250, "\(name): \(result)")
            let arrived = try fixture.arrival(for: "bounce@juice.example", number: number + 1)
            try expectNothing(of: Self.inbox, forward.address("From"), in: arrived, name)
            #expect(arrived.mailFrom == "<>")
            #expect(arrived.text.contains("Status: \(status)"), "\(name)\n\(arrived.text)")
            #expect(arrived.text.contains("Final-Recipient: rfc822; \(address)"), "\(name)")
        }
    }

    private func expectNothing(
        of inbox: String, _ reverse: String, in message: SinkMessage, _ name: String
    ) throws {
        #expect(try LeakOracle.findings(of: inbox, in: message) == "", "\(name)")
        for secret in [
            "bergstroem", "home.example", "annas-laptop", reverse,
            String(reverse.prefix { $0 != "@" }),
        ] {
            #expect(!message.text.lowercased().contains(secret), "\(name): \(secret)")
        }
    }

    // MARK: Planting

    /// The message with the inbox in place of the most frequent address in it, as anna's program
    /// would send it.
    private static func planted(
        _ name: String, reverse: String, isReport: Bool = false
    ) throws -> [UInt8] {
        let data = try Data(contentsOf: root.appendingPathComponent(name))
        // One character for each octet.
        var text = String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) }))
            .replacingOccurrences(of: "\r\n", with: "\n")
        let isText = name.hasPrefix("replies/")
        if isText || name.hasSuffix(".ics") {
            let type =
                isText
                ? "text/plain; charset=utf-8; format=flowed"
                : "text/calendar; charset=utf-8; method=REPLY"
            text =
                "Subject: Re: order\nMIME-Version: 1.0\nContent-Type: \(type)\nContent-Transfer-Encoding: 8bit\n\n"
                + text
        }
        let addresses = text.matches(
            of: /[A-Za-z0-9][A-Za-z0-9._+-]*@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z0-9]/
        ).map {
            String($0.output)
        }
        let counts = Dictionary(addresses.map { ($0, 1) }, uniquingKeysWith: +)
        if let most = counts.max(by: { ($0.value, $0.key) < ($1.value, $1.key) })?.key {
            text = text.replacingOccurrences(of: most, with: inbox)
        } else {
            text += "\n> On Friday \(reverse) wrote to \(inbox):\n"
        }
        let parsed = Message.parse(
            text.replacingOccurrences(of: "\n", with: "\r\n").unicodeScalars.map { UInt8($0.value) }
        )
        let dropped: Set<String> = [
            "from", "to", "cc", "bcc", "sender", "reply-to", "received", "return-path",
            "delivered-to", "message-id",
        ]
        var fields = parsed.header.fields.filter {
            isReport || !dropped.contains($0.name.lowercased())
        }
        if !isReport {
            fields += [
                HeaderField(
                    "Received",
                    "from annas-laptop.home.example ([127.0.0.9]) by mx.home.example for <\(inbox)>; Sat, 21 Nov 2026 08:00:00 +0000"
                ),
                HeaderField("From", "Anna <\(inbox)>"), HeaderField("To", "<\(reverse)>"),
                HeaderField("Message-ID", "<1.\(inbox)>"),
            ]
        }
        return HeaderSection(fields).serialized + [0x0D, 0x0A] + parsed.body
    }

    // MARK: Content of a message

    /// The words of all text parts, except those with a mark of an address in or next to them.
    private static func words(_ message: [UInt8]) -> Set<String> {
        var words: Set<String> = []
        let parsed = Message.parse(message)
        let body = Array(parsed.body)
        for part in MIMEPart.parse(header: parsed.header, body: body).flattened
        where part.contentType.matches("text") && !part.isComposite {
            let octets =
                part.transferEncoding.decode(body[part.bodyRange])?.bytes
                ?? Array(body[part.bodyRange])
            let text =
                part.contentType.charset.flatMap { Charset.decode(octets, $0) }
                ?? String(decoding: octets, as: UTF8.self)
            // Folded lines join before they are compared.
            let unfolded = text.replacingOccurrences(of: "\r\n ", with: "").replacingOccurrences(
                of: "\r\n\t", with: "")
            // Addresses are removed completely, including reverse addresses with `=` in them.
            let rest = unfolded.replacing(/[^\s<>",;:]+@[^\s<>",;:]+/, with: " ")
            for word in rest.split(whereSeparator: { $0.isWhitespace || "\",;:<>=".contains($0) })
            where !word.contains("@") && !word.contains("home.example")
                && !word.contains("bergstroem")
                && !word.contains("relay.example")
            {
                words.insert(String(word))
            }
        }
        return words
    }

    /// The types of all parts, in order, with their depth.
    private static func shape(_ message: [UInt8]) -> [String] {
        let parsed = Message.parse(message)
        return MIMEPart.parse(header: parsed.header, body: Array(parsed.body)).flattened.map {
            "\($0.depth) \($0.contentType.type)/\($0.contentType.subtype)"
        }
    }
}
