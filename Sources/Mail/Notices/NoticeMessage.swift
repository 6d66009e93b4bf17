// Builds one of our own messages (RFC 5322): text and HTML, automatic, signed by the relay domain.

import InternetMessage
import RelayCore

/// One message to an inbox.
struct NoticeMessage {
    /// The name of the service.
    let name: String
    let from: AddrSpec
    let to: InboxAddress
    /// The destination of an answer; nil for From itself.
    var replyTo: AddrSpec?
    let content: NoticeTemplates.Rendered
    /// The domain of the signature and of the Message-ID.
    let relayDomain: String
    /// Random, in base32: for Message-ID and boundary.
    let id: String
    /// Seconds since 1970.
    let now: Int64
    /// Whether it answers a message (RFC 3834).
    var isReply = false
    /// The Message-ID of the answered message, without brackets.
    var answered: [UInt8]?
    /// By which the receiver reports spam.
    var feedback: [HeaderField] = []

    /// The octets to send, signed if there is a signer. Throws the errors of the signer.
    func write(signer: (any MessageSigner)?) throws -> [UInt8] {
        let body = self.body
        var header = HeaderSection(fields)
        if let signing = signer?.begin() {
            body.withUnsafeBytes { signing.update(body: $0) }
            header.fields =
                try signing.finish(header: header, domain: relayDomain, now: now) + header.fields
        }
        return header.serialized + [0x0D, 0x0A] + body
    }

    var unsigned: (header: HeaderSection, body: [UInt8]) { (HeaderSection(fields), body) }

    private var fields: [HeaderField] {
        var fields = [
            HeaderField("Date", MessageDate.format(now)),
            HeaderField.addresses("From", [Mailbox(displayName: name, addrSpec: from)]),
            HeaderField.addresses("To", [Mailbox(addrSpec: to.revealed.headerForm)]),
        ]
        if let replyTo {
            fields.append(
                HeaderField.addresses("Reply-To", [Mailbox(displayName: name, addrSpec: replyTo)]))
        }
        if let answered {
            for name in ["In-Reply-To", "References"] {
                fields.append(HeaderField(name: name, rawValue: MessageIDs.value([answered])))
            }
        }
        return fields + [
            HeaderField.unstructured("Subject", content.subject),
            HeaderField("Message-ID", "<notice.\(id)@\(relayDomain)>"),
            HeaderField("Auto-Submitted", isReply ? "auto-replied" : "auto-generated"),
            // Exchange answers automatic mail unless this field forbids it.
            HeaderField("X-Auto-Response-Suppress", "All"),
            HeaderField("MIME-Version", "1.0"),
            HeaderField(
                name: "Content-Type",
                rawValue: Array(" multipart/alternative;\r\n boundary=\"\(boundary)\"".utf8)),
        ] + feedback
    }

    /// Contains `=_`, which quoted-printable text never does.
    private var boundary: String { "=_notice_\(id)" }

    private var body: [UInt8] {
        part("text/plain", content.text) + part("text/html", content.html)
            + Array("--\(boundary)--\r\n".utf8)
    }

    private func part(_ type: String, _ text: String) -> [UInt8] {
        let head =
            "--\(boundary)\r\nContent-Type: \(type); charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        return Array(head.utf8) + QuotedPrintable.encode(Array(text.utf8)) + [0x0D, 0x0A]
    }
}

extension AddrSpec {
    /// With the domain in A-labels, if the whole address can be written in ASCII.
    fileprivate var headerForm: AddrSpec {
        asciiWireForm.flatMap { AddrSpec(envelope: $0) } ?? self
    }
}
