// Bodies that are header fields: removes what such a field reveals about the user's machine.

import InternetMessage

enum ReportFields {
    /// Fields of reports and of returned headers that show the path of a message through the user's provider.
    private static let dropped: Set<String> = [
        "received", "return-path", "delivered-to", "x-original-to", "received-from-mta", "x-postfix-sender",
        "authentication-results",
        "dkim-signature", "arc-seal", "arc-message-signature", "arc-authentication-results", "x-received", "x-originating-ip",
        "received-spf",
        "source-ip", "x-forwarded-to", "x-forwarded-for", "x-postern-mark", "x-postern-original-from",
        "autocrypt", "autocrypt-gossip", "openpgp",
        "x-postern-witness",
    ]

    /// The edits together with those that remove whole fields.
    /// - Parameter isForward: whether they are those of a forward of the team's.
    static func edits(_ text: [UInt8], adding edits: [TextEdit], isForward: Bool) -> [TextEdit] {
        var all = edits
        var start = 0
        while start < text.count {
            let end = ContentLines.foldedLineEnd(in: text, from: start)
            let name = text[start..<end].prefix { $0 != UInt8(ascii: ":") && $0 > 0x20 }
            if name.count < end - start {
                switch String(decoding: name, as: UTF8.self).lowercased() {
                case let name where dropped.contains(name) || (isForward && !PartHeader.passesOfForward(name)):
                    all.append(TextEdit(range: start..<end, replacement: []))
                case "reporting-ua": host(text, start..<end, isFirst: true).map { all.append($0) }
                case let name where naming.contains(name): host(text, start..<end, isFirst: false).map { all.append($0) }
                default: break
                }
            }
            start = end
        }
        return all.reconciled
    }

    /// Fields that name a machine after its kind: `Reporting-MTA: dns; host` (RFC 3464 section 2.2.2).
    private static let naming: Set<String> = ["reporting-mta", "remote-mta", "mdn-gateway", "dsn-gateway"]

    /// The name of a machine in such a field becomes `localhost`, always. In `Reporting-UA: host; product` (RFC 8098
    /// section 3.2.1) it is first.
    private static func host(_ text: [UInt8], _ field: Range<Int>, isFirst: Bool) -> TextEdit? {
        guard let colon = text[field].firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let pieces = text[(colon + 1)..<field.upperBound].split(separator: UInt8(ascii: ";"), maxSplits: 1).map {
            HeaderField.trim($0)
        }
        guard pieces.count == 2, let host = isFirst ? pieces.first : pieces.last, !host.isEmpty, !host.contains(0x20) else {
            return nil
        }
        return TextEdit(range: host.startIndex..<host.endIndex, replacement: Array("localhost".utf8))
    }
}
