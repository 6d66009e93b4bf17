// Reads CBOR (RFC 8949) strictly, so that two readers cannot disagree: no errors are tolerated, and
// nothing is guessed.

/// Octets that are not accepted as CBOR. States the problem and its offset, and quotes none of
/// them.
package struct CBORError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problem, as in "a key occurs twice".
    package let message: String
    /// Offset of the octet at which the error was found, from 0.
    package let offset: Int

    package init(message: String, offset: Int) {
        self.message = message
        self.offset = offset
    }

    package var description: String { "\(message) (at octet \(offset))" }
}

/// The reader. It always refuses input that is not well-formed (RFC 8949 appendix C), a key that
/// occurs twice, text that is not UTF-8 (section 5.3.1), and nesting beyond `maximumDepth`. Linear
/// in the input except for the keys of one map, which are compared by hash.
package struct CBORReader {
    /// The accepted encodings.
    package enum Form: Sendable, Hashable {
        /// Everything that is valid.
        case any
        /// No indefinite lengths, and every length and number in its shortest form. CTAP2 requires
        /// this of authenticators. The order of keys is not checked, because several authenticators
        /// and programs between get it wrong.
        case definite
    }

    /// Maps, arrays and tags within each other. An attestation has four.
    package static let maximumDepth = 16

    private let octets: ArraySlice<UInt8>
    private let form: Form
    private var position: Int

    /// - Parameter octets: error offsets count from the first octet.
    private init(_ octets: ArraySlice<UInt8>, form: Form) {
        self.octets = octets
        self.form = form
        position = octets.startIndex
    }

    /// The one data item in the octets; an error if more follows.
    package static func value(
        of octets: ArraySlice<UInt8>, form: Form = .definite
    ) throws(CBORError) -> CBORValue {
        let (value, rest) = try firstValue(of: octets, form: form)
        guard rest.isEmpty else {
            throw CBORError(message: "octets after the item", offset: octets.count - rest.count)
        }
        return value
    }

    /// The same for an array.
    package static func value(
        of octets: [UInt8], form: Form = .definite
    ) throws(CBORError) -> CBORValue {
        try value(of: octets[...], form: form)
    }

    /// The first data item, and the octets after it.
    package static func firstValue(
        of octets: ArraySlice<UInt8>, form: Form = .definite
    ) throws(CBORError) -> (value: CBORValue, rest: ArraySlice<UInt8>) {
        var reader = CBORReader(octets, form: form)
        let value = try reader.item(depth: 0)
        return (value, octets[reader.position...])
    }

    // MARK: Heads

    /// The first octet of an item and the number after it (RFC 8949 section 3).
    private struct Head {
        let major: UInt8
        let info: UInt8
        /// Nil for an indefinite length.
        let argument: UInt64?
        let offset: Int
    }

    private func error(_ message: String, at place: Int? = nil) -> CBORError {
        CBORError(message: message, offset: (place ?? position) - octets.startIndex)
    }

    private mutating func take(_ count: Int) throws(CBORError) -> ArraySlice<UInt8> {
        guard count <= octets.endIndex - position else {
            throw error("it ends too early", at: octets.endIndex)
        }
        defer { position += count }
        return octets[position..<(position + count)]
    }

    private mutating func head() throws(CBORError) -> Head {
        let start = position
        guard let first = try take(1).first else { throw error("it ends too early") }
        let (major, info) = (first >> 5, first & 0x1F)
        switch info {
        case 0..<24: return Head(major: major, info: info, argument: UInt64(info), offset: start)
        case 24...27:
            let count = 1 << Int(info - 24)
            let argument = try take(count).reduce(0) { $0 << 8 | UInt64($1) }
            // For numbers with a fraction, the length is the precision.
            if form == .definite, major != 7,
                info == 24 ? argument < 24 : argument >> UInt64(count * 4) == 0
            {
                throw error("a number or length is not in its shortest form", at: start)
            }
            return Head(major: major, info: info, argument: argument, offset: start)
        case 31 where (2...5).contains(major) || major == 7:
            guard form == .any else { throw error("an indefinite length", at: start) }
            return Head(major: major, info: info, argument: nil, offset: start)
        default: throw error("an undefined first octet", at: start)
        }
    }

    // MARK: Items

    private mutating func item(depth: Int) throws(CBORError) -> CBORValue {
        try item(try head(), depth: depth)
    }

    private mutating func item(_ head: Head, depth: Int) throws(CBORError) -> CBORValue {
        guard depth <= Self.maximumDepth else { throw error("nested too deeply", at: head.offset) }
        switch (head.major, head.argument) {
        case (0, let number?): return .unsigned(number)
        case (1, let number?): return .negative(number)
        case (2, _): return .bytes(try string(head))
        case (3, _): return .text(try text(head))
        case (4, _): return .array(try array(head, depth: depth))
        case (5, _): return .map(try map(head, depth: depth))
        case (6, let tag?): return .tagged(tag, try item(depth: depth + 1))
        case (7, let number?): return try simple(head, number)
        default: throw error("a break outside an item of indefinite length", at: head.offset)
        }
    }

    private mutating func simple(_ head: Head, _ number: UInt64) throws(CBORError) -> CBORValue {
        switch head.info {
        case 20, 21: return .bool(head.info == 21)
        case 22: return .null
        case 23: return .undefined
        case 24:
            // Below 32 there would be two encodings.
            guard number >= 32 else {
                throw error("a simple value in two octets that fits in one", at: head.offset)
            }
            return .simple(UInt8(number))
        case 25: return .float(Self.half(UInt16(number)))
        case 26: return .float(Double(Float(bitPattern: UInt32(number))))
        case 27: return .float(Double(bitPattern: number))
        default: return .simple(head.info)
        }
    }

    /// A 16-bit number (IEEE 754 binary16); Swift's Float16 is not available on every machine.
    private static func half(_ bits: UInt16) -> Double {
        let (exponent, fraction) = (Int(bits >> 10 & 0x1F), Double(bits & 0x3FF))
        let magnitude: Double =
            switch exponent {
            case 0: Double(sign: .plus, exponent: -24, significand: fraction)
            case 31: fraction == 0 ? .infinity : .nan
            default: Double(sign: .plus, exponent: exponent - 25, significand: 1024 + fraction)
            }
        return bits & 0x8000 == 0 ? magnitude : -magnitude
    }

    /// The octets of a byte or text string. One of indefinite length consists of definite-length
    /// parts of the same kind.
    private mutating func string(_ head: Head) throws(CBORError) -> [UInt8] {
        if let argument = head.argument { return Array(try take(try length(argument, head))) }
        var whole: [UInt8] = []
        while let part = try next() {
            guard part.major == head.major, let argument = part.argument else {
                throw error("a part of a string that is none", at: part.offset)
            }
            let octets = try take(try length(argument, part))
            if head.major == 3, String(validating: octets, as: UTF8.self) == nil {
                throw error("a text that is not UTF-8", at: part.offset)
            }
            whole += octets
        }
        return whole
    }

    private mutating func text(_ head: Head) throws(CBORError) -> String {
        guard let text = String(validating: try string(head), as: UTF8.self) else {
            throw error("a text that is not UTF-8", at: head.offset)
        }
        return text
    }

    private mutating func array(_ head: Head, depth: Int) throws(CBORError) -> [CBORValue] {
        var elements: [CBORValue] = []
        if let argument = head.argument {
            for _ in 0..<(try length(argument, head)) {
                elements.append(try item(depth: depth + 1))
            }
        } else {
            while let next = try next() { elements.append(try item(next, depth: depth + 1)) }
        }
        return elements
    }

    private mutating func map(_ head: Head, depth: Int) throws(CBORError) -> [CBORValue.Pair] {
        var (pairs, keys): ([CBORValue.Pair], Set<CBORValue>) = ([], [])
        var left = try head.argument.map { argument throws(CBORError) in try length(argument, head)
        }
        while left != 0 {
            let start = position
            let key: CBORValue
            if left == nil {
                guard let next = try next() else { break }
                key = try item(next, depth: depth + 1)
            } else {
                key = try item(depth: depth + 1)
            }
            guard keys.insert(key).inserted else { throw error("a key occurs twice", at: start) }
            pairs.append(CBORValue.Pair(key: key, value: try item(depth: depth + 1)))
            left = left.map { $0 - 1 }
        }
        return pairs
    }

    /// The head of the next part of an indefinite-length item; nil at its end.
    private mutating func next() throws(CBORError) -> Head? {
        let head = try head()
        return head.major == 7 && head.argument == nil ? nil : head
    }

    /// A length or a count. Each element takes at least an octet, so that a false count never
    /// reserves more than the input has.
    private func length(_ argument: UInt64, _ head: Head) throws(CBORError) -> Int {
        guard let length = Int(exactly: argument), length <= octets.endIndex - position else {
            throw error("it ends too early", at: octets.endIndex)
        }
        return length
    }
}
