// The public reports in other encodings, and reports in other languages: the form of a report does
// not change its meaning.

import Foundation
import InternetMessage
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct BounceVariantTests {
    /// Ways to write the same report.
    enum Variant: String, CaseIterable {
        case base64, quotedPrintable, quotedPrintableEscaped, utf16, shoutedFields, foldedFields,
            lineFeeds, moreFields,
            blankLines
    }

    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there; POSTERN_CONFORMANCE names it"),
        arguments: Variant.allCases)
    func bounceReport_writtenOtherwise_hasSameStatus(_ variant: Variant) throws {
        var changed = 0
        for entry in Corpus.entries("bounces") {
            let message = Message.parse(Corpus.crlf(entry.bytes))
            guard let other = Self.written(message, variant) else { continue }
            changed += 1
            #expect(Self.said(Message.parse(other)) == Self.said(message), "\(entry.name)")
        }
        print("bounces written anew, \(variant): \(changed)")
        #expect(changed > 20)
    }

    private static func said(_ message: Message) -> String {
        let report = ReportReader.read(header: message.header, body: Array(message.body))
        return
            "\(report.reportClass.rawValue) \(report.decisive.map { $0.status.description } ?? "-")"
    }

    /// The rewritten report; nil if it has no part that can be written so.
    private static func written(_ message: Message, _ variant: Variant) -> [UInt8]? {
        let body = Array(message.body)
        let root = MIMEPart.parse(header: message.header, body: body)
        var output = message.header.serialized + [0x0D, 0x0A] + body
        if variant == .lineFeeds { return output.filter { $0 != 0x0D } }
        let start = output.count - body.count
        var isChanged = false
        // The content of a returned message stays, as it is the message and not the report.
        let returned = root.flattened.filter { $0.contentType.matches("message", "rfc822") }.map(
            \.bodyRange)
        // From the end, so that earlier ranges stay correct. A report with only one part keeps its
        // header section.
        for part in root.flattened.reversed()
        where !part.isComposite && part.depth > 0 && part.transferEncoding.isIdentity {
            let bytes = Array(body[part.bodyRange])
            let isStatus = part.contentType.matches("message", "delivery-status")
            guard isStatus || part.contentType.matches("text", "plain"),
                bytes.allSatisfy({ $0 < 0x80 }), !bytes.isEmpty,
                part.contentType.charset.map({ ["us-ascii", "utf-8", "iso-8859-1"].contains($0) })
                    ?? true,
                !returned.contains(where: { $0.overlaps(part.bodyRange) }),
                let new = write(bytes, variant, isStatus: isStatus)
            else { continue }
            var fields = part.header.fields.filter {
                !($0.isNamed("Content-Transfer-Encoding") && new.encoding != nil)
                    && !($0.isNamed("Content-Type") && new.type != nil)
            }
            if let type = new.type { fields.append(HeaderField("Content-Type", type)) }
            if let encoding = new.encoding {
                fields.append(HeaderField("Content-Transfer-Encoding", encoding))
            }
            let range = (start + part.headerRange.lowerBound)..<(start + part.bodyRange.upperBound)
            output.replaceSubrange(
                range, with: HeaderSection(fields).serialized + [0x0D, 0x0A] + new.body)
            isChanged = true
        }
        return isChanged ? output : nil
    }

    private static func write(
        _ bytes: [UInt8], _ variant: Variant, isStatus: Bool
    ) -> (type: String?, encoding: String?, body: [UInt8])? {
        let text = String(decoding: bytes, as: UTF8.self)
        switch variant {
        case .base64: return (nil, "base64", Base64.encode(bytes))
        case .quotedPrintable:
            return (
                nil, "Quoted-Printable", TransferEncoding.quotedPrintable.encode(bytes) ?? bytes
            )
        case .quotedPrintableEscaped:
            let escaped = bytes.flatMap { octet -> [UInt8] in
                octet == 0x0D || octet == 0x0A ? [octet] : Hex.escape(octet, mark: "=")
            }
            return (nil, "quoted-printable", escaped)
        case .utf16:
            return isStatus
                ? nil
                : (
                    "text/plain; charset=utf-16le", "base64",
                    Base64.encode(bytes.flatMap { [$0, 0] as [UInt8] })
                )
        case .shoutedFields where isStatus:
            return (
                nil, nil,
                lines(text) { line in
                    line.firstIndex(of: ":").map { line[..<$0].uppercased() + line[$0...] } ?? line
                }
            )
        case .foldedFields where isStatus:
            return (
                nil, nil,
                lines(text) {
                    $0.first?.isWhitespace == false
                        ? $0.replacing(": ", with: ":\r\n ", maxReplacements: 1) : $0
                }
            )
        case .moreFields where isStatus:
            return (
                nil, nil,
                lines(text) {
                    $0.lowercased().hasPrefix("final-recipient:")
                        ? $0 + "\r\nX-Queue-Note: waited 4.4.7 hours\r\nWill-Retry-Until: never"
                        : $0
                }
            )
        case .blankLines where isStatus:
            return (nil, nil, Array("\r\n".utf8) + bytes + Array("\r\n\r\n".utf8))
        default: return nil
        }
    }

    private static func lines(_ text: String, _ change: (String) -> String) -> [UInt8] {
        Array(text.components(separatedBy: "\r\n").map(change).joined(separator: "\r\n").utf8)
    }

    struct Dialect: CustomStringConvertible {
        let subject: String
        let from: String
        let text: String
        let expected: String
        var description: String { subject }

        init(_ expected: String, from: String, _ subject: String, _ text: String) {
            (self.expected, self.from, self.subject, self.text) = (expected, from, subject, text)
        }
    }

    private static let user = "anna@inbox.example"

    /// Reports without fields for programs, in the wording of servers of many countries and
    /// vendors.
    private static let dialects: [Dialect] = [
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@mail.example.de", "Unzustellbar: Bestellung",
            "Ihre Nachricht konnte nicht zugestellt werden.\n\n<\(user)>: Empfänger unbekannt"),
        Dialect(
            "soft 4.2.2", from: "postmaster@example.de", "Nicht zustellbar",
            "Die Nachricht an \(user) ist nicht zustellbar: Das Postfach ist voll."),
        Dialect(
            "hard 5.1.1", from: "Mail Delivery System <MAILER-DAEMON@example.fr>",
            "Non remis : Commande",
            "Votre message n'a pas pu être remis à \(user).\nL'utilisateur n'existe pas."),
        Dialect(
            "soft 4.2.2", from: "postmaster@example.fr", "Échec de la remise",
            "\(user)\nLa boîte aux lettres est pleine."),
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@example.es", "Mensaje no entregado",
            "No se pudo entregar el mensaje a \(user): usuario desconocido"),
        Dialect(
            "hard 5.1.1", from: "postmaster@example.br", "Falha na entrega",
            "A mensagem não pôde ser entregue a \(user). O destinatário não existe."),
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@example.it", "Mancato recapito",
            "Il messaggio non è stato recapitato a \(user): utente sconosciuto"),
        Dialect(
            "hard 5.1.1", from: "postmaster@example.nl", "Onbestelbaar: Bestelling",
            "Uw bericht kon niet worden bezorgd bij \(user). De gebruiker bestaat niet."),
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@example.pl", "Niedostarczona wiadomość",
            "Wiadomość nie mogła zostać dostarczona do \(user): nieznany użytkownik"),
        Dialect(
            "hard 5.1.1", from: "mailer-daemon@example.ru", "Недоставленное сообщение",
            "Сообщение не доставлено: \(user) не существует"),
        Dialect(
            "hard 5.1.1", from: "PostMaster@example.cn", "系统退信", "抱歉，您的邮件被退回来了\n\(user) 收件人不存在"),
        Dialect("hard 5.1.1", from: "MAILER-DAEMON@example.jp", "配信できませんでした", "宛先不明: \(user)"),
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@qmail.example", "failure notice",
            "Hi. This is the qmail-send program at qmail.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n<\(user)>:\nSorry, no mailbox here by that name. vpopmail (#5.1.1)\n\n--- Below this line is a copy of the message.\n\nSubject: x"
        ),
        Dialect(
            "hard 5.2.1", from: "Mail Delivery System <Mailer-Daemon@exim.example>",
            "Mail delivery failed: returning message to sender",
            "This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n  \(user)\n    SMTP error from remote mail server after RCPT TO:<\(user)>:\n    550 5.2.1 mailbox disabled"
        ),
        Dialect(
            "soft 4.2.2", from: "Mail Delivery System <Mailer-Daemon@exim.example>",
            "Warning: message 1abc delayed 24 hours",
            "This message was created automatically by mail delivery software.\nA message that you sent has not yet been delivered to one or more of its\nrecipients after more than 24 hours on the queue on exim.example.\n\nThe address to which the message has not yet been delivered is:\n\n  \(user)\n    Delay reason: SMTP error: 452 4.2.2 over quota"
        ),
        Dialect(
            "hard 5.1.1", from: "System Administrator <postmaster@exchange.example>",
            "Undeliverable: Order",
            "Your message\n\n  To:      \(user)\n  Subject: Order\n  Sent:    Mon\n\ndid not reach the following recipient(s):\n\n\(user) on Mon\n    The recipient name is not recognized\n    The MTS-ID of the original message is: c=us"
        ),
        Dialect(
            "hard 5.1.1", from: "Postmaster@domino.example",
            "DELIVERY FAILURE: User anna (\(user)) not listed in Domino Directory",
            "Your message\n\n  Subject: Order\n\nwas not delivered to:\n\n  \(user)\n\nbecause:\n\n  User anna (\(user)) not listed in Domino Directory"
        ),
        Dialect(
            "hard 5.1.1", from: "MAILER-DAEMON@yahoo.example", "Failure Notice",
            "Sorry, we were unable to deliver your message to the following address.\n\n<\(user)>:\n554: delivery error: dd This user doesn't have a yahoo.example account (\(user)) [0]"
        ),
        Dialect(
            "soft 4.4.1", from: "Mail Delivery Subsystem <mailer-daemon@google.example>",
            "Delivery Status Notification (Delay)",
            "This is an automatically generated Delivery Status Notification\n\nTHIS IS A WARNING MESSAGE ONLY.\n\nYOU DO NOT NEED TO RESEND YOUR MESSAGE.\n\nDelivery to the following recipient has been delayed:\n\n     \(user)\n\nMessage will be retried for 2 more day(s)\n\nTechnical details of temporary failure:\nThe recipient server did not accept our requests to connect. connection timed out"
        ),
        Dialect(
            "hard 5.1.1", from: "Mail Administrator <Postmaster@x400.example>",
            "Mail System Error - Returned Mail",
            "This Message was undeliverable due to the following reason:\n\nThe following destination addresses were unknown (please check\nthe addresses and re-mail the message):\n\nSMTP <\(user)>\n\nPlease reply to Postmaster"
        ),
    ]

    @Test(arguments: dialects)
    func bounceReport_otherWording_hasExpectedStatus(_ dialect: Dialect) {
        let header = HeaderSection([
            HeaderField("From", dialect.from),
            HeaderField(name: "Subject", rawValue: [0x20] + Array(dialect.subject.utf8)),
            HeaderField("Content-Type", "text/plain; charset=utf-8"),
        ])
        let message = Message.parse(
            header.serialized + [0x0D, 0x0A]
                + Array(dialect.text.replacing("\n", with: "\r\n").utf8))
        #expect(Self.said(message) == dialect.expected)
    }
}
