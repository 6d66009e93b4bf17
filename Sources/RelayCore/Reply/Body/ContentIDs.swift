// The Content-IDs of a reply and the `cid:` URLs that lead to them (RFC 2392): programs make them at the domain of their user.

import InternetMessage

/// Ids of one message's parts, with what comes in their place.
///
/// The choice is made by the host name alone (`ReplyNames.mayTell`) and never by the inbox, so that an id that a team made, and
/// that comes back with its picture in a quotation, shows nothing of a guess.
package struct ContentIDs {
    private var hidden: [[UInt8]: [UInt8]] = [:]

    /// Octets of the longest id that is looked for; a longer one stays, and its parts do not find one another.
    private static let maximumLength = 250

    /// No ids.
    init() {}

    /// The ids of all parts below a root.
    init(of root: MIMEPart, names: ReplyNames) {
        for part in root.flattened {
            guard let field = part.header.first("Content-ID"), let id = MessageIDs.ids(in: field.rawValue).first,
                let at = id.lastIndex(of: UInt8(ascii: "@")), names.mayTell(host: id[(at + 1)...])
            else { continue }
            hidden[id] = names.hide(id: id)
        }
    }

    var isEmpty: Bool { hidden.isEmpty }

    /// A value that is an id, in angle brackets or without, as it leaves; nil where it stays.
    func outward(_ value: some Collection<UInt8>) -> [UInt8]? {
        guard !isEmpty else { return nil }
        if let id = MessageIDs.ids(in: value).first { return hidden[id].map { [UInt8(ascii: "<")] + $0 + [UInt8(ascii: ">")] } }
        return hidden[Array(value)]
    }

    /// Where `cid:` URLs lead to these ids in a text.
    func edits(_ text: [UInt8]) -> [TextEdit] {
        guard !isEmpty else { return [] }
        var edits: [TextEdit] = []
        var index = 0
        while index + 4 < text.count {
            guard text[index] | 0x20 == UInt8(ascii: "c"), text[index + 1] | 0x20 == UInt8(ascii: "i"),
                text[index + 2] | 0x20 == UInt8(ascii: "d"),
                text[index + 3] == UInt8(ascii: ":")
            else {
                index += 1
                continue
            }
            let start = index + 4
            var end = start
            while end < text.count, end - start < Self.maximumLength, text[end] > 0x20, !"\"<>()[]\\,".utf8.contains(text[end]) {
                end += 1
            }
            // An apostrophe may be one of the id's, or end the attribute.
            let quoted = text[start..<end].firstIndex(of: UInt8(ascii: "'")) ?? end
            for stop in Set([quoted, end]).sorted(by: >) {
                guard let id = hidden[Array(text[start..<stop])] ?? hidden[MailtoURI.percentDecoded(text[start..<stop])] else {
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
