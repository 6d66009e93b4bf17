// Classes of octets as the grammars of RFC 5322, 2045 and 2047 name them.

extension UInt8 {
    /// Space or horizontal tab (WSP, RFC 5234).
    @inlinable package var isWhiteSpace: Bool { self == 0x20 || self == 0x09 }

    /// WSP, CR or LF: what a fold is made of.
    @inlinable package var isFoldingWhiteSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }

    /// ASCII A–Z, a–z.
    @inlinable package var isASCIILetter: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }

    /// ASCII 0–9.
    @inlinable package var isASCIIDigit: Bool { self >= 0x30 && self <= 0x39 }

    /// atext (RFC 5322 section 3.2.3) or, by RFC 6532, any octet of 128 and above.
    @inlinable package var isAtomText: Bool {
        if self >= 0x80 || isASCIILetter || isASCIIDigit { return true }
        switch self {
        case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2F, 0x3D, 0x3F, 0x5E, 0x5F, 0x60, 0x7B, 0x7C, 0x7D, 0x7E:
            return true
        default: return false
        }
    }

    /// A control character: 0–31 and 127, tab, CR and LF included.
    @inlinable package var isControl: Bool { self < 0x20 || self == 0x7F }

    /// A control character other than tab, CR and LF.
    @inlinable package var isForbiddenControl: Bool { isControl && self != 0x09 && self != 0x0A && self != 0x0D }

    /// A character of a MIME token (RFC 2045 section 5.1): printable ASCII except space and tspecials.
    @inlinable package var isTokenText: Bool {
        guard self > 0x20, self < 0x7F else { return false }
        switch self {
        case 0x28, 0x29, 0x3C, 0x3E, 0x40, 0x2C, 0x3B, 0x3A, 0x5C, 0x22, 0x2F, 0x5B, 0x5D, 0x3F, 0x3D: return false
        default: return true
        }
    }

    /// The value of a hexadecimal digit in either case; nil for any other octet.
    @inlinable package var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }
}

extension Sequence where Element == UInt8 {
    /// Whether the octets are well-formed UTF-8 (RFC 3629).
    package var isValidUTF8: Bool {
        withContiguousStorageIfAvailable { Octets.areUTF8($0) } ?? Array(self).withUnsafeBufferPointer { Octets.areUTF8($0) }
    }
}

private enum Octets {
    static func areUTF8(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        // Most text is ASCII: the decoder is asked from the first other octet on.
        guard let first = octets.firstIndex(where: { $0 >= 0x80 }) else { return true }
        return areUTF8(UnsafeBufferPointer(rebasing: octets[first...]).makeIterator())
    }

    private static func areUTF8(_ octets: UnsafeBufferPointer<UInt8>.Iterator) -> Bool {
        var decoder = UTF8()
        var iterator = octets
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }
}

extension Collection where Element == UInt8 {
    /// Whether both hold the same octets, ASCII letters compared case-insensitively.
    package func equalsIgnoringASCIICase(_ other: some Collection<UInt8>) -> Bool {
        guard count == other.count else { return false }
        return zip(self, other).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension String {
    /// The string with A–Z folded to a–z and nothing else changed.
    package var asciiLowercased: String { String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) }
}
