// Writes text into header fields: folded at spaces, with non-ASCII text in encoded words (RFC
// 2047).

import InternetMessage
import Support

enum HeaderText {
    /// RFC 5322 section 2.1.1 recommends 78 octets.
    private static let lineLength = 76

    /// An unstructured value without its leading space.
    /// - Parameters:
    ///   - text: UTF-8 without control characters.
    ///   - column: octets before it on the first line.
    static func unstructured(_ text: [UInt8], startingAt column: Int) -> [UInt8] {
        let isPlain =
            text.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && !EncodedWord.occurs(in: text[...])
        return isPlain ? fold(text, startingAt: column) : encodedWords(text, startingAt: column)
    }

    /// Encoded words of base64 in UTF-8, each with complete characters.
    static func encodedWords(_ text: [UInt8], startingAt column: Int) -> [UInt8] {
        var output: [UInt8] = []
        var room = max(12, lineLength - column - 12)
        var chunk: [UInt8] = []
        func flush(_ output: inout [UInt8]) {
            guard !chunk.isEmpty else { return }
            if !output.isEmpty { output += [0x0D, 0x0A, 0x20] }
            output += Array("=?utf-8?b?".utf8) + Base64.encodeUnbroken(chunk) + Array("?=".utf8)
            chunk = []
            room = lineLength - 1 - 12
        }
        for character in String(decoding: text, as: UTF8.self).unicodeScalars {
            let octets = Array(String(character).utf8)
            if (chunk.count + octets.count + 2) / 3 * 4 > room { flush(&output) }
            chunk += octets
        }
        flush(&output)
        return output
    }

    /// Breaks a value before spaces, so that lines stay within the recommended length if possible.
    /// Inserts only line breaks.
    static func fold(_ text: [UInt8], startingAt column: Int) -> [UInt8] {
        var output: [UInt8] = []
        var column = column
        var index = 0
        while index < text.count {
            // One piece: white space and the word after it.
            var end = index
            while end < text.count, text[end].isWhiteSpace { end += 1 }
            while end < text.count, !text[end].isWhiteSpace { end += 1 }
            if column + end - index > lineLength + 2, !output.isEmpty, text[index].isWhiteSpace,
                end > index + 1
            {
                output += [0x0D, 0x0A]
                column = 0
            }
            output += text[index..<end]
            column += end - index
            index = end
        }
        return output
    }
}

/// Finds runs of adjacent encoded words in any text.
enum EncodedWordRuns {
    /// Maximum octets of an encoded word; RFC 2047 allows 75, but programs write more.
    private static let maximumLength = 2_000

    /// Ranges from the first `=?` to the last `?=` of words with only white space between them.
    static func find(in text: [UInt8]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        var index = 0
        while index + 8 < text.count {
            guard text[index] == UInt8(ascii: "="), text[index + 1] == UInt8(ascii: "?"),
                let end = word(in: text, at: index)
            else {
                index += 1
                continue
            }
            if let last = runs.last, text[last.upperBound..<index].allSatisfy(\.isFoldingWhiteSpace)
            {
                runs[runs.count - 1] = last.lowerBound..<end
            } else {
                runs.append(index..<end)
            }
            index = end
        }
        return runs
    }

    /// The end of the word that begins here; nil if none does.
    private static func word(in text: [UInt8], at start: Int) -> Int? {
        let limit = min(text.count, start + maximumLength)
        var marks = 0
        var index = start + 2
        while index + 1 < limit {
            let octet = text[index]
            if octet == UInt8(ascii: "?") {
                marks += 1
                if marks >= 3, text[index + 1] == UInt8(ascii: "=") { return index + 2 }
                if marks == 1,
                    index + 2 >= limit || !"bBqQ".utf8.contains(text[index + 1])
                        || text[index + 2] != UInt8(ascii: "?")
                {
                    return nil
                }
            } else if octet == 0x0A || octet == 0x0D || (octet.isWhiteSpace && marks < 2) {
                return nil
            }
            index += 1
        }
        return nil
    }
}
