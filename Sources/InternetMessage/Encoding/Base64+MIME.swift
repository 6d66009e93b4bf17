// base64 for MIME (RFC 2045 section 6.8): a lenient decoder that reports defects, and an encoder
// with lines of 76.

import Support

/// A defect that a transfer decoder tolerated.
package enum TransferDefect: Sendable, Hashable, CaseIterable {
    /// base64: octets outside the alphabet, line breaks and white space excepted, were skipped.
    case strayCharacter
    /// base64: `-` and `_` were read as in base64url; other decoders skip them.
    case otherAlphabet
    /// base64: data continued after padding. It was decoded too, although many decoders stop there.
    case dataAfterPadding
    /// base64: the last group lacks padding, or has a single character, which encodes nothing.
    case incompleteGroup
    /// base64: padding outside of a group.
    case strayPadding
    /// base64: bits before padding that should be zero are not zero.
    case nonZeroPaddingBits
    /// quoted-printable: `=` without two hexadecimal digits or a line break; kept unchanged.
    case invalidEscape
    /// quoted-printable: white space at the end of a line, removed as RFC 2045 section 6.7 rule 3
    /// requires.
    case trailingWhiteSpace
    /// quoted-printable: an octet of 128 or above, or a control character, was not encoded; kept.
    case rawOctet
    /// quoted-printable: escape in lower case.
    case lowercaseEscape
    /// quoted-printable or base64: a line of more than 76 characters.
    case longLine
    /// quoted-printable: the body ends with a soft line break.
    case trailingSoftBreak
}

extension Base64 {
    /// Octets in one encoded line, without CRLF (RFC 2045 section 6.8).
    package static let lineLength = 76

    /// Value of each octet in the alphabet; 64 for `=`, 65 for white space and line
    /// breaks, 67 and 68 for `-` and `_` of base64url, 66 for anything else.
    static let values: [UInt8] = {
        var table = [UInt8](repeating: 66, count: 256)
        for (value, octet) in alphabet.enumerated() { table[Int(octet)] = UInt8(value) }
        table[Int(UInt8(ascii: "="))] = 64
        for octet in [0x20, 0x09, 0x0D, 0x0A] { table[octet] = 65 }
        table[Int(UInt8(ascii: "-"))] = 67
        table[Int(UInt8(ascii: "_"))] = 68
        return table
    }()

    /// Decodes octets; never fails. Linear.
    package static func decode(
        _ text: some Collection<UInt8>
    ) -> (bytes: [UInt8], defects: Set<TransferDefect>) {
        text.withContiguousStorageIfAvailable(decode(octets:))
            ?? Array(text).withUnsafeBufferPointer(decode(octets:))
    }

    private static func decode(
        octets text: UnsafeBufferPointer<UInt8>
    ) -> (bytes: [UInt8], defects: Set<TransferDefect>) {
        var decoder = Decoder()
        var output = [UInt8]()
        output.reserveCapacity(text.count / 4 * 3 + 3)
        for octet in text { decoder.feed(octet, into: &output) }
        decoder.finish(into: &output)
        return (output, decoder.defects)
    }

    /// Encodes octets in lines of 76 with CRLF between and after them; empty for no octets.
    package static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var output = encodeUnbroken(bytes)
        guard !output.isEmpty else { return [] }
        let unbroken = output
        output.removeAll(keepingCapacity: true)
        var index = 0
        while index < unbroken.count {
            let end = min(index + lineLength, unbroken.count)
            output.append(contentsOf: unbroken[index..<end])
            output.append(contentsOf: [0x0D, 0x0A])
            index = end
        }
        return output
    }

    /// The state between two octets of base64 text.
    struct Decoder {
        var defects = Set<TransferDefect>()
        private var group: UInt32 = 0
        private var count = 0
        private var padding = 0
        private var isPadded = false

        /// Characters of the open group, 0…3.
        var open: Int { count }

        /// Whether four characters of the alphabet may be decoded at once: no group is open, and
        /// there was no padding.
        var canTakeQuad: Bool { count == 0 && !isPadded }

        @inline(__always)
        mutating func feed(_ octet: UInt8, into output: inout [UInt8]) {
            var value = Base64.values[Int(octet)]
            if value > 66 {
                defects.insert(.otherAlphabet)
                value -= 5
            }
            if value < 64 {
                if isPadded {
                    if count > 0 { finishGroup(into: &output) }
                    defects.insert(.dataAfterPadding)
                    isPadded = false
                    padding = 0
                }
                group = group << 6 | UInt32(value)
                count += 1
                if count == 4 {
                    output.append(UInt8(truncatingIfNeeded: group >> 16))
                    output.append(UInt8(truncatingIfNeeded: group >> 8))
                    output.append(UInt8(truncatingIfNeeded: group))
                    group = 0
                    count = 0
                }
            } else if value == 64 {
                feedPadding(into: &output)
            } else if value == 66 {
                defects.insert(.strayCharacter)
            }
        }

        private mutating func feedPadding(into output: inout [UInt8]) {
            guard count >= 2 else {
                defects.insert(.strayPadding)
                if count == 1 { finishGroup(into: &output) }
                isPadded = true
                return
            }
            padding += 1
            isPadded = true
            if count + padding == 4 { finishGroup(into: &output) }
        }

        mutating func finish(into output: inout [UInt8]) {
            if count > 0 { finishGroup(into: &output) }
        }

        /// Writes the octets of a short group and closes it.
        private mutating func finishGroup(into output: inout [UInt8]) {
            if count + padding != 4 || count == 1 { defects.insert(.incompleteGroup) }
            if count == 2 {
                output.append(UInt8(truncatingIfNeeded: group >> 4))
                if group & 15 != 0 { defects.insert(.nonZeroPaddingBits) }
            } else if count == 3 {
                output.append(UInt8(truncatingIfNeeded: group >> 10))
                output.append(UInt8(truncatingIfNeeded: group >> 2))
                if group & 3 != 0 { defects.insert(.nonZeroPaddingBits) }
            }
            group = 0
            count = 0
            padding = 0
        }
    }
}
