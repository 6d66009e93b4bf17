// The Content-IDs of a reply and the `cid:` URLs that refer to them (RFC 2392). Programs use their
// user's domain in them.

import InternetMessage

/// Ids of one message's parts, with their replacements.
///
/// Only the host name decides (`ReplyNames.mayTell`), never the inbox. So a team's own id, which
/// returns with its picture in a quotation, reveals nothing about a guess.
package struct ContentIDs {
    private var hidden: [[UInt8]: [UInt8]] = [:]

    /// Octets of the longest id that is searched for. A longer one stays in `cid:` URLs, which then
    /// do not refer to its part.
    private static let maximumLength = 250

    /// No ids.
    init() {}

    /// The ids of all parts below a root.
    init(of root: MIMEPart, names: ReplyNames) {
        for part in root.flattened {
            guard let field = part.header.first("Content-ID"),
                let id = MessageIDs.ids(in: field.rawValue).first,
                let at = id.lastIndex(of: UInt8(ascii: "@")), names.mayTell(host: id[(at + 1)...])
            else { continue }
            hidden[id] = names.hide(id: id)
        }
    }

    var isEmpty: Bool { hidden.isEmpty }

    /// The outgoing form of a value that is an id, with or without angle brackets; nil if it is
    /// unchanged.
    func outward(_ value: some Collection<UInt8>) -> [UInt8]? {
        guard !isEmpty else { return nil }
        if let id = MessageIDs.ids(in: value).first {
            return hidden[id].map { [UInt8(ascii: "<")] + $0 + [UInt8(ascii: ">")] }
        }
        return hidden[Array(value)]
    }

    /// The edits of `cid:` URLs in a text that refer to these ids.
    func edits(_ text: [UInt8]) -> [TextEdit] {
        guard !isEmpty else { return [] }
        var edits: [TextEdit] = []
        var index = 0
        while index + 4 < text.count {
            guard text[index] | 0x20 == UInt8(ascii: "c"),
                text[index + 1] | 0x20 == UInt8(ascii: "i"),
                text[index + 2] | 0x20 == UInt8(ascii: "d"),
                text[index + 3] == UInt8(ascii: ":")
            else {
                index += 1
                continue
            }
            let start = index + 4
            var end = start
            while end < text.count, end - start < Self.maximumLength, text[end] > 0x20,
                !"\"<>()[]\\,".utf8.contains(text[end])
            {
                end += 1
            }
            // An apostrophe may belong to the id, or end the attribute.
            let quoted = text[start..<end].firstIndex(of: UInt8(ascii: "'")) ?? end
            for stop in Set([quoted, end]).sorted(by: >) {
                guard
                    let id = hidden[Array(text[start..<stop])]
                        ?? hidden[MailtoURI.percentDecoded(text[start..<stop])]
                else {
                    continue
                }
                edits.append(TextEdit(range: start..<stop, replacement: id))
                break
            }
            index = max(quoted, start)
        }
        return edits
    }
}
