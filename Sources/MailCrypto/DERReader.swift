// Reads DER (X.690 section 10): only definite lengths in their shortest form.

/// Reads DER values one after the other.
package struct DERReader: Sendable {
    /// The tag of a value.
    package struct Tag: Sendable, Hashable {
        /// Class and form: the upper three bits of the first octet.
        let form: UInt8
        package let number: UInt32

        package static let boolean = Tag(form: 0, number: 1)
        package static let integer = Tag(form: 0, number: 2)
        package static let bitString = Tag(form: 0, number: 3)
        package static let octetString = Tag(form: 0, number: 4)
        package static let null = Tag(form: 0, number: 5)
        package static let objectIdentifier = Tag(form: 0, number: 6)
        package static let enumerated = Tag(form: 0, number: 10)
        package static let sequence = Tag(form: 0x20, number: 16)
        package static let set = Tag(form: 0x20, number: 17)

        /// `[number] EXPLICIT`.
        package static func explicit(_ number: UInt32) -> Tag { Tag(form: 0xA0, number: number) }
    }

    /// The octets that remain to be read.
    package private(set) var bytes: ArraySlice<UInt8>

    package init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    package var isAtEnd: Bool { bytes.isEmpty }

    /// The next value without consuming it.
    package func peek(_ tag: Tag) -> DERReader? {
        var copy = self
        return copy.read(tag)
    }

    /// The contents of the next value; nil, with nothing consumed, if it is of
    /// another kind or malformed.
    package mutating func read(_ tag: Tag) -> DERReader? {
        var copy = self
        guard let (found, content) = copy.readAny(), found == tag else { return nil }
        self = copy
        return content
    }

    /// The next value, of any kind; nil, with nothing consumed, if it is malformed.
    package mutating func readAny() -> (tag: Tag, content: DERReader)? {
        var rest = bytes
        guard let tag = Self.tag(&rest), let length = Self.length(&rest), length <= rest.count
        else { return nil }
        bytes = rest.dropFirst(length)
        return (tag, DERReader(rest.prefix(length)))
    }

    private static func tag(_ rest: inout ArraySlice<UInt8>) -> Tag? {
        guard let first = rest.popFirst() else { return nil }
        guard first & 0x1F == 0x1F else {
            return Tag(form: first & 0xE0, number: UInt32(first & 0x1F))
        }
        // Three octets of seven bits: more than any tag here has.
        var number: UInt32 = 0
        for index in 0..<3 {
            guard let octet = rest.popFirst(), index > 0 || octet != 0x80 else { return nil }
            number = number << 7 | UInt32(octet & 0x7F)
            if octet & 0x80 == 0 {
                return number >= 0x1F ? Tag(form: first & 0xE0, number: number) : nil
            }
        }
        return nil
    }

    private static func length(_ rest: inout ArraySlice<UInt8>) -> Int? {
        guard let first = rest.popFirst() else { return nil }
        guard first >= 0x80 else { return Int(first) }
        // Two length octets reach 65,535: more than any key or extension here has.
        guard first == 0x81 || first == 0x82 else { return nil }
        var length = 0
        for _ in 0..<(first & 0x7F) {
            guard let octet = rest.popFirst() else { return nil }
            length = length << 8 | Int(octet)
        }
        return length >= (first == 0x81 ? 0x80 : 0x100) ? length : nil
    }

    /// A number above zero, big-endian without leading zeros.
    package mutating func readPositiveInteger() -> ArraySlice<UInt8>? {
        guard let integer = read(.integer)?.bytes, let first = integer.first, first < 0x80 else {
            return nil
        }
        guard first == 0 else { return integer }
        let rest = integer.dropFirst()
        guard let second = rest.first, second >= 0x80 else { return nil }
        return rest
    }
}
