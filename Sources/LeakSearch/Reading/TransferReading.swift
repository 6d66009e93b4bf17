// Decodes transfer encodings for the check, with its own decoders: an error in those of the
// rewriting must not hide a name that it left.

import InternetMessage

enum TransferReading {
    /// The decoded octets of a part; an unknown encoding leaves them unchanged.
    static func decode(_ octets: ArraySlice<UInt8>, _ encoding: TransferEncoding) -> [UInt8] {
        switch encoding {
        case .sevenBit, .eightBit, .binary: return Array(octets)
        case .quotedPrintable: return quotedPrintable(octets)
        case .base64: return base64(octets)
        case .unknown(let name):
            return UUEncoding.isMeant(by: name)
                ? UUEncoding.decode(octets, onlyBlocks: false) : Array(octets)
        }
    }

    /// RFC 2045 section 6.8: all octets of the alphabet up to the padding; others are skipped.
    static func base64(_ octets: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(octets.count / 4 * 3 + 3)
        var group: UInt32 = 0
        var count = 0
        func end(_ output: inout [UInt8]) {
            if count == 2 { output.append(UInt8(truncatingIfNeeded: group >> 4)) }
            if count == 3 {
                output.append(UInt8(truncatingIfNeeded: group >> 10))
                output.append(UInt8(truncatingIfNeeded: group >> 2))
            }
            (group, count) = (0, 0)
        }
        octets.withUnsafeBufferPointer { octets in
            Sextet.values.withUnsafeBufferPointer { values in
                for octet in octets {
                    if octet == UInt8(ascii: "=") {
                        end(&output)
                        continue
                    }
                    let value =
                        octet == UInt8(ascii: "-") || octet == UInt8(ascii: "_")
                        ? 255 : values[Int(octet)]
                    guard value < 64 else { continue }
                    group = group << 6 | UInt32(value)
                    count += 1
                    if count == 4 {
                        output.append(UInt8(truncatingIfNeeded: group >> 16))
                        output.append(UInt8(truncatingIfNeeded: group >> 8))
                        output.append(UInt8(truncatingIfNeeded: group))
                        (group, count) = (0, 0)
                    }
                }
            }
        }
        end(&output)
        return output
    }

    /// RFC 2045 section 6.7: escapes, soft line breaks, and no white space before a line's end.
    /// Text that is not an escape stays.
    static func quotedPrintable(_ octets: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(octets.count)
        octets.withUnsafeBufferPointer { octets in
            var index = 0
            while index < octets.count {
                let octet = octets[index]
                index += 1
                if octet == UInt8(ascii: "=") {
                    if index + 1 < octets.count, let high = digit(octets[index]),
                        let low = digit(octets[index + 1])
                    {
                        output.append(high << 4 | low)
                        index += 2
                    } else if let end = lineEnd(octets, index) {
                        index = end
                    } else if blanks(octets, index) == octets.count {
                        index = octets.count
                    } else {
                        output.append(octet)
                    }
                } else if octet == 0x20 || octet == 0x09 {
                    // Servers on the way added the white space at a line's end.
                    let from = index - 1
                    let next = blanks(octets, index)
                    if next == octets.count || octets[next] == 0x0A
                        || octets[next] == 0x0D && next + 1 < octets.count
                            && octets[next + 1] == 0x0A
                    {
                        index = next
                    } else {
                        output += octets[from..<next]
                        index = next
                    }
                } else {
                    output.append(octet)
                }
            }
        }
        return output
    }

    private static func blanks(_ octets: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < octets.count, octets[index] == 0x20 || octets[index] == 0x09 { index += 1 }
        return index
    }

    /// The index after white space and a line end; nil if other octets are there.
    private static func lineEnd(_ octets: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int? {
        let index = blanks(octets, start)
        guard index < octets.count else { return nil }
        if octets[index] == 0x0A { return index + 1 }
        return octets[index] == 0x0D && index + 1 < octets.count && octets[index + 1] == 0x0A
            ? index + 2 : nil
    }

    /// Does not use `hexValue`, as the rewriting uses it.
    @inline(__always)
    static func digit(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39: octet - 0x30
        case 0x41...0x46: octet - 0x37
        case 0x61...0x66: octet - 0x57
        default: nil
        }
    }
}

/// The base64 alphabets: the standard one, and the one for URLs and file names (RFC 4648).
enum Sextet {
    /// By octet; 255 for an octet in neither alphabet.
    static let values: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0x41...0x5A: UInt8(octet - 0x41)
        case 0x61...0x7A: UInt8(octet - 0x61 + 26)
        case 0x30...0x39: UInt8(octet - 0x30 + 52)
        case 0x2B, 0x2D: 62
        case 0x2F, 0x5F: 63
        default: 255
        }
    }
}
