// Base32 (RFC 4648 section 6) in lower case without padding: the encoding of tokens, relay
// addresses and identifiers.

package enum Base32 {
    /// a–z and 2–7.
    package static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Whether the octet is one of the 32 characters.
    package static func isCharacter(_ octet: UInt8) -> Bool {
        (octet >= 0x61 && octet <= 0x7A) || (octet >= 0x32 && octet <= 0x37)
    }

    /// Whether every octet is in the lower-case alphabet.
    package static func isEncoded(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy(isCharacter)
    }

    /// One character for each random octet, each of 5 unbiased bits.
    package static func characters(fromRandom octets: [UInt8]) -> String {
        String(decoding: octets.map { alphabet[Int($0 & 31)] }, as: UTF8.self)
    }

    /// Encodes whole octets; the last character is padded with zero bits.
    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: (bytes.count * 8 + 4) / 5) { out, count in
            var buffer: UInt32 = 0
            var bits: UInt32 = 0
            for byte in bytes {
                buffer = (buffer << 8 | UInt32(byte)) & 0xFFF
                bits += 8
                while bits >= 5 {
                    bits -= 5
                    out[count] = character(buffer >> bits)
                    count += 1
                }
            }
            if bits > 0 {
                out[count] = character(buffer << (5 - bits))
                count += 1
            }
        }
    }

    /// Encodes whole octets; the last character is padded with zero bits.
    package static func encode(_ bytes: some Sequence<UInt8>) -> [UInt8] { encode(Array(bytes)) }

    /// The character for the low five bits.
    private static func character(_ value: UInt32) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: value & 31)
        return value < 26 ? 0x61 + value : 0x32 + value - 26
    }

    /// Decodes lower-case or upper-case text; nil for a character outside the alphabet, an
    /// impossible length or bits left over.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var out: [UInt8] = []
        var buffer: UInt32 = 0
        var bits = 0
        for character in text {
            guard let value = value(of: character) else { return nil }
            buffer = (buffer << 5 | UInt32(value)) & 0xFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                out.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        guard bits < 5, buffer & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return out
    }

    /// Writes the low `5 * digits` bits of a number, most significant character first.
    package static func encode(_ number: UInt64, digits: Int) -> [UInt8] {
        (0..<digits).reversed().map {
            character(UInt32(truncatingIfNeeded: number >> UInt64(5 * $0)))
        }
    }

    /// Reads a number of at most twelve characters; nil for a character outside the alphabet.
    package static func number(_ text: some Sequence<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for character in text {
            guard let value = value(of: character), number >> 59 == 0 else { return nil }
            number = number << 5 | UInt64(value)
        }
        return number
    }

    /// Each character of a text combined with the one at its place in another, which is at least as
    /// long. Both are in the lower-case alphabet.
    package static func exclusiveOr(_ text: [UInt8], _ other: [UInt8]) -> [UInt8] {
        zip(text, other).map { one, two in
            character(UInt32((value(of: one) ?? 0) ^ (value(of: two) ?? 0)))
        }
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case 0x61...0x7A: character - 0x61
        case 0x41...0x5A: character - 0x41
        case 0x32...0x37: character - 0x32 + 26
        default: nil
        }
    }
}
