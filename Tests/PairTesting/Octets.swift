// Divides, finds and decodes octets of mail for the pairs. Uses none of the project's own readers,
// as those are under test here.

package enum Octets {
    /// The lines without their ends, CRLF or LF.
    package static func lines(_ octets: some Sequence<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = [[]]
        for octet in octets {
            if octet == 0x0A {
                if lines[lines.count - 1].last == 0x0D { lines[lines.count - 1].removeLast() }
                lines.append([])
            } else {
                lines[lines.count - 1].append(octet)
            }
        }
        return lines
    }

    /// The lines of a text, as texts.
    package static func lines(of text: String) -> [String] {
        lines(text.utf8).map { String(decoding: $0, as: UTF8.self) }
    }

    package static func lower(_ octet: UInt8) -> UInt8 {
        octet >= 0x41 && octet <= 0x5A ? octet | 0x20 : octet
    }

    package static func lower(_ octets: some Sequence<UInt8>) -> [UInt8] {
        octets.map { lower($0) }
    }

    /// The index of these octets from `start` on.
    package static func find(
        _ wanted: [UInt8], in octets: [UInt8], from start: Int = 0, ignoringCase: Bool = false
    ) -> Int? {
        guard !wanted.isEmpty, octets.count >= wanted.count, start <= octets.count - wanted.count
        else { return nil }
        for index in start...(octets.count - wanted.count) {
            var offset = 0
            while offset < wanted.count,
                octets[index + offset] == wanted[offset]
                    || ignoringCase && lower(octets[index + offset]) == lower(wanted[offset])
            { offset += 1 }
            if offset == wanted.count { return index }
        }
        return nil
    }

    package static func holds(
        _ wanted: String, in octets: [UInt8], ignoringCase: Bool = false
    ) -> Bool {
        find(Array(wanted.utf8), in: octets, ignoringCase: ignoringCase) != nil
    }

    package static func replace(_ wanted: String, with other: String, in text: String) -> String {
        let (wanted, octets) = (Array(wanted.utf8), Array(text.utf8))
        var output: [UInt8] = []
        var start = 0
        while let found = find(wanted, in: octets, from: start) {
            output += octets[start..<found] + Array(other.utf8)
            start = found + wanted.count
        }
        return start == 0 ? text : String(decoding: output + octets[start...], as: UTF8.self)
    }

    /// Without blanks, tabs and line ends at both ends.
    package static func trim(_ octets: [UInt8]) -> [UInt8] {
        guard let first = octets.firstIndex(where: { $0 > 0x20 }),
            let last = octets.lastIndex(where: { $0 > 0x20 })
        else {
            return []
        }
        return Array(octets[first...last])
    }

    // MARK: Encodings

    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let sextets: [UInt8] = {
        var table = [UInt8](repeating: 64, count: 256)
        for (value, octet) in alphabet.enumerated() { table[Int(octet)] = UInt8(value) }
        return table
    }()

    package static func base64(_ octets: some Sequence<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for octet in octets {
            buffer = buffer << 8 | Int(octet)
            bits += 8
            while bits >= 6 {
                bits -= 6
                output.append(alphabet[buffer >> bits & 63])
            }
            buffer &= (1 << bits) - 1
        }
        if bits > 0 { output.append(alphabet[buffer << (6 - bits) & 63]) }
        while output.count % 4 != 0 { output.append(UInt8(ascii: "=")) }
        return output
    }

    /// Other octets between the digits are ignored.
    package static func fromBase64(_ octets: some Sequence<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        var (buffer, bits) = (0, 0)
        for octet in octets {
            let value = sextets[Int(octet)]
            guard value < 64 else { continue }
            buffer = (buffer << 6 | Int(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                output.append(UInt8(buffer >> bits & 255))
            }
        }
        return output
    }

    package static let hexadecimal = Array("0123456789ABCDEF".utf8)

    private static func digit(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39: octet - 0x30
        case 0x41...0x46: octet - 0x37
        case 0x61...0x66: octet - 0x57
        default: nil
        }
    }

    package static func fromQuotedPrintable(_ octets: [UInt8], isWord: Bool = false) -> [UInt8] {
        var output: [UInt8] = []
        var index = 0
        while index < octets.count {
            let octet = octets[index]
            index += 1
            guard octet == UInt8(ascii: "=") else {
                output.append(isWord && octet == UInt8(ascii: "_") ? 0x20 : octet)
                continue
            }
            if index + 1 < octets.count, let high = digit(octets[index]),
                let low = digit(octets[index + 1])
            {
                output.append(high << 4 | low)
                index += 2
            } else if index < octets.count, octets[index] == 0x0A {
                index += 1
            } else if index + 1 < octets.count, octets[index] == 0x0D, octets[index + 1] == 0x0A {
                index += 2
            } else {
                output.append(octet)
            }
        }
        return output
    }

    package static func quotedPrintable(_ octets: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var column = 0
        for (index, octet) in octets.enumerated() {
            if octet == 0x0D || octet == 0x0A {
                output.append(octet)
                column = 0
                continue
            }
            let isLast = index + 1 == octets.count || octets[index + 1] == 0x0D
            let isPlain =
                octet > 0x20 && octet < 0x7F && octet != UInt8(ascii: "=")
                || octet == 0x20 && !isLast
            if column > 70 {
                output += [UInt8(ascii: "="), 0x0D, 0x0A]
                column = 0
            }
            if isPlain {
                output.append(octet)
                column += 1
            } else {
                output += [
                    UInt8(ascii: "="), hexadecimal[Int(octet >> 4)], hexadecimal[Int(octet & 15)],
                ]
                column += 3
            }
        }
        return output
    }

    /// In lines of 76.
    package static func base64Lines(_ octets: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        for (index, octet) in base64(octets).enumerated() {
            if index > 0, index % 76 == 0 { output += [0x0D, 0x0A] }
            output.append(octet)
        }
        return output
    }

    package static func percentDecoded(_ text: String) -> String {
        let octets = Array(text.utf8)
        var output: [UInt8] = []
        var index = 0
        while index < octets.count {
            if octets[index] == UInt8(ascii: "%"), index + 2 < octets.count,
                let high = digit(octets[index + 1]),
                let low = digit(octets[index + 2])
            {
                output.append(high << 4 | low)
                index += 3
            } else {
                output.append(octets[index])
                index += 1
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    package static func percentEncoded(_ text: String) -> String {
        var output: [UInt8] = []
        for octet in text.utf8 {
            switch octet {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: output.append(octet)
            default:
                output += [
                    UInt8(ascii: "%"), hexadecimal[Int(octet >> 4)], hexadecimal[Int(octet & 15)],
                ]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}
