// base64 in text: in links that identify their reader, in data URLs, in vCards and in quoted
// sources of messages.

import InternetMessage
import LeakSearch
import Support

/// Addresses in the short form of the ids of Google's calendar: `jane@m` is `jane@gmail.com`, and
/// `x@g` is a calendar of a group.
enum GoogleShortForm {
    private static let domain = Array("gmail.com".utf8)

    /// A decoded text with each `@m` at the end of a word in its long form; nil if it has none.
    static func expanded(_ octets: [UInt8]) -> [UInt8]? {
        guard octets.count < longest else { return nil }
        var output: [UInt8] = []
        var copied = 0
        for index in octets.indices.dropFirst().dropLast()
        where octets[index] == UInt8(ascii: "@") && octets[index + 1] == UInt8(ascii: "m")
            && octets[index - 1] > 0x20
            && (index + 2 == octets.count || octets[index + 2] <= 0x20)
        {
            output += octets[copied...index] + domain
            copied = index + 2
        }
        return copied == 0 ? nil : output + octets[copied...]
    }

    /// Such an id is short.
    private static let longest = 1_024
}

/// Finds runs of base64 in a text and rewrites them. Keeps its memory between texts. Not
/// thread-safe: make one for each level of nesting.
final class EmbeddedBase64 {
    /// A run of base64 in a text, its lines joined.
    private struct Run {
        /// Its range, padding included.
        let range: Range<Int>
        /// The break between its lines, and the characters of the first line; nil if it has only
        /// one line.
        let lines: (lineBreak: [UInt8], length: Int)?
        let isPadded: Bool
    }

    private let sextets = OctetBuffer(capacity: 1_024)
    private let decoded = OctetBuffer(capacity: 1_024)

    /// Shorter lines are words.
    private static let shortestLine = 40

    /// The runs of a text that must be rewritten, in order.
    /// - mayHold: whether decoded octets must be searched. Called for every run, and up to four
    ///   times for short ones.
    /// - rewrite: returns the new content of the run at a range; nil if it stays.
    ///   - rewrite: returns the new content of the run at a range; nil if it stays.
    func edits(
        in text: UnsafeBufferPointer<UInt8>, mayHold: (UnsafeBufferPointer<UInt8>) -> Bool,
        rewrite: ([UInt8], Range<Int>) -> [UInt8]?
    ) -> [TextEdit] {
        var found: [TextEdit] = []
        Base64Sextets.values.withUnsafeBufferPointer { values in
            var index = 0
            while index < text.count {
                guard values[Int(text[index])] < 64 else {
                    index += 1
                    continue
                }
                let start = index
                while index < text.count, values[Int(text[index])] < 64 { index += 1 }
                guard index - start >= Base64Sextets.minimum else { continue }
                let run = read(text, start..<index, values)
                index = run.range.upperBound
                for offset in 0..<(sextets.count < Base64Sextets.tried ? 4 : 1) {
                    let rest = decode(from: offset)
                    guard mayHold(decoded.contents),
                        let new = rewrite(Array(decoded.contents), run.range)
                    else { continue }
                    found.append(
                        TextEdit(
                            range: run.range,
                            replacement: written(run, new, text: text, offset: offset, rest: rest),
                            isWeak: true
                        ))
                    break
                }
            }
        }
        return found
    }

    /// Reads the run that begins with this line into `sextets`.
    private func read(
        _ text: UnsafeBufferPointer<UInt8>, _ first: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>
    ) -> Run {
        sextets.count = 0
        append(text, first, values)
        let length = first.count
        var index = first.upperBound
        var lines: (lineBreak: [UInt8], length: Int)?
        while length >= Self.shortestLine, sextets.count % length == 0,
            let next = Self.lineBreak(text, index), next < text.count,
            values[Int(text[next])] < 64
        {
            var end = next
            while end < text.count, end - next < length, values[Int(text[end])] < 64 { end += 1 }
            // A line with other text after it does not belong to the run.
            guard end == text.count || Self.endsLine(text[end]) else { break }
            if lines == nil { lines = (Array(text[index..<next]), length) }
            append(text, next..<end, values)
            index = end
        }
        var end = index
        while end < text.count, end - index < 2, text[end] == UInt8(ascii: "=") { end += 1 }
        return Run(range: first.lowerBound..<end, lines: lines, isPadded: end > index)
    }

    private func append(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>
    ) {
        sextets.grow(to: sextets.count + range.count)
        let base = sextets.base + sextets.count
        for (place, index) in range.enumerated() { base[place] = values[Int(text[index])] }
        sextets.count += range.count
    }

    private static func endsLine(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x0D, 0x0A, 0x3D, 0x22, 0x27, 0x3C, 0x29: true
        default: false
        }
    }

    /// The end of a line break at an index, with the fold after it.
    private static func lineBreak(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> Int? {
        var end = index
        if end < text.count, text[end] == 0x0D { end += 1 }
        guard end < text.count, text[end] == 0x0A else { return nil }
        end += 1
        if end < text.count, text[end] == 0x20 || text[end] == 0x09 { end += 1 }
        return end
    }

    /// Decodes from a character on. Returns how many characters at the end belong to no octet.
    private func decode(from offset: Int) -> Int {
        decoded.reserve(sextets.count / 4 * 3 + 3)
        Base64Sextets.decode(sextets, from: offset, to: sextets.count, into: decoded)
        return (sextets.count - offset) % 4 == 1 ? 1 : 0
    }

    /// A run with new content, in its former alphabet, lines and padding.
    private func written(
        _ run: Run, _ octets: [UInt8], text: UnsafeBufferPointer<UInt8>, offset: Int, rest: Int
    ) -> [UInt8] {
        let isForURLs = text[run.range].contains {
            $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
        }
        var output = Array(text[run.range.prefix(offset)])
        for character in Base64.encodeUnbroken(octets) {
            switch character {
            case UInt8(ascii: "="): if run.isPadded { output.append(character) }
            case UInt8(ascii: "+") where isForURLs: output.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/") where isForURLs: output.append(UInt8(ascii: "_"))
            default: output.append(character)
            }
        }
        output += text[run.range].filter { $0 != UInt8(ascii: "=") }.suffix(rest)
        guard let lines = run.lines else { return output }
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
