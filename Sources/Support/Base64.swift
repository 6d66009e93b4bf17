// base64 (RFC 4648 section 4) and base64url (section 5). MIME's tolerant decoding is in
// InternetMessage (`Base64+MIME.swift`).

package enum Base64 {
    /// A–Z, a–z, 0–9, `+` and `/`.
    package static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Encodes octets without line breaks, with padding.
    package static func encodeUnbroken(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBufferPointer(encodeUnbroken(octets:))
    }

    /// Encodes octets without line breaks, with padding.
    package static func encodeUnbroken(_ bytes: some Collection<UInt8>) -> [UInt8] {
        bytes.withContiguousStorageIfAvailable(encodeUnbroken(octets:))
            ?? Array(bytes).withUnsafeBufferPointer(encodeUnbroken(octets:))
    }

    private static func encodeUnbroken(octets bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        encode(bytes, alphabet, isPadded: true)
    }

    fileprivate static func encode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ alphabet: [UInt8], isPadded: Bool
    ) -> [UInt8] {
        alphabet.withUnsafeBufferPointer { alphabet in
            [UInt8](unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { output, count in
                func put(_ first: UInt8, _ second: UInt8, _ third: UInt8) {
                    let group = UInt32(first) << 16 | UInt32(second) << 8 | UInt32(third)
                    output[count] = alphabet[Int(group >> 18)]
                    output[count + 1] = alphabet[Int(group >> 12 & 63)]
                    output[count + 2] = alphabet[Int(group >> 6 & 63)]
                    output[count + 3] = alphabet[Int(group & 63)]
                    count += 4
                }
                var index = 0
                while index + 3 <= bytes.count {
                    put(bytes[index], bytes[index + 1], bytes[index + 2])
                    index += 3
                }
                guard index < bytes.count else { return }
                let missing = index + 3 - bytes.count
                put(bytes[index], missing == 1 ? bytes[index + 1] : 0, 0)
                guard isPadded else { return count -= missing }
                for place in count - missing..<count { output[place] = UInt8(ascii: "=") }
            }
        }
    }
}

/// base64url without padding (RFC 7515 section 2). Each sequence of octets has exactly one form.
package enum Base64URL {
    /// A–Z, a–z, 0–9, `-` and `_`.
    package static let alphabet = Array(
        "\(String(decoding: Base64.alphabet.dropLast(2), as: UTF8.self))-_".utf8)

    /// Value of each octet; 0xFF outside the alphabet.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, octet) in alphabet.enumerated() { table[Int(octet)] = UInt8(value) }
        return table
    }()

    /// The octets of the text. Nil for padding, white space, characters of another alphabet, an
    /// impossible length, or set bits that are not part of an octet. Each of these would allow
    /// several spellings of one signed text.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        text.withContiguousStorageIfAvailable(decode(octets:))
            ?? Array(text).withUnsafeBufferPointer(decode(octets:))
    }

    private static func decode(octets text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
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
        let text = Array(octets).withUnsafeBufferPointer {
            Base64.encode($0, alphabet, isPadded: false)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
