// Messages as people read them: names and subjects decoded, the text of the first readable
// part, attachments by name.

import Foundation
import InternetMessage
import PostfixHarness

/// A parsed message with the parts that are shown.
package struct Letter {
    private let message: Message
    private let root: MIMEPart

    package init(_ text: String) {
        message = Message.parse(Message.canonicalLineBreaks(Array(text.utf8)))
        root = MIMEPart.parse(message)
    }

    package init(_ sent: SinkMessage) {
        message = Message.parse(sent.data)
        root = MIMEPart.parse(message)
    }

    /// The body unchanged, line ends as CRLF.
    package var body: [UInt8] { Array(message.body) }

    /// The value of the first field of this name unchanged, unfolded.
    package func value(_ name: String) -> String? { message.header.first(name)?.unfoldedValue }

    /// The address between the last angle brackets of a field, or its whole value.
    package func address(_ name: String) -> String {
        message.header.first(name).flatMap {
            AddressList.parse($0.rawValue).mailboxes.first?.addrSpec.wireForm
        } ?? ""
    }

    /// The fields that a reader looks at, decoded, and the number of other fields.
    package func shown(_ names: [String]) -> [String] {
        let chosen = message.header.fields.filter { field in names.contains { field.isNamed($0) } }
        let rest = message.header.fields.count - chosen.count
        let lines = chosen.map { "\($0.name): \(Self.shortened($0.decodedValue))" }
        return lines + (rest > 0 ? [Terminal.styled("(\(rest) more header fields)", .quiet)] : [])
    }

    /// The text that a mail program would show, and the names of attachments.
    package var readable: [String] {
        let leaves = root.flattened.filter { !$0.isComposite }
        let text =
            leaves.first { $0.contentType.matches("text", "plain") }
            ?? leaves.first { $0.contentType.matches("text") }
        var lines =
            text.map {
                decoded($0).split(separator: "\n", omittingEmptySubsequences: false).map(
                    String.init)
            } ?? []
        while lines.last?.isEmpty == true { lines.removeLast() }
        let attached = leaves.compactMap { part in
            (part.disposition?.filename ?? part.contentType.parameters["name"]).map { "[\($0)]" }
        }
        return lines
            + (attached.isEmpty ? [] : [Terminal.styled(attached.joined(separator: " "), .quiet)])
    }

    /// Everything readable in the message, decoded, for searches.
    package var everything: String {
        let header = message.header.fields.map {
            "\($0.name): \($0.unfoldedValue)\n\($0.decodedValue)"
        }
        return
            (header + root.flattened.map(decoded) + [String(decoding: message.bytes, as: UTF8.self)])
            .joined(separator: "\n")
    }

    private func decoded(_ part: MIMEPart) -> String {
        let raw = message.bytes[part.bodyRange]
        let bytes = part.transferEncoding.decode(raw)?.bytes ?? Array(raw)
        return
            (Charset.decode(bytes, part.contentType.charset ?? "utf-8")
            ?? String(decoding: bytes, as: UTF8.self))
            .replacingOccurrences(of: "\r\n", with: "\n")
    }

    private static func shortened(_ value: String) -> String {
        value.count > 150 ? value.prefix(147) + "…" : value
    }
}
