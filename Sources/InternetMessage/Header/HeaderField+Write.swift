// Makes header fields, folded (RFC 5322 sections 2.1.1 and 2.2.3).

extension HeaderField {
    /// The line length that folding tries to keep, in octets without CRLF (RFC 5322 section 2.1.1).
    package static let preferredLineLength = 78

    /// A field of unstructured text: encoded words if needed (RFC 2047), folded.
    package static func unstructured(_ name: String, _ text: String) -> HeaderField {
        folding(name, EncodedWord.encodeWhereNeeded(text))
    }

    /// An address field, folded.
    package static func addresses(_ name: String, _ addresses: [Address]) -> HeaderField {
        folding(name, addresses.map(\.serialized).joined(separator: ", "))
    }

    /// An address field of mailboxes, folded.
    package static func addresses(_ name: String, _ mailboxes: [Mailbox]) -> HeaderField {
        addresses(name, mailboxes.map(Address.mailbox))
    }

    /// A field `name: value` with folds before white space, so that lines keep to 78 octets if
    /// white space allows it.
    ///
    /// White space in quoted strings is used only if a line would pass 998 octets. Words are never
    /// broken: a single word of over 998 octets stays unchanged. NUL, CR and LF in `value` become
    /// spaces, so a value cannot begin a new field.
    package static func folding(_ name: String, _ value: String) -> HeaderField {
        var text: [UInt8] = [0x20]
        text.append(contentsOf: value.utf8.map { $0 == 0 || $0 == 0x0D || $0 == 0x0A ? 0x20 : $0 })
        // White space at the end could become a separate line.
        while text.count > 1, text[text.count - 1].isWhiteSpace { text.removeLast() }
        var output = [UInt8]()
        output.reserveCapacity(text.count + text.count / 32)
        var column = name.utf8.count + 1
        var index = 0
        while index < text.count {
            let segment = nextSegment(text, index, limit: HeaderSection.maximumLineLength)
            let isFirst = index == 0
            let limit = isFirst ? HeaderSection.maximumLineLength : preferredLineLength
            if column + segment.count > limit, text[index].isWhiteSpace {
                output.append(contentsOf: [0x0D, 0x0A])
                column = 0
            }
            output.append(contentsOf: text[segment])
            column += segment.count
            index = segment.upperBound
        }
        return HeaderField(name: name, rawValue: output)
    }

    /// White space and the text after it, up to the next white space outside quotes. A quoted
    /// string over `limit` is also divided at white space.
    private static func nextSegment(_ text: [UInt8], _ start: Int, limit: Int) -> Range<Int> {
        var index = start
        while index < text.count, text[index].isWhiteSpace { index += 1 }
        var isQuoted = false
        var lastSpace: Int?
        while index < text.count {
            let octet = text[index]
            if octet.isWhiteSpace {
                if !isQuoted { break }
                if index - start < limit - 1 { lastSpace = index }
            } else if octet == UInt8(ascii: "\""),
                index == start || text[index - 1] != UInt8(ascii: "\\")
            {
                isQuoted.toggle()
            }
            index += 1
            if index - start >= limit, let space = lastSpace, space > start + 1,
                !text[start..<space].allSatisfy(\.isWhiteSpace)
            {
                return start..<space
            }
        }
        return start..<index
    }
}

extension Message {
    /// The octets with every bare LF and bare CR converted to CRLF, for messages from files;
    /// unchanged if there is none.
    package static func canonicalLineBreaks(_ bytes: [UInt8]) -> [UInt8] {
        var output = [UInt8]()
        output.reserveCapacity(bytes.count + bytes.count / 40)
        var index = 0
        while index < bytes.count {
            let octet = bytes[index]
            index += 1
            guard octet == 0x0D || octet == 0x0A else {
                output.append(octet)
                continue
            }
            if octet == 0x0D, index < bytes.count, bytes[index] == 0x0A { index += 1 }
            output.append(contentsOf: [0x0D, 0x0A])
        }
        return output
    }
}
