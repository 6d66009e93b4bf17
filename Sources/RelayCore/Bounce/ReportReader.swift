// Recognises mail to a return path: RFC 3464 reports, older formats, receipts, notes and
// complaints.

import InternetMessage

enum ReportReader {
    /// Octets of a part that are read as prose or fields. Reports state the facts at their
    /// beginning.
    private static let partLimit = 200_000

    static func read(header: HeaderSection, body: [UInt8]) -> DeliveryReport {
        let root = MIMEPart.parse(header: header, body: body)
        let parts = root.flattened
        let reportType =
            root.contentType.matches("multipart", "report")
            ? root.contentType.parameters["report-type"]?.lowercased() : nil
        let original = original(parts, body: body)

        if reportType == "feedback-report"
            || parts.contains(where: { $0.contentType.matches("message", "feedback-report") })
        {
            let report = parts.first { $0.contentType.matches("message", "feedback-report") }
            let fields = report.map { StatusFields.fields(in: text(of: $0, body: body)) } ?? []
            var about = original
            for name in ["feedback-type", "original-mail-from"] {
                about[name] = fields.first { $0.0 == name }?.1
            }
            return DeliveryReport(kind: .feedback, original: about)
        }
        if let status = parts.first(where: { isStatus($0.contentType) }) {
            let text = text(of: status, body: body)
            var recipients = StatusFields.recipients(in: text)
            let prose = prose(parts, body: body)
            for index in recipients.indices { refine(&recipients[index], prose: prose) }
            if !recipients.isEmpty {
                return DeliveryReport(kind: .delivery, recipients: recipients, original: original)
            }
        }
        if reportType == "disposition-notification"
            || parts.contains(where: { isReceipt($0.contentType) })
        {
            return DeliveryReport(kind: .receipt, original: original)
        }
        let prose = prose(parts, body: body)
        let listed = StatusFields.recipients(in: Array(prose.utf8)).filter { !$0.address.isEmpty }
        if !listed.isEmpty,
            OctetSearch.find(
                "final-recipient:", in: OctetSearch.lowercased(prose, limit: partLimit)) != nil
        {
            return DeliveryReport(kind: .delivery, recipients: listed, original: original)
        }
        if ProseReport.isComplaint(header: header, prose: prose) {
            return DeliveryReport(kind: .feedback, original: original)
        }
        if let report = ProseReport.read(header: header, prose: prose, isReport: reportType != nil)
        {
            var report = report
            report.original.merge(original) { _, new in new }
            return report
        }
        if header.first("X-Apple-Unsubscribe")?.unfoldedValue.lowercased() == "true" {
            return DeliveryReport(kind: .optOut)
        }
        if AutomaticMail.isAutomatic(header, isAtReturnPath: true) {
            return DeliveryReport(kind: .note)
        }
        return DeliveryReport(kind: reportType == nil ? .other : .unclear, original: original)
    }

    private static func isStatus(_ type: ContentType) -> Bool {
        type.matches("message", "delivery-status")
            || type.matches("message", "global-delivery-status")
    }

    private static func isReceipt(_ type: ContentType) -> Bool {
        type.matches("message", "disposition-notification")
            || type.matches("message", "global-disposition-notification")
    }

    /// Makes a vague status precise by the explanation next to it.
    private static func refine(_ recipient: inout RecipientReport, prose: String) {
        guard recipient.status.isVague, recipient.action == .failed || recipient.action == .delayed,
            recipient.diagnostic.isEmpty
        else { return }
        if let said = StatusCodes.enhanced(in: prose), said.level == recipient.status.level,
            !said.isVague
        {
            recipient.status = said
        }
        recipient.understood = StatusCodes.understood(recipient.status, diagnostic: prose)
    }

    /// The decoded octets of a part, line ends unchanged.
    private static func text(of part: MIMEPart, body: [UInt8]) -> [UInt8] {
        let range = part.bodyRange.clamped(
            to: part.bodyRange
                .lowerBound..<min(part.bodyRange.upperBound, part.bodyRange.lowerBound + partLimit))
        guard let decoded = part.transferEncoding.decode(body[range])?.bytes else { return [] }
        guard let charset = part.contentType.charset, let text = Charset.decode(decoded, charset)
        else { return decoded }
        return Array(text.utf8)
    }

    /// The report's text for people: its first text part that is not blank.
    private static func prose(_ parts: [MIMEPart], body: [UInt8]) -> String {
        var nested = false
        for part in parts {
            if part.contentType.matches("message", "rfc822") { nested = true }
            guard !nested, !part.isComposite, part.contentType.matches("text"),
                part.contentType.subtype != "rfc822-headers"
            else { continue }
            let text = text(of: part, body: body)
            let plain = part.contentType.subtype == "html" ? ProseReport.withoutTags(text) : text
            // In Swift, CR LF is one character. Prose is divided into lines at LF alone.
            if plain.contains(where: { !$0.isFoldingWhiteSpace }) {
                return String(decoding: plain.filter { $0 != 0x0D }, as: UTF8.self)
            }
        }
        // The parts cannot be told apart, so all text is prose.
        guard let root = parts.first, root.contentType.matches("multipart") else { return "" }
        return String(decoding: body.prefix(partLimit).filter { $0 != 0x0D }, as: UTF8.self)
    }

    /// Subject, Message-ID, our witness and the sender fields of the returned
    /// message, by lower-case name.
    private static func original(_ parts: [MIMEPart], body: [UInt8]) -> [String: String] {
        for part in parts {
            if part.contentType.matches("text", "rfc822-headers")
                || part.contentType.matches("message", "rfc822-headers")
                || part.contentType.matches("message", "global-headers")
            {
                return fields(HeaderSection.parse(text(of: part, body: body)[...]).header)
            }
            if part.contentType.matches("message", "rfc822")
                || part.contentType.matches("message", "global")
            {
                if let nested = part.children.first { return fields(nested.header) }
                return fields(HeaderSection.parse(text(of: part, body: body)[...]).header)
            }
        }
        return [:]
    }

    static func fields(_ header: HeaderSection) -> [String: String] {
        var fields: [String: String] = [:]
        for name in ["Subject", "Message-ID", "Return-Path", "From", OriginalWitness.fieldName] {
            if let field = header.first(name) {
                fields[name.lowercased()] =
                    name == "Subject" ? field.decodedValue : field.unfoldedValue
            }
        }
        return fields
    }
}
