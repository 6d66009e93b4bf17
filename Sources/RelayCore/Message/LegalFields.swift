// Header fields in the form that every server accepts: ASCII (RFC 2047, RFC 2231), in lines of 998
// octets (RFC 5322 section 2.1.1).

import InternetMessage
import Support

/// Makes the fields of one header section legal. Legal fields stay octet for octet.
struct LegalFields {
    /// The charset for octets that are not UTF-8.
    private let charset: String

    /// - Parameter header: its Content-Type names the charset of octets that are not UTF-8.
    init(_ header: HeaderSection) {
        charset =
            header.first("Content-Type").flatMap { ContentType.parse($0.rawValue).charset } ?? ""
    }

    /// Fields with values in which a word cannot be encoded. Non-ASCII characters become `?`.
    private static let structured: FieldNameSet = [
        "received", "received-spf", "authentication-results", "date", "mime-version",
        "content-transfer-encoding", "content-id",
        "message-id", "in-reply-to", "references", "auto-submitted", "dkim-signature",
    ]

    /// The new raw value; nil if the field is legal.
    func value(_ field: HeaderField) -> [UInt8]? {
        let isASCII = field.bytes.allSatisfy { $0 < 0x80 }
        guard !isASCII || !field.fitsLines else { return nil }
        if field.isNamed("Content-Type") { return folded(contentType(field), field) }
        if field.isNamed("Content-Disposition") {
            var disposition = ContentDisposition.parse(field.rawValue)
            name(&disposition.parameters)
            return folded(disposition.serialized, field)
        }
        if field.isNamed(ForwardRewriting.originalFromField),
            var author = AddressList.parse(text(field)).mailboxes.first
        {
            author.displayName = AuthorAddress.name(value: Array(text(field).utf8)[...])
            return AddressFieldValue.write([.mailbox(author)], nameLength: field.nameLength)
        }
        if FieldNames.inForward(field) == .links, !field.isNamed("List-ID") { return links(field) }
        if Self.structured.contains(field) {
            return folded(
                String(
                    String.UnicodeScalarView(
                        text(field).unicodeScalars.map { $0.isASCII ? $0 : "?" })), field)
        }
        // White space in a word of a thousand characters does less harm than a field that grows by
        // a third of its length.
        return isASCII
            ? broken(field) : Array(HeaderField.unstructured(field.name, decoded(field)).rawValue)
    }

    /// The header section with all fields made legal.
    func legal(_ header: HeaderSection) -> HeaderSection {
        HeaderSection(
            header.fields.map { field in
                value(field).map { HeaderField(name: field.name, rawValue: $0) } ?? field
            })
    }

    /// The unfolded value in UTF-8.
    func text(_ field: HeaderField) -> String {
        let octets = HeaderField.trim(field.unfoldedBytes[...])
        if octets.isValidUTF8 { return String(decoding: octets, as: UTF8.self) }
        return Charset.decodeStrict(octets, charset) ?? Charset.decode(octets, "windows-1252")
            ?? String(decoding: octets, as: UTF8.self)
    }

    private func decoded(_ field: HeaderField) -> String {
        EncodedWord.decode(Array(text(field).utf8)[...])
    }

    private func folded(_ value: String, _ field: HeaderField) -> [UInt8] {
        Array(HeaderField.folding(field.name, value).rawValue)
    }

    // MARK: Parameters

    private func contentType(_ field: HeaderField) -> String {
        var type = ContentType.parse(field.rawValue)
        name(&type.parameters)
        return type.serialized
    }

    /// Adds a charset to values that are not ASCII, so that they are written by RFC 2231.
    private func name(_ parameters: inout MIMEParameters) {
        for index in parameters.list.indices where parameters.list[index].charset == nil {
            let octets = parameters.list[index].bytes
            guard !octets.isValidUTF8 else { continue }
            let isRead = Charset.decodeStrict(octets, charset) != nil
            parameters.list[index].charset = isRead ? charset : "windows-1252"
        }
    }

    // MARK: URIs

    /// Percent-encodes non-ASCII characters. A URI that is too long for a line is folded within,
    /// and readers ignore the fold (RFC 2369 section 2).
    private func links(_ field: HeaderField) -> [UInt8] {
        let value = HeaderField.trim(field.unfoldedBytes[...]).flatMap {
            $0 < 0x80 ? [$0] : Hex.escape($0, mark: "%")
        }
        return broken(HeaderField(name: field.name, rawValue: [0x20] + value))
    }

    /// Octets after which a line is broken: at white space from the first number on, at any octet
    /// from the second on.
    private static let breaks = (atSpace: 800, within: 900)

    private func broken(_ field: HeaderField) -> [UInt8] {
        var value: [UInt8] = []
        var column = field.nameLength + 1
        for octet in field.unfoldedBytes {
            if column >= (octet.isWhiteSpace ? Self.breaks.atSpace : Self.breaks.within) {
                value += octet.isWhiteSpace ? [0x0D, 0x0A] : [0x0D, 0x0A, 0x20]
                column = octet.isWhiteSpace ? 0 : 1
            }
            value.append(octet)
            column += 1
        }
        return value
    }
}
