// Hexadecimal digits (RFC 4648 section 8), and the escapes made of them.

extension UInt8 {
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

package enum Hex {
    /// The octets in lower-case digits, two for each.
    @inlinable package static func encode(_ octets: some Sequence<UInt8>) -> String {
        var output = [UInt8]()
        output.reserveCapacity(octets.underestimatedCount * 2)
        for octet in octets { append(octet, to: &output) }
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends the two lower-case digits of an octet.
    @inlinable package static func append(_ octet: UInt8, to output: inout [UInt8]) {
        output.append(lowerDigit(octet >> 4))
        output.append(lowerDigit(octet & 15))
    }

    /// The octets for digits in either case; nil for another character or an odd number of digits.
    @inlinable @inline(__always) package static func decode(
        _ digits: some Sequence<UInt8>
    ) -> [UInt8]? {
        var output = [UInt8]()
        output.reserveCapacity(digits.underestimatedCount / 2)
        var high: UInt8?
        for digit in digits {
            guard let value = digit.hexValue else { return nil }
            if let first = high {
                output.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? output : nil
    }

    /// The mark and the two upper-case digits of an octet: `%2B` (RFC 3986), `=2B` (RFC
    /// 2045), `+2B` (RFC 3461).
    @inlinable package static func escape(_ octet: UInt8, mark: Unicode.Scalar) -> [UInt8] {
        [UInt8(ascii: mark), upperDigit(octet >> 4), upperDigit(octet & 15)]
    }

    /// The digit for 0…15, A–F for 10 and above.
    @inlinable package static func upperDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x37 + value
    }

    /// The digit for 0…15, a–f for 10 and above.
    @inlinable package static func lowerDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x57 + value
    }
}
