// A report that a message could not be delivered (RFC 3464), as an MTA sends it.

import InternetMessage
import MilterTesting
import RelayCore

struct SandboxDeliveryReport {
    let recipient: String
    /// The reply of the mailbox: a code, an enhanced code and a text.
    let reply: String
    let original: MessageState
    let to: String
    let id: String
    /// Seconds since 1970.
    let now: Int64

    private static let host = "mail.sandbox.example"

    var octets: [UInt8] {
        let boundary = "=_report_\(id)"
        let header = HeaderSection([
            HeaderField("From", "Mail Delivery System <MAILER-DAEMON@\(Self.host)>"),
            HeaderField("To", "<\(to)>"),
            HeaderField("Subject", "Undelivered Mail Returned to Sender"),
            HeaderField("Date", MessageDate.format(now)),
            HeaderField("Message-ID", "<\(id)@\(Self.host)>"),
            HeaderField("Auto-Submitted", "auto-replied"),
            HeaderField("MIME-Version", "1.0"),
            HeaderField(
                name: "Content-Type",
                rawValue: Array(
                    " multipart/report; report-type=delivery-status;\r\n boundary=\"\(boundary)\""
                        .utf8)),
        ])
        let words = reply.split(separator: " ")
        let status = words.count > 1 ? String(words[1]) : "5.0.0"
        let parts = [
            (
                "text/plain; charset=us-ascii",
                "<\(recipient)>: host \(Self.host) said: \(reply)\r\n"
            ),
            (
                "message/delivery-status",
                "Reporting-MTA: dns; \(Self.host)\r\n\r\nFinal-Recipient: rfc822; \(recipient)\r\nAction: failed\r\n"
                    + "Status: \(status)\r\nDiagnostic-Code: smtp; \(reply)\r\n"
            ),
        ]
        var body: [UInt8] = []
        for (type, text) in parts {
            body += Array("--\(boundary)\r\nContent-Type: \(type)\r\n\r\n\(text)\r\n".utf8)
        }
        body +=
            Array("--\(boundary)\r\nContent-Type: message/rfc822\r\n\r\n".utf8) + original.message
        return header.serialized + [0x0D, 0x0A] + body + Array("\r\n--\(boundary)--\r\n".utf8)
    }
}
