// Encoded words (RFC 2047), in header fields and in any other place.

import InternetMessage
import Support

enum EncodedWords {
    /// Maximum octets of a word that is read; words longer than the 75 of the RFC are in use.
    private static let maximumLength = 4_096

    /// Octets with encoded words decoded, and without the white space between two of
    /// them; nil if there is none.
    static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        text.withUnsafeBufferPointer { text in
            var output: [UInt8]?
            var copied = 0
            var hasWord = false
            var index = 0
            // The next end of a word, searched for once.
            var wordEnd = 0
            while let start = text.firstIndex(of: UInt8(ascii: "="), from: index),
                start + 1 < text.count
            {
                index = start + 1
                guard text[start + 1] == UInt8(ascii: "?"),
                    let (octets, end) = word(text, start, &wordEnd)
                else { continue }
                var made = output ?? []
                output = nil
                let isBetween = hasWord && text[copied..<start].allSatisfy { $0 <= 0x20 }
                if !isBetween { made += text[copied..<start] }
                made += octets
                output = made
                (copied, hasWord, index) = (end, true, end)
            }
            return output.map { $0 + text[copied...] }
        }
    }

    private static func word(
        _ text: UnsafeBufferPointer<UInt8>, _ start: Int, _ wordEnd: inout Int
    ) -> ([UInt8], Int)? {
        let limit = min(text.count, start + maximumLength)
        var marks: [Int] = []
        var index = start + 2
        while index < limit, marks.count < 2 {
            if text[index] == UInt8(ascii: "?") {
                marks.append(index)
            } else if text[index] <= 0x20 {
                return nil
            }
            index += 1
        }
        guard marks.count == 2, marks[1] == marks[0] + 2 else { return nil }
        wordEnd = max(wordEnd, marks[1] + 1)
        while wordEnd + 1 < text.count,
            text[wordEnd] != UInt8(ascii: "?") || text[wordEnd + 1] != UInt8(ascii: "=")
        {
            wordEnd += 1
        }
        guard wordEnd + 1 < limit else { return nil }
        let content = text[(marks[1] + 1)..<wordEnd]
        let octets: [UInt8]
        switch text[marks[0] + 1] | 0x20 {
        case UInt8(ascii: "b"): octets = TransferReading.base64(Array(content)[...])
        case UInt8(ascii: "q"):
            octets = TransferReading.quotedPrintable(
                content.map { $0 == UInt8(ascii: "_") ? 0x20 : $0 }[...])
        default: return nil
        }
        // A language may follow the charset (RFC 2231 section 5).
        let label =
            text[(start + 2)..<marks[0]].split(separator: UInt8(ascii: "*")).first.map(Array.init)
            ?? []
        let name = String(decoding: label, as: UTF8.self).asciiLowercased
        return (Charset.decode(octets, name).map { Array($0.utf8) } ?? octets, wordEnd + 2)
    }
}
