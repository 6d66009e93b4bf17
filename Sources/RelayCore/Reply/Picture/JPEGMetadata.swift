// Segments of a JPEG file (ITU-T T.81 annex B, T.871 for JFIF).

enum JPEGMetadata {
    private static let end: [UInt8] = [0xFF, 0xD9]

    static func stripped(_ octets: [UInt8]) -> [UInt8] {
        var output: [UInt8] = [0xFF, 0xD8]
        output.reserveCapacity(octets.count + 64)
        var isTurned = false
        var position = 2
        while position + 1 < octets.count {
            // Fill octets may be before a marker. Other octets there do not belong to the picture.
            guard octets[position] == 0xFF, octets[position + 1] != 0xFF else {
                position += 1
                continue
            }
            let marker = octets[position + 1]
            if marker == 0xD9 { break }
            if marker == 0 || marker == 0x01 || (0xD0...0xD8).contains(marker) {
                position += 2
                continue
            }
            guard let content = content(octets, at: position) else { break }
            switch marker {
            case 0xE0 where content.starts(with: "JFIF\0".utf8) && content.count >= 14:
                // Without its thumbnail.
                output += [0xFF, 0xE0, 0, 16] + content.prefix(12) + [0, 0]
            case 0xE1 where !isTurned:
                if let orientation = orientation(content) {
                    output += segment(orientation: orientation)
                    isTurned = true
                }
            case 0xEE where content.starts(with: "Adobe".utf8) && content.count >= 12:
                output += [0xFF, 0xEE, 0, 14] + content.prefix(12)
            // Frames, tables, restart intervals and similar.
            case 0xC0...0xCF, 0xDB...0xDF: output += octets[position..<content.endIndex]
            case 0xDA:
                let scanEnd = scanEnd(octets, from: content.endIndex)
                output += octets[position..<scanEnd]
                position = scanEnd
                continue
            default: break
            }
            position = content.endIndex
        }
        return output + end
    }

    /// The content of a segment after its length; nil if the file ends earlier.
    private static func content(_ octets: [UInt8], at marker: Int) -> ArraySlice<UInt8>? {
        guard marker + 3 < octets.count else { return nil }
        let length = Int(octets[marker + 2]) << 8 | Int(octets[marker + 3])
        guard length >= 2, marker + 2 + length <= octets.count else { return nil }
        return octets[(marker + 4)..<(marker + 2 + length)]
    }

    /// The next marker that is not a restart. Within a scan, zero follows `FF`.
    private static func scanEnd(_ octets: [UInt8], from start: Int) -> Int {
        octets.withUnsafeBufferPointer { octets in
            var position = start
            while position + 1 < octets.count {
                if octets[position] == 0xFF, octets[position + 1] != 0,
                    !(0xD0...0xD7).contains(octets[position + 1])
                {
                    return position
                }
                position += 1
            }
            // A truncated marker is removed completely.
            return octets.count > start && octets[octets.count - 1] == 0xFF
                ? octets.count - 1 : octets.count
        }
    }

    // MARK: The orientation of the picture

    /// The orientation in Exif, if it is not the default (Exif 2.32 section 4.6.4, tag 0112).
    /// Phones store pictures in the orientation of the sensor.
    private static func orientation(_ segment: ArraySlice<UInt8>) -> UInt8? {
        guard segment.starts(with: "Exif\0\0".utf8) else { return nil }
        let tiff = Array(segment.dropFirst(6))
        guard tiff.count >= 8, tiff.starts(with: "II*\0".utf8) || tiff.starts(with: "MM\0*".utf8)
        else { return nil }
        let isLittle = tiff[0] == UInt8(ascii: "I")
        func number(_ start: Int, _ width: Int) -> Int? {
            guard start >= 0, start + width <= tiff.count else { return nil }
            let octets = tiff[start..<(start + width)]
            return (isLittle ? Array(octets.reversed()) : Array(octets)).reduce(0) {
                $0 << 8 | Int($1)
            }
        }
        guard let directory = number(4, 4), let count = number(directory, 2) else { return nil }
        for entry in 0..<count {
            let start = directory + 2 + 12 * entry
            guard let tag = number(start, 2), let type = number(start + 2, 2),
                let value = number(start + 8, 2)
            else {
                return nil
            }
            if tag == 0x0112, type == 3 { return (2...8).contains(value) ? UInt8(value) : nil }
        }
        return nil
    }

    /// An Exif segment with only the orientation.
    private static func segment(orientation: UInt8) -> [UInt8] {
        [0xFF, 0xE1, 0, 34] + Array("Exif\0\0II*\0".utf8) + [8, 0, 0, 0, 1, 0]
            + [0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0] + [0, 0, 0, 0]
    }
}
