// Classes of octets with the names of the grammars in RFC 5322, 2045 and 2047.

import Support

extension UInt8 {
    /// Space or horizontal tab (WSP, RFC 5234).
    @inlinable package var isWhiteSpace: Bool { self == 0x20 || self == 0x09 }

    /// WSP, CR or LF: the octets of a fold.
    @inlinable package var isFoldingWhiteSpace: Bool {
        self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A
    }

    /// atext (RFC 5322 section 3.2.3) or, by RFC 6532, any octet of 128 and above.
    @inlinable package var isAtomText: Bool {
        if self >= 0x80 || isASCIILetter || isASCIIDigit { return true }
        switch self {
        case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2F, 0x3D, 0x3F, 0x5E, 0x5F,
            0x60, 0x7B, 0x7C, 0x7D, 0x7E:
            return true
        default: return false
        }
    }

    /// A control character: 0–31 and 127, tab, CR and LF included.
    @inlinable package var isControl: Bool { self < 0x20 || self == 0x7F }

    /// A control character other than tab, CR and LF.
    @inlinable package var isForbiddenControl: Bool {
        isControl && self != 0x09 && self != 0x0A && self != 0x0D
    }

    /// A character of a MIME token (RFC 2045 section 5.1): printable ASCII
    /// except space and tspecials.
    @inlinable package var isTokenText: Bool {
        guard self > 0x20, self < 0x7F else { return false }
        switch self {
        case 0x28, 0x29, 0x3C, 0x3E, 0x40, 0x2C, 0x3B, 0x3A, 0x5C, 0x22, 0x2F, 0x5B, 0x5D, 0x3F,
            0x3D:
            return false
        default: return true
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Offset of the first control character other than tab from `start` on;
    /// `count` if there is none.
    package func firstControl(from start: Int = 0) -> Int {
        first(
            from: start,
            where: { ($0 .< Octets.space .& $0 .!= Octets.tab) .| ($0 .== Octets.delete) },
            orNone: { !$0.isControl || $0 == 0x09 })
    }

    /// Offset of the first CR or LF from `start` on; `count` if there is none.
    package func firstLineBreak(from start: Int = 0) -> Int {
        first(
            from: start, where: { ($0 .== Octets.cr) .| ($0 .== Octets.lf) },
            orNone: { $0 != 0x0D && $0 != 0x0A })
    }

    /// Offset of the first of two octets from `start` on; `count` if there is none.
    package func first(_ one: UInt8, or other: UInt8, from start: Int = 0) -> Int {
        first(
            from: start,
            where: { ($0 .== SIMD16(repeating: one)) .| ($0 .== SIMD16(repeating: other)) },
            orNone: { $0 != one && $0 != other })
    }

    /// Reads sixteen octets at a time.
    /// - Parameters:
    ///   - isFound: which of sixteen octets are searched for.
    ///   - isOther: whether an octet is not searched for.
    @inline(__always)
    private func first(
        from start: Int, where isFound: (SIMD16<UInt8>) -> SIMDMask<SIMD16<Int8>>,
        orNone isOther: (UInt8) -> Bool
    ) -> Int {
        guard let base = baseAddress else { return count }
        var index = start
        while index + 16 <= count {
            let found = isFound(
                UnsafeRawPointer(base).loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self))
            let halves = unsafeBitCast(found, to: SIMD2<UInt64>.self)
            if halves[0] | halves[1] != 0 { break }
            index += 16
        }
        while index < count, isOther(base[index]) { index += 1 }
        return index
    }
}

extension Sequence where Element == UInt8 {
    /// Whether the octets are well-formed UTF-8 (RFC 3629).
    package var isValidUTF8: Bool {
        withContiguousStorageIfAvailable { Octets.areUTF8($0) }
            ?? Array(self).withUnsafeBufferPointer { Octets.areUTF8($0) }
    }
}

private enum Octets {
    @inline(__always) static var space: SIMD16<UInt8> { SIMD16(repeating: 0x20) }
    @inline(__always) static var tab: SIMD16<UInt8> { SIMD16(repeating: 0x09) }
    @inline(__always) static var delete: SIMD16<UInt8> { SIMD16(repeating: 0x7F) }
    @inline(__always) static var cr: SIMD16<UInt8> { SIMD16(repeating: 0x0D) }
    @inline(__always) static var lf: SIMD16<UInt8> { SIMD16(repeating: 0x0A) }

    static func areUTF8(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        // Most text is ASCII, so the decoder runs only from the first other octet on.
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
