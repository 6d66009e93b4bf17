// Builds the outgoing report (RFC 3464): text for people, fields for programs, Subject and
// Message-ID of the original.

import InternetMessage

struct ReportWriter {
    /// The reader of the report.
    enum Reader {
        /// The team's server: the recipient is the relay address.
        case team
        /// The user: the recipient is a reverse address.
        case user
    }

    let reader: Reader
    let relayDomain: String
    let to: AddrSpec
    /// The recipient as the reader knows it; nil if the report did not name the recipient.
    let recipient: AddrSpec?
    /// Nil if the report could not be understood.
    let report: RecipientReport?
    /// Subject and Message-ID of the original, each safe to show.
    let original: [HeaderField]
    let date: String
    /// Random; used in Message-ID and boundary.
    let id: String

    /// The fields of the report without the mark, and its body.
    func write() -> (fields: [HeaderField], body: [UInt8]) {
        let boundary = "=_report_\(id)"
        var fields = [
            HeaderField("From", "Mail Delivery System <postmaster@\(relayDomain)>"),
            HeaderField("To", "<\(to.wireForm)>"),
            HeaderField("Subject", subject),
            HeaderField("Date", date),
            HeaderField("Message-ID", "<report.\(id)@\(relayDomain)>"),
        ]
        if let id = original.first(where: { $0.isNamed("Message-ID") }) {
            fields.append(HeaderField(name: "In-Reply-To", rawValue: id.rawValue))
            fields.append(HeaderField(name: "References", rawValue: id.rawValue))
        }
        fields += [
            HeaderField("Auto-Submitted", "auto-replied"),
            HeaderField("MIME-Version", "1.0"),
            HeaderField(
                name: "Content-Type",
                rawValue: Array(
                    " multipart/report; report-type=delivery-status;\r\n boundary=\"\(boundary)\""
                        .utf8)),
        ]
        var body = part(boundary, "text/plain; charset=us-ascii", explanation)
        body += part(boundary, "message/delivery-status", status)
        if !original.isEmpty {
            body += part(
                boundary, "text/rfc822-headers",
                String(decoding: HeaderSection(original).serialized, as: UTF8.self))
        }
        body += Array("--\(boundary)--\r\n".utf8)
        return (fields, body)
    }

    private func part(_ boundary: String, _ type: String, _ text: String) -> [UInt8] {
        Array("--\(boundary)\r\nContent-Type: \(type)\r\n\r\n\(text)\r\n".utf8)
    }

    private var isDelayed: Bool { report?.action == .delayed }

    private var subject: String {
        guard report != nil else { return "Report about your message" }
        return isDelayed
            ? "Delayed: your message has not been delivered yet"
            : "Undelivered: your message could not be delivered"
    }

    /// RFC 3464 requires a recipient. A report that names none gets one at the relay domain.
    private var recipientText: String {
        (recipient ?? AddrSpec(localPart: "unknown", domain: relayDomain)).wireForm
    }

    private var explanation: String {
        var lines: [String] = []
        let whom = recipient.map { "<\($0.wireForm)>" } ?? "one of its recipients"
        if let report {
            lines.append(
                isDelayed
                    ? "Your message to \(whom) has not been delivered yet."
                    : "Your message to \(whom) could not be delivered.")
            lines.append(
                isDelayed
                    ? "The mail server of this address will try again; you need do nothing."
                    : report.status.level == 4
                        ? "The mail server of this address stopped trying. The reason may be temporary: you may send it again."
                        : "Sending it again unchanged will not help.")
            lines.append("")
            lines.append(
                "Status: \(report.status)" + (Self.meaning(report.status).map { " (\($0))" } ?? ""))
        } else {
            lines.append("A mail server sent a report about your message to \(whom).")
            lines.append("The report is in an unknown form, so it is not known whether")
            lines.append("the message was delivered.")
        }
        return lines.map(Self.wrapped).joined(separator: "\r\n") + "\r\n"
    }

    private var status: String {
        var lines = [
            "Reporting-MTA: dns; \(relayDomain)", "", "Final-Recipient: rfc822; \(recipientText)",
        ]
        lines.append("Action: \(report?.action.rawValue ?? DeliveryAction.failed.rawValue)")
        lines.append("Status: \((report?.status ?? .unknown).description)")
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    private static func wrapped(_ line: String) -> String {
        String(decoding: HeaderText.fold(Array(line.utf8), startingAt: 0), as: UTF8.self)
    }

    private static func meaning(_ status: EnhancedStatus) -> String? {
        switch (status.subject, status.detail) {
        case (1, 1): "there is no such mailbox"
        case (1, _): "the address cannot be reached"
        case (2, 1): "the mailbox is not in use"
        case (2, 2): "the mailbox is full"
        case (2, 3), (3, 4): "the message is too large"
        case (4, 6), (4, 8): "the message was in a mail loop"
        case (4, _): "the server could not be reached in time"
        case (7, _): "the server did not accept the message"
        default: nil
        }
    }
}
