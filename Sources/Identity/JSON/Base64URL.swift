// base64url without padding (RFC 7515 section 2), in the one form that each sequence of octets has.

package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Value of each octet; 0xFF outside the alphabet.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, octet) in alphabet.enumerated() { table[Int(octet)] = UInt8(value) }
        return table
    }()

    /// The octets that the text stands for; nil where it has padding, white space, another alphabet's characters, a length
    /// that no octets give, or bits set that carry nothing: each of these would let one signed text be written in several ways.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var output = [UInt8]()
        output.reserveCapacity(text.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count = 0
        for octet in text {
            let value = values[Int(octet)]
            guard value != 0xFF else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                output.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                bits &= (1 << UInt32(count)) - 1
            }
        }
        return bits == 0 ? output : nil
    }

    /// The text for these octets.
    package static func encode(_ octets: some Collection<UInt8>) -> String {
        var output = [UInt8]()
        output.reserveCapacity((octets.count * 4 + 2) / 3)
        var bits: UInt32 = 0
        var count = 0
        for octet in octets {
            bits = bits << 8 | UInt32(octet)
            count += 8
            while count >= 6 {
                count -= 6
                output.append(alphabet[Int(bits >> UInt32(count) & 63)])
                bits &= (1 << UInt32(count)) - 1
            }
        }
        if count > 0 { output.append(alphabet[Int(bits << UInt32(6 - count) & 63)]) }
        return String(decoding: output, as: UTF8.self)
    }
}
