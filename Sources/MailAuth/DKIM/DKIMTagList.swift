// tag=value lists (RFC 6376 section 3.2): the form of DKIM-Signature fields and of key records.

/// A parsed tag list. Names are case-sensitive; a name that occurs twice makes the whole list invalid.
struct DKIMTagList {
    struct Tag {
        let name: String
        /// Without the white space around it.
        let value: ArraySlice<UInt8>
        /// Everything between `=` and the next `;` (or the end), white space included, as offsets into the parsed array.
        let range: Range<Int>
    }

    /// In order of appearance.
    private(set) var tags: [Tag] = []
    private var positions: [String: Int] = [:]

    /// Takes linear time. Octets outside ASCII are let through in values (RFC 8616); other control characters are not.
    init(_ bytes: ArraySlice<UInt8>) throws(DKIMSyntaxError) {
        try Self.checkFolding(bytes)
        var start = bytes.startIndex
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
            let specification = bytes[start..<end]
            if specification.allSatisfy(DKIMSyntax.isFolding) {
                // Only the last semicolon may be followed by nothing.
                guard end == bytes.endIndex, !tags.isEmpty else { throw DKIMSyntaxError("an empty tag") }
                break
            }
            try append(specification)
            start = end + 1
        }
        guard !tags.isEmpty else { throw DKIMSyntaxError("no tags") }
    }

    /// The tag of this name.
    subscript(name: String) -> Tag? { positions[name].map { tags[$0] } }

    private mutating func append(_ specification: ArraySlice<UInt8>) throws(DKIMSyntaxError) {
        guard let equals = specification.firstIndex(of: UInt8(ascii: "=")) else { throw DKIMSyntaxError("a tag without =") }
        let nameBytes = DKIMSyntax.trimmed(specification[..<equals])
        guard let first = nameBytes.first, DKIMSyntax.isLetter(first),
            nameBytes.allSatisfy({ DKIMSyntax.isLetter($0) || DKIMSyntax.isDigit($0) || $0 == UInt8(ascii: "_") })
        else { throw DKIMSyntaxError("a malformed tag name") }
        let name = String(decoding: nameBytes, as: UTF8.self)
        guard positions.updateValue(tags.count, forKey: name) == nil else {
            // A long name in a reason is of no use to anybody.
            throw DKIMSyntaxError(name.utf8.count <= 16 ? "the tag \(name)= occurs twice" : "a tag occurs twice")
        }
        let range = (equals + 1)..<specification.endIndex
        tags.append(Tag(name: name, value: DKIMSyntax.trimmed(specification[range]), range: range))
    }

    /// CR and LF only as CRLF with white space behind it, and no other control characters.
    private static func checkFolding(_ bytes: ArraySlice<UInt8>) throws(DKIMSyntaxError) {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let octet = bytes[index]
            if octet == 0x0D {
                guard index + 2 < bytes.endIndex, bytes[index + 1] == 0x0A, DKIMSyntax.isWhiteSpace(bytes[index + 2]) else {
                    throw DKIMSyntaxError("a line end that folds nothing")
                }
                index += 2
            } else if octet < 0x20 && octet != 0x09 || octet == 0x7F {
                throw DKIMSyntaxError("a control character")
            }
            index += 1
        }
    }
}
