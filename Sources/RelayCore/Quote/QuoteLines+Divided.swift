// Lines of plain text that were several lines in HTML. The program that converted them kept the
// tags or lost the line breaks.

import InternetMessage
import Support

extension QuoteLines {
    /// Longer lines stay undivided.
    private static let longestDivided = 8_000
    /// Tags that divide lines; an old Samsung program leaves them in the text.
    private static let tags = ["<div>", "</div>", "<br>"].map { Array($0.utf8) }
    private static let dashes = Array("-----".utf8)

    /// The lines that this line really contains, each with the range of its words; nil if it is
    /// only one line.
    static func divided(
        _ text: UnsafeBufferPointer<UInt8>, _ line: Range<Int>
    ) -> [(start: Int, words: Range<Int>)]? {
        guard line.count <= longestDivided else { return nil }
        var first = line.lowerBound
        while first < line.upperBound, text[first] <= 0x20 { first += 1 }
        guard first < line.upperBound else { return nil }
        if tag(text, first, line.upperBound) != nil { return dividedByTags(text, line) }
        return dividedBySeparator(text, first..<line.upperBound, from: line.lowerBound)
    }

    private static func tag(_ text: UnsafeBufferPointer<UInt8>, _ index: Int, _ end: Int) -> Int? {
        guard text[index] == UInt8(ascii: "<") else { return nil }
        let rest = lower(text[index..<min(end, index + 6)])
        return tags.first { rest.starts(with: $0) }?.count
    }

    private static func dividedByTags(
        _ text: UnsafeBufferPointer<UInt8>, _ line: Range<Int>
    ) -> [(start: Int, words: Range<Int>)] {
        var parts: [(start: Int, words: Range<Int>)] = []
        var (start, words) = (line.lowerBound, line.lowerBound)
        var index = line.lowerBound
        while index < line.upperBound {
            guard let count = tag(text, index, line.upperBound) else {
                index += 1
                continue
            }
            // Empty text between two tags is not an empty line.
            if !trimmed(text, words..<index).isEmpty {
                parts.append((start, words..<index))
                start = index
            }
            index += count
            words = index
        }
        parts.append((start, words..<line.upperBound))
        return parts
    }

    /// `I agree.   ----- Forwarded Message ----- From: Anna <a@b.example>To: …`
    private static func dividedBySeparator(
        _ text: UnsafeBufferPointer<UInt8>, _ line: Range<Int>, from start: Int
    ) -> [(start: Int, words: Range<Int>)]? {
        var from = line.lowerBound + 1
        // Searches within the line only: otherwise each line would search to the end of the text.
        while from + dashes.count < line.upperBound,
            let dash = text[from..<line.upperBound].firstIndex(of: UInt8(ascii: "-"))
        {
            var inner = dash
            while inner < line.upperBound, text[inner] == UInt8(ascii: "-") { inner += 1 }
            from = inner + 1
            guard inner - dash >= dashes.count, text[dash - 1] <= 0x20, inner < line.upperBound
            else { continue }
            var end = inner
            while end < line.upperBound, text[end] != UInt8(ascii: "-") { end += 1 }
            var behind = end
            while behind < line.upperBound, text[behind] == UInt8(ascii: "-") { behind += 1 }
            guard behind - end >= dashes.count, behind < line.upperBound,
                end - inner <= QuoteForms.longestField + 16,
                QuoteForms.namesMessage(
                    lower(text[inner..<end]).split(separator: 0x20).map { Array($0) })
            else { continue }
            return [
                (start, start..<dash), (dash, dash..<behind), (behind, behind..<line.upperBound),
            ]
        }
        return nil
    }
}
