// Refuses fields that two programs could read differently.

import InternetMessage

extension HeaderField {
    /// Whether the field has a name of printable ASCII (RFC 5322 section 2.2), and contains no NUL,
    /// bare CR, bare LF or line break outside a fold. libmilter passes values as C strings, so the
    /// relay would not see text after a NUL. A name that begins with white space would be part of
    /// the field above.
    var isSafe: Bool {
        nameLength > 0 && bytes[..<nameLength].allSatisfy { (0x21...0x7E).contains($0) }
            && controls.isDisjoint(with: .ambiguous)
    }

    /// Octets of a line without its end (RFC 5322 section 2.1.1). A server on the way may break a
    /// longer line, although it is signed.
    static let longestLine = 998

    /// Whether no line of the field is too long.
    var fitsLines: Bool { Self.fitsLines(bytes, after: 0) }

    /// Whether no line is too long if this many octets precede the first one.
    static func fitsLines(_ text: [UInt8], after octets: Int) -> Bool {
        var length = octets
        for (index, octet) in text.enumerated() {
            if octet == 0x0A {
                length = 0
            } else {
                length += 1
                // The CR of a line end does not count.
                if length > longestLine,
                    octet != 0x0D || length > longestLine + 1
                        || index + 1 < text.count && text[index + 1] != 0x0A
                {
                    return false
                }
            }
        }
        return true
    }

    /// Whether the name begins with a prefix; letters compare case-insensitively.
    func nameBegins(with prefix: StaticString) -> Bool {
        prefix.withUTF8Buffer { prefix in
            guard nameLength >= prefix.count else { return false }
            for (octet, other) in zip(bytes, prefix) where octet.asciiLowercased != other {
                return false
            }
            return true
        }
    }
}
