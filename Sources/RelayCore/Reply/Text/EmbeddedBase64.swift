// base64 that stands in text: in links that name their reader, in data URLs, in vCard and quoted sources of messages.

import InternetMessage

/// A run of base64 in a text, its lines joined.
struct EmbeddedBase64 {
    /// Where it stands, padding included.
    let range: Range<Int>
    /// Its characters without breaks and padding.
    private let characters: [UInt8]
    /// The break between its lines, and the characters of the first; nil where it is one line.
    private let lines: (lineBreak: [UInt8], length: Int)?
    private let isPadded: Bool

    /// Shorter runs hold no address worth its name; every word of a text is one.
    private static let minimum = 12
    /// Lines shorter than this are words.
    private static let shortestLine = 40
    /// Runs up to here are tried at each of the four places where a group could begin; longer ones begin at a group.
    private static let tried = 400

    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 256)
        for (value, octet) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.enumerated() {
            table[Int(octet)] = UInt8(value)
        }
        table[Int(UInt8(ascii: "-"))] = 62
        table[Int(UInt8(ascii: "_"))] = 63
        return table
    }()

    /// Every run of a text that is long enough, in order.
    static func find(in text: UnsafeBufferPointer<UInt8>, _ body: (EmbeddedBase64) -> Void) {
        values.withUnsafeBufferPointer { values in
            var index = 0
            while index < text.count {
                guard values[Int(text[index])] < 64 else {
                    index += 1
                    continue
                }
                let start = index
                while index < text.count, values[Int(text[index])] < 64 { index += 1 }
                guard index - start >= minimum else { continue }
                var characters = Array(UnsafeBufferPointer(rebasing: text[start..<index]))
                let length = characters.count
                var lines: (lineBreak: [UInt8], length: Int)?
                while length >= shortestLine, characters.count % length == 0, let next = lineBreak(text, index), next.end < text.count,
                    values[Int(text[next.end])] < 64
                {
                    var end = next.end
                    while end < text.count, end - next.end < length, values[Int(text[end])] < 64 { end += 1 }
                    // A line that goes on with something else is none of the run.
                    guard end == text.count || [0x0D, 0x0A, 0x3D, 0x22, 0x27, 0x3C, 0x29].contains(text[end]) else { break }
                    lines = lines ?? (next.octets, length)
                    characters += text[next.end..<end]
                    index = end
                }
                var end = index
                while end < text.count, end - index < 2, text[end] == UInt8(ascii: "=") { end += 1 }
                body(EmbeddedBase64(range: start..<end, characters: characters, lines: lines, isPadded: end > index))
                index = end
            }
        }
    }

    /// A line break, with the fold behind it, at an index.
    private static func lineBreak(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> (octets: [UInt8], end: Int)? {
        var end = index
        if end < text.count, text[end] == 0x0D { end += 1 }
        guard end < text.count, text[end] == 0x0A else { return nil }
        end += 1
        if end < text.count, text[end] == 0x20 || text[end] == 0x09 { end += 1 }
        return (Array(UnsafeBufferPointer(rebasing: text[index..<end])), end)
    }

    /// The run as it reads once its content is rewritten; nil where nothing changes.
    func rewritten(_ rewrite: ([UInt8]) -> [UInt8]?) -> [UInt8]? {
        for offset in 0..<(characters.count < Self.tried ? 4 : 1) where offset < characters.count {
            let (decoded, rest) = decode(from: offset)
            guard let new = rewrite(decoded) else { continue }
            return written(Array(characters[..<offset]), new, rest: rest)
        }
        return nil
    }

    /// The octets from a character on, and how many characters at the end are part of none.
    private func decode(from offset: Int) -> (octets: [UInt8], rest: Int) {
        var octets: [UInt8] = []
        octets.reserveCapacity(characters.count / 4 * 3 + 3)
        var group: UInt32 = 0
        var count = 0
        for character in characters[offset...] {
            group = group << 6 | UInt32(Self.values[Int(character)])
            count += 1
            if count == 4 {
                octets += [UInt8(truncatingIfNeeded: group >> 16), UInt8(truncatingIfNeeded: group >> 8), UInt8(truncatingIfNeeded: group)]
                group = 0
                count = 0
            }
        }
        if count >= 2 { octets.append(UInt8(truncatingIfNeeded: group >> (count == 2 ? 4 : 10))) }
        if count == 3 { octets.append(UInt8(truncatingIfNeeded: group >> 2)) }
        return (octets, count == 1 ? 1 : 0)
    }

    private func written(_ head: [UInt8], _ octets: [UInt8], rest: Int) -> [UInt8] {
        let isForURLs = characters.contains { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
        var output = head
        for character in Base64.encodeUnbroken(octets) {
            switch character {
            case UInt8(ascii: "="): if isPadded { output.append(character) }
            case UInt8(ascii: "+") where isForURLs: output.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/") where isForURLs: output.append(UInt8(ascii: "_"))
            default: output.append(character)
            }
        }
        output += characters.suffix(rest)
        guard let lines else { return output }
        var broken: [UInt8] = []
        var index = 0
        while index < output.count {
            if index > 0 { broken += lines.lineBreak }
            broken += output[index..<min(index + lines.length, output.count)]
            index += lines.length
        }
        return broken
    }
}
