// ASCII letters, digits and case, octet by octet.
//
// Called for every octet of a message. They are `@inlinable`, so that loops in other modules
// contain the code and need no call.

extension UInt8 {
    /// ASCII A–Z, a–z.
    @inlinable package var isASCIILetter: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }

    /// ASCII 0–9.
    @inlinable package var isASCIIDigit: Bool { self >= 0x30 && self <= 0x39 }

    /// ASCII A–Z, a–z, 0–9.
    @inlinable package var isASCIIAlphanumeric: Bool { isASCIILetter || isASCIIDigit }

    /// The octet with A–Z folded to a–z; every other octet unchanged.
    @inlinable package var asciiLowercased: UInt8 {
        self >= 0x41 && self <= 0x5A ? self | 0x20 : self
    }
}

extension String {
    /// The string with A–Z folded to a–z and nothing else changed.
    package var asciiLowercased: String {
        String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }
}

extension Collection where Element == UInt8 {
    /// Whether both contain the same octets, with ASCII letters compared case-insensitively.
    @inlinable package func equalsIgnoringASCIICase(_ other: some Collection<UInt8>) -> Bool {
        guard count == other.count else { return false }
        return zip(self, other).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}
