// A message and its envelope after the modifications, as an MTA would send them.

import InternetMessage

package struct ModifiedMessage: Sendable {
    package private(set) var header: [HeaderField]
    package private(set) var body: [ArraySlice<UInt8>]
    /// Without angle brackets; empty for the null sender.
    package private(set) var sender: String
    /// Without angle brackets, each once.
    package private(set) var recipients: [String]

    package init(
        header: HeaderSection, body: ArraySlice<UInt8>, sender: String, recipients: [String]
    ) {
        self.header = header.fields
        self.body = [body]
        self.sender = sender
        self.recipients = recipients
    }

    /// The message with line ends as CRLF.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for field in header { bytes += field.bytes + [0x0D, 0x0A] }
        bytes += [0x0D, 0x0A]
        for piece in body { bytes += piece }
        return bytes
    }

    package mutating func apply(_ modifications: [Modification]) {
        for modification in modifications {
            switch modification {
            case .changeHeader(let name, let index, let value): change(name, index, value)
            case .insertHeader(_, let field): header.insert(field, at: 0)
            case .changeSender(let path): sender = path.withoutPathBrackets
            case .addRecipient(let path):
                let recipient = path.withoutPathBrackets
                if !recipients.contains(recipient) { recipients.append(recipient) }
            case .deleteRecipient(let path): recipients.removeAll { $0 == path.withoutPathBrackets }
            case .replaceBody(let pieces): body = pieces
            }
        }
    }

    private mutating func change(_ name: String, _ index: Int, _ value: [UInt8]?) {
        var seen = 0
        for position in header.indices where header[position].isNamed(name) {
            seen += 1
            guard seen == index else { continue }
            if let value {
                header[position] = HeaderField(name: name, rawValue: value)
            } else {
                header.remove(at: position)
            }
            return
        }
        if let value { header.append(HeaderField(name: name, rawValue: value)) }
    }
}

extension String {
    /// A path without its angle brackets, if it has any.
    package var withoutPathBrackets: String {
        hasPrefix("<") && hasSuffix(">") ? String(dropFirst().dropLast()) : self
    }
}
