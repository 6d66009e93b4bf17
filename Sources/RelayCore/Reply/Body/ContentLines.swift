// Content lines of iCalendar and vCard. After an edit they are folded again, so that no line is too
// long.

import InternetMessage
import Support

enum ContentLines {
    /// Whether a text begins like a calendar, a contact or a directory entry (RFC 5545, 6350 and
    /// 2849), regardless of its type.
    static func begin(_ text: [UInt8]) -> Bool {
        let head = text.prefix(12).drop { [0xEF, 0xBB, 0xBF].contains($0) }.map(\.asciiLowercased)
        return ["begin:v", "dn:", "version:"].contains { head.starts(with: $0.utf8) }
    }

    /// Octets of a line without its break (RFC 5545 section 3.1).
    private static let lineLength = 75

    /// A text without its folds, with the original place of each octet.
    struct Unfolded {
        let octets: [UInt8]
        private let starts: [Int32]

        init(_ text: [UInt8]) {
            var octets: [UInt8] = []
            octets.reserveCapacity(text.count)
            var starts: [Int32] = []
            starts.reserveCapacity(text.count)
            var index = 0
            while index < text.count {
                let isCRLF =
                    text[index] == 0x0D && index + 1 < text.count && text[index + 1] == 0x0A
                let width = isCRLF ? 2 : text[index] == 0x0A ? 1 : 0
                if width > 0, index + width < text.count, text[index + width].isWhiteSpace {
                    index += width + 1
                } else {
                    octets.append(text[index])
                    starts.append(Int32(truncatingIfNeeded: index))
                    index += 1
                }
            }
            self.octets = octets
            self.starts = starts
        }

        /// The text without some stretches of it, which are in order.
        init(_ text: [UInt8], without breaks: [Range<Int>]) {
            var octets: [UInt8] = []
            var starts: [Int32] = []
            octets.reserveCapacity(text.count)
            starts.reserveCapacity(text.count)
            var index = 0
            for gap in breaks + [text.count..<text.count] {
                while index < gap.lowerBound {
                    octets.append(text[index])
                    starts.append(Int32(truncatingIfNeeded: index))
                    index += 1
                }
                index = max(index, gap.upperBound)
            }
            self.octets = octets
            self.starts = starts
        }

        /// A non-empty edit, with its range in the text with folds.
        func folded(_ edit: TextEdit) -> TextEdit {
            let last = Int(starts[edit.range.upperBound - 1])
            return TextEdit(
                range: Int(starts[edit.range.lowerBound])..<(last + 1),
                replacement: edit.replacement, isWeak: edit.isWeak,
                isMade: edit.isMade)
        }
    }

    /// Edits found in the text without its folds: a program that unfolds `%4` and `0` on two lines
    /// reads an at sign.
    static func unfoldedEdits(of text: [UInt8], _ edits: ([UInt8]) -> [TextEdit]) -> [TextEdit] {
        let unfolded = Unfolded(text)
        guard unfolded.octets.count < text.count else { return [] }
        return edits(unfolded.octets).map(unfolded.folded)
    }

    /// The end of the line that begins here, with its continuations and line break.
    static func foldedLineEnd(in text: [UInt8], from start: Int) -> Int {
        var end = start
        repeat {
            while end < text.count, text[end] != 0x0A { end += 1 }
            end = min(end + 1, text.count)
        } while end < text.count && text[end].isWhiteSpace
        return end
    }

    /// Edits that remove the public keys of a vCard: properties `KEY`, in a group or not, with
    /// their continuations.
    static func keys(in text: [UInt8]) -> [TextEdit] {
        var edits: [TextEdit] = []
        var start = 0
        while start < text.count {
            let end = foldedLineEnd(in: text, from: start)
            let name = text[start..<end].prefix {
                $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: ";")
            }
            let last = name.lastIndex(of: UInt8(ascii: ".")).map { name[($0 + 1)...] } ?? name
            if last.map(\.asciiLowercased).elementsEqual("key".utf8) {
                edits.append(TextEdit(range: start..<end, replacement: []))
            }
            start = end
        }
        return edits
    }

    /// Edits that replace content lines that became too long; the others stay unchanged.
    static func refolding(_ edits: [TextEdit], in text: [UInt8]) -> [TextEdit] {
        var output: [TextEdit] = []
        var index = 0
        while index < edits.count {
            let range = contentLine(around: edits[index].range, in: text)
            var inside: [TextEdit] = []
            while index < edits.count, edits[index].range.lowerBound < range.upperBound {
                let edit = edits[index]
                inside.append(
                    TextEdit(
                        range: (edit.range.lowerBound - range.lowerBound)..<(edit.range.upperBound
                            - range.lowerBound),
                        replacement: edit.replacement))
                index += 1
            }
            let line = inside.applied(to: text[range])
            if physicalLines(line).allSatisfy({ $0 <= lineLength }) {
                output += inside.map {
                    TextEdit(
                        range: ($0.range.lowerBound + range.lowerBound)..<($0.range.upperBound
                            + range.lowerBound),
                        replacement: $0.replacement)
                }
            } else {
                output.append(
                    TextEdit(
                        range: range,
                        replacement: fold(
                            unfold(line), lineBreak: text.contains(0x0D) ? [0x0D, 0x0A] : [0x0A])))
            }
        }
        return output
    }

    /// The complete content line around a range, with its continuations and without its last line
    /// break.
    private static func contentLine(around range: Range<Int>, in text: [UInt8]) -> Range<Int> {
        var start = range.lowerBound
        while start > 0 {
            if text[start - 1] == 0x0A, start >= text.count || !text[start].isWhiteSpace { break }
            start -= 1
        }
        var end = range.upperBound
        while end < text.count {
            if text[end] == 0x0A, end + 1 >= text.count || !text[end + 1].isWhiteSpace { break }
            end += 1
        }
        if end > range.upperBound, end < text.count, text[end - 1] == 0x0D { end -= 1 }
        return start..<end
    }

    private static func physicalLines(_ line: [UInt8]) -> [Int] {
        line.split(separator: 0x0A, omittingEmptySubsequences: false).map {
            $0.last == 0x0D ? $0.count - 1 : $0.count
        }
    }

    private static func unfold(_ line: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var index = 0
        while index < line.count {
            let isCRLF = line[index] == 0x0D && index + 1 < line.count && line[index + 1] == 0x0A
            let width = isCRLF ? 2 : line[index] == 0x0A ? 1 : 0
            if width > 0, index + width < line.count, line[index + width].isWhiteSpace {
                index += width + 1
            } else {
                output.append(line[index])
                index += 1
            }
        }
        return output
    }

    static func fold(_ line: [UInt8], lineBreak: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var column = 0
        for (index, octet) in line.enumerated() {
            // A UTF-8 character is never split, so its first octet needs room for all of them.
            let width = octet >= 0xF0 ? 4 : octet >= 0xE0 ? 3 : octet >= 0xC0 ? 2 : 1
            if column + width > lineLength, octet & 0xC0 != 0x80, index > 0 {
                output += lineBreak + [0x20]
                column = 1
            }
            output.append(octet)
            column += 1
        }
        return output
    }
}
