// The names before addresses in attributions and header blocks.

import InternetMessage
import Support

enum NeutralNames {
    /// Maximum octets and words of a name that are read.
    private static let longestName = 128
    private static let longestTag = 400
    private static let mostWords = 6

    /// The parts to remove of the name before a removed address: `Anna Berg <anna@example.org>`,
    /// `"Berg, Anna" (anna@example.org)`.
    static func finds(
        before address: Int, in text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax
    ) -> [Neutraliser.Find] {
        var reader = Backwards(text: text, isMarkup: syntax == .markup, index: address)
        reader.skipBrackets()
        guard reader.hasBracket else { return [] }
        return reader.name().map { word in
            // With the space after it.
            let end =
                word.upperBound < text.count && text[word.upperBound] == 0x20
                ? word.upperBound + 1 : word.upperBound
            return Neutraliser.Find(kind: .cut, range: word.lowerBound..<end, replacement: [])
        }
    }

    private struct Backwards {
        let text: UnsafeBufferPointer<UInt8>
        let isMarkup: Bool
        /// The index after the octet that is read next (reading goes backwards).
        var index: Int
        var hasBracket = false

        /// The start of the tag or the reference that ends at an index.
        private func start(endingAt end: Int) -> Int? {
            guard isMarkup, end > 0 else { return nil }
            let opening: UInt8
            let longest: Int
            switch text[end - 1] {
            case UInt8(ascii: ">"):
                (opening, longest) = (UInt8(ascii: "<"), NeutralNames.longestTag)
            case UInt8(ascii: ";"): (opening, longest) = (UInt8(ascii: "&"), 10)
            default: return nil
            }
            var start = end - 1
            while start > 0, end - start < longest, text[start] != opening { start -= 1 }
            return text[start] == opening ? start : nil
        }

        /// Skips `<`, `(`, `[`, `mailto:` and the tags and white space around them.
        mutating func skipBrackets() {
            while index > 0 {
                if let start = start(endingAt: index) {
                    if text[start] == UInt8(ascii: "&") {
                        guard let reference = HTMLReference.read(text, at: start) else { return }
                        guard [0x3C, 0x20, 0xA0, 0x28].contains(reference.scalar) else { return }
                        if reference.scalar == 0x3C || reference.scalar == 0x28 {
                            hasBracket = true
                        }
                    }
                    index = start
                } else if "<([".utf8.contains(text[index - 1]) {
                    // Within a tag, as in the address of a link.
                    if text[index - 1] == UInt8(ascii: "<"), isMarkup { return }
                    hasBracket = true
                    index -= 1
                } else if text[index - 1].isFoldingWhiteSpace {
                    index -= 1
                } else if index >= 7,
                    text[(index - 7)..<index].equalsIgnoringASCIICase("mailto:".utf8)
                {
                    index -= 7
                } else {
                    return
                }
            }
        }

        /// The ranges of the name that ends here.
        mutating func name() -> [Range<Int>] {
            let limit = max(0, index - NeutralNames.longestName)
            if index > 0, text[index - 1] == UInt8(ascii: "\"") {
                var start = index - 1
                while start > limit, text[start - 1] != UInt8(ascii: "\""), text[start - 1] != 0x0A
                { start -= 1 }
                return start > limit && text[start - 1] == UInt8(ascii: "\"")
                    ? [(start - 1)..<index] : []
            }
            var ranges: [Range<Int>] = []
            var words = 0
            while index > limit, words < NeutralNames.mostWords {
                if let start = start(endingAt: index) {
                    if text[start] == UInt8(ascii: "&") { return ranges }
                    index = start
                    continue
                }
                if text[index - 1].isFoldingWhiteSpace
                    || text[index - 1] == UInt8(ascii: ">") && !isMarkup
                {
                    index -= 1
                    continue
                }
                var start = index
                while start > limit, text[start - 1] > 0x20,
                    !",;:<>()[]\"".utf8.contains(text[start - 1])
                { start -= 1 }
                guard start < index, isOfName(text[start..<index]) else { return ranges }
                words += 1
                ranges.append(start..<index)
                index = start
            }
            return ranges
        }

        private func isOfName(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            guard !word.contains(where: \.isASCIIDigit) else { return false }
            return !QuoteForms.isNoName(word.map(\.asciiLowercased))
        }
    }
}
