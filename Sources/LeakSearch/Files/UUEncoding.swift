// Reads uuencoded data (POSIX `uuencode`), which some programs still send, so that it can be
// searched like any other part.

import Support

package enum UUEncoding {
    private static let names = ["x-uuencode", "uuencode", "x-uue", "uue"]

    /// Maximum octets in one line; its first character is their number.
    private static let maximumLine = 63

    /// Whether a transfer encoding's name, in lower case, means uuencode.
    package static func isMeant(by name: String) -> Bool {
        names.contains { name.utf8.elementsEqual($0.utf8) }
    }

    /// Whether a text may contain a block: a line that opens one, `begin 644 name`.
    package static func mayHoldBlock(_ text: [UInt8]) -> Bool {
        text.withUnsafeBufferPointer { text in
            var start = 0
            while start < text.count {
                if opensBlock(text[start...]) { return true }
                guard let end = text.firstIndex(of: 0x0A, from: start) else { return false }
                start = end + 1
            }
            return false
        }
    }

    /// Decodes every line that can be data. Ignores other lines (`begin`, `end`, prose). Fills a
    /// line that is too short with zeros, as servers may remove trailing spaces.
    /// - Parameter onlyBlocks: whether only lines after a `begin` line are data.
    package static func decode(_ text: some Collection<UInt8>, onlyBlocks: Bool) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(text.count / 4 * 3)
        var isInside = !onlyBlocks
        for line in Array(text).split(separator: 0x0A) {
            let line = line.last == 0x0D ? line.dropLast() : line
            if opensBlock(line) {
                isInside = true
            } else if onlyBlocks, line.elementsEqual("end".utf8) {
                isInside = false
            } else if isInside {
                decode(line, into: &output)
            }
        }
        return output
    }

    private static func opensBlock(_ line: some Collection<UInt8>) -> Bool {
        line.starts(with: "begin ".utf8)
            && line.dropFirst(6).first.map { (0x30...0x37).contains($0) } == true
    }

    private static func decode(_ line: ArraySlice<UInt8>, into output: inout [UInt8]) {
        guard let first = line.first, line.allSatisfy({ (0x20...0x60).contains($0) }) else {
            return
        }
        let length = min(Int((first &- 0x20) & 63), maximumLine)
        // One or two checksum octets may follow; a longer line is not data.
        guard length > 0, line.count - 1 <= (length + 2) / 3 * 4 + 2 else { return }
        var sextets = line.dropFirst().map { UInt32(($0 &- 0x20) & 63) }
        sextets += Array(repeating: 0, count: max(0, (length + 2) / 3 * 4 - sextets.count))
        let end = output.count + length
        var index = 0
        while output.count < end {
            let group =
                sextets[index] << 18 | sextets[index + 1] << 12 | sextets[index + 2] << 6
                | sextets[index + 3]
            for shift in [UInt32(16), 8, 0] where output.count < end {
                output.append(UInt8(truncatingIfNeeded: group >> shift))
            }
            index += 4
        }
    }
}
