// Addresses in forwards that cannot be read, or that lead nowhere. None of them becomes another
// mailbox.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Testing

@testable import RelayCore

struct UnreadableAddressTests {
    private static let addresses: [(written: String, expected: String)] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors/addresses/unreadable.txt")
        let lines = ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n")
        return lines.filter { !$0.hasPrefix("# ") }.compactMap { line in
            let parts = line.split(separator: "\t")
            return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
        }
    }()

    /// The message that the user gets, and a function that returns the reverse address of an
    /// address.
    private func forward(
        _ fields: String, body: String = "Hello\r\n"
    ) throws -> (Message, (AddrSpec) -> String) {
        let fixture = Fixture(evidence: .signed("app.example"))
        let header =
            "From: b@app.example\r\nTo: annarelay2@relay.example\r\n\(fields)Subject: x\r\n"
        let text = header + "\r\n" + body
        let decision = fixture.play(
            from: "b@app.example", to: ["annarelay2@relay.example"], message: text
        ).decision
        try #require(decision.outcome == .relay, "\(fields) \(decision)")
        let old = Message.parse(Array(text.utf8))
        var message = ModifiedMessage(
            header: old.header, body: old.body, sender: "", recipients: [])
        message.apply(decision.modifications)
        return (
            Message.parse(message.bytes),
            {
                fixture.engine.tokens.reverse(account: Fixture.anna.number, correspondent: $0)
                    .localPart
            }
        )
    }

    private func expected(_ text: String) -> AddrSpec? {
        text == "-" ? nil : AddrSpec(envelope: text)
    }

    @Test func replyTo_addressOfEachForm_leadsThereOrNowhere() throws {
        try #require(Self.addresses.count > 30)
        for (written, wanted) in Self.addresses {
            for value in [written, "B <\(written)>", "\(written), c@app.example"] {
                let (message, reverse) = try forward("Reply-To: \(value)\r\n")
                let found = message.header.all("Reply-To").flatMap {
                    AddressList.parse($0.rawValue).mailboxes
                }
                .map(\.addrSpec.localPart)
                let other =
                    value.hasSuffix("c@app.example")
                    ? [reverse(AddrSpec(localPart: "c", domain: "app.example"))] : []
                let own = expected(wanted).map { [reverse($0)] } ?? []
                #expect(found == own + other, "\(value)")
            }
        }
    }

    @Test func mailtoLink_addressOfEachForm_leadsThereOrNowhere() throws {
        for (written, wanted) in Self.addresses
        where !written.contains("\"") && !written.contains("'") {
            for scheme in ["mailto:", "MAILTO:", "&#109;ailto:"] {
                let link = "<a href=\"\(scheme)\(written)?subject=x\">y</a>\r\n"
                let (message, reverse) = try forward("Content-Type: text/html\r\n", body: link)
                let body = String(decoding: message.body, as: UTF8.self)
                if let address = expected(wanted) {
                    let local = String(
                        decoding: MailtoURI.percentEncoded(Array(reverse(address).utf8)),
                        as: UTF8.self)
                    #expect(
                        body.contains("mailto:\(local)@relay.example?subject=x"),
                        "\(written): \(body)")
                } else {
                    #expect(
                        body.contains("\"mailto:?subject=x\"")
                            || body == link && !written.contains("."), "\(written): \(body)")
                }
            }
        }
    }

    @Test func listUnsubscribe_addressOfEachForm_leadsThereOrIsLeftOut() throws {
        for (written, wanted) in Self.addresses
        where !written.contains("\"") && !written.contains(" ") {
            let (message, reverse) = try forward(
                "List-Unsubscribe: <mailto:\(written)>, <https://app.example/u>\r\n")
            let value = try #require(message.header.first("List-Unsubscribe")).unfoldedValue
            if let address = expected(wanted) {
                let local = String(
                    decoding: MailtoURI.percentEncoded(Array(reverse(address).utf8)), as: UTF8.self)
                #expect(value.contains("<mailto:\(local)@relay.example>"), "\(written): \(value)")
            } else {
                #expect(value == "<https://app.example/u>", "\(written): \(value)")
            }
        }
    }

    @Test func organizer_addressThatLeadsNowhere_isNoAddress() throws {
        for written in [
            "root@localhost", "a@[127.0.0.1]", "a;b@docomo.example", "a@b@docomo.example",
        ] {
            for value in ["mailto:\(written)", written] {
                let body =
                    "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nORGANIZER:\(value)\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
                let (message, _) = try forward(
                    "Content-Type: text/calendar; method=REQUEST\r\n", body: body)
                let text = String(decoding: message.body, as: UTF8.self)
                #expect(!text.contains("relay.example"), "\(text)")
                #expect(!text.contains("mailto:root") && !text.contains("mailto:a"), "\(text)")
            }
        }
    }

    @Test func replyTo_encodedWord_leadsToWhatItSays() throws {
        let orders = AddrSpec(localPart: "orders", domain: "app.example")
        for value in [
            "=?utf-8?Q?orders=40app.example?=", "=?utf-8?B?b3JkZXJzQGFwcC5leGFtcGxl?=",
            "=?utf-8?Q?Juice_=3Corders=40app.example=3E?=",
            "Juice <=?utf-8?Q?orders=40app.example?=>", "=?utf-8?Q?orders?=@app.example",
            "=?utf-8?Q?orders=40?=\r\n =?utf-8?Q?app.example?=",
        ] {
            let (message, reverse) = try forward("Reply-To: \(value)\r\n")
            let found = message.header.all("Reply-To").flatMap {
                AddressList.parse($0.rawValue).mailboxes
            }.map(
                \.addrSpec.localPart)
            #expect(found == [reverse(orders)], "\(value)")
        }
    }
}
