// Bodies of header fields: of a report, or of a message without its body. Programs write and return
// them, so nothing in them is compared with the inbox.

import InternetMessage

enum ReportFields {
    /// Fields of reports that are sent (RFC 3464, 3798, 3885, 5965, 8098). The others show the path
    /// of a message through the user's provider.
    private static let passing: FieldNameSet = [
        "original-envelope-id", "reporting-mta", "dsn-gateway", "arrival-date",
        "original-recipient", "final-recipient",
        "x-actual-recipient", "action", "status", "remote-mta", "diagnostic-code",
        "last-attempt-date", "will-retry-until",
        "reporting-ua", "mdn-gateway", "original-message-id", "disposition", "failure", "error",
        "warning", "feedback-type",
        "user-agent", "version", "incidents",
    ]
    private static let recipients: FieldNameSet = [
        "original-recipient", "final-recipient", "x-actual-recipient",
    ]
    /// Fields that name a machine after its type: `Reporting-MTA: dns; host` (RFC 3464 section
    /// 2.2.2).
    private static let naming: FieldNameSet = [
        "reporting-mta", "remote-mta", "mdn-gateway", "dsn-gateway",
    ]
    /// Fields of a message from which a name next to an address is removed with it.
    private static let authors: FieldNameSet = ["from", "to", "cc", "sender", "reply-to"]

    /// The fields of a text, with their ranges. A line that is not a field belongs to the one
    /// before.
    private static func fields(_ text: [UInt8]) -> [(field: HeaderField?, range: Range<Int>)] {
        var fields: [(HeaderField?, Range<Int>)] = []
        var start = 0
        while start < text.count {
            let end = ContentLines.foldedLineEnd(in: text, from: start)
            let name = text[start..<end].prefix { $0 != UInt8(ascii: ":") && $0 > 0x20 }
            let isField =
                !name.isEmpty && name.endIndex < end && text[name.endIndex] == UInt8(ascii: ":")
            let value = isField ? text[(name.endIndex + 1)..<end] : []
            fields.append(
                (
                    isField
                        ? HeaderField(
                            name: String(decoding: name, as: UTF8.self), rawValue: Array(value))
                        : nil, start..<end
                ))
            start = end
        }
        return fields
    }

    static func stretches(of text: [UInt8]) -> Stretches {
        var stretches = Stretches(.program)
        for (field, range) in fields(text) {
            stretches.note(
                field.map(authors.contains) == true ? .attribution : .program, at: range.lowerBound)
        }
        return stretches
    }

    /// The given edits, and those that remove fields or reduce them to their name.
    /// - Parameter isOfMessage: whether the fields belong to a message, and not to a report.
    static func edits(
        _ text: [UInt8], adding edits: [TextEdit], isOfMessage: Bool, text rewriter: TextRewriter
    ) -> [TextEdit] {
        var made: [TextEdit] = []
        for (field, range) in fields(text) {
            guard let field else { continue }
            let isPassing =
                isOfMessage ? PartHeader.passesWithoutBody(field) : passing.contains(field)
            guard isPassing else {
                made.append(TextEdit(range: range, replacement: []))
                continue
            }
            guard !isOfMessage else { continue }
            let value = value(text, range)
            if recipients.contains(field) {
                made.append(
                    TextEdit(
                        range: value,
                        replacement: Array("rfc822;\(rewriter.names.relayAddress.wireForm)".utf8)))
            } else if field.isNamed("Original-Message-ID") {
                // The team's own ids return unchanged.
                let ids = rewriter.outwardIDs?.outward(MessageIDs.ids(in: text[value])) ?? []
                made.append(
                    TextEdit(
                        range: value, replacement: ids.first.map { [0x3C] + $0 + [0x3E] } ?? [],
                        isMade: true))
            } else if field.isNamed("Reporting-UA") {
                if let edit = host(text, value, isFirst: true) { made.append(edit) }
            } else if naming.contains(field), let edit = host(text, value, isFirst: false) {
                made.append(edit)
            }
        }
        guard !made.isEmpty else { return edits }
        var next = made[...]
        let others = edits.filter { edit in
            while let first = next.first, first.range.upperBound <= edit.range.lowerBound {
                next.removeFirst()
            }
            return next.first.map { !$0.range.overlaps(edit.range) } ?? true
        }
        return (made + others).sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// The value of a field, without white space at its ends.
    private static func value(_ text: [UInt8], _ field: Range<Int>) -> Range<Int> {
        guard let colon = text[field].firstIndex(of: UInt8(ascii: ":")) else {
            return field.upperBound..<field.upperBound
        }
        let value = HeaderField.trim(text[(colon + 1)..<field.upperBound])
        return value.startIndex..<value.endIndex
    }

    /// The name of a machine in such a field always becomes `localhost`. In `Reporting-UA: host;
    /// product` (RFC 8098 section 3.2.1) it comes first.
    private static func host(_ text: [UInt8], _ value: Range<Int>, isFirst: Bool) -> TextEdit? {
        let pieces = text[value].split(separator: UInt8(ascii: ";"), maxSplits: 1).map {
            HeaderField.trim($0)
        }
        guard pieces.count == 2, let host = isFirst ? pieces.first : pieces.last, !host.isEmpty,
            !host.contains(0x20)
        else {
            return nil
        }
        return TextEdit(
            range: host.startIndex..<host.endIndex, replacement: Array("localhost".utf8))
    }
}
