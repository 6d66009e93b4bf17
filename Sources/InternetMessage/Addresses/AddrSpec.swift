// addr-spec (RFC 5322 section 3.4.1, internationalised by RFC 6532).

/// An address `local-part@domain` as a value, without quotes and comments, otherwise unchanged.
///
/// Two addresses are equal if their local parts have the same octets and their domains differ at
/// most in ASCII letter case.
package struct AddrSpec: Sendable {
    /// The local part without quotes or backslashes. May contain any character, also `@` and
    /// spaces.
    package let localPart: String
    /// The domain as written: a dot-atom, or a domain literal with its brackets.
    package let domain: String

    package init(localPart: String, domain: String) {
        self.localPart = localPart
        self.domain = domain
    }
}

extension AddrSpec: Hashable {
    // Compares octets, not characters: for Swift's `==` on strings, "é" and "e" +
    // combining accent are equal.
    package static func == (left: AddrSpec, right: AddrSpec) -> Bool {
        left.localPart.utf8.elementsEqual(right.localPart.utf8)
            && left.domain.utf8.equalsIgnoringASCIICase(right.domain.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        var local = localPart
        local.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        var name = domain.asciiLowercased
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
