// Blocks within a text that a change would break: keys, certificates and signed text (RFC 9580 section 6.2, RFC 7468).

import InternetMessage

enum ArmouredBlocks {
    /// As a refusal names them.
    static let name = "signed or armoured block"

    private static let begin = Array("-----BEGIN ".utf8)
    private static let end = Array("-----END ".utf8)

    /// Whether one of these edits, which are in order, lies within a block. A block that does not end is none: it is broken already.
    static func hold(_ edits: [TextEdit], in text: [UInt8]) -> Bool { outside(edits, in: text).count < edits.count }

    /// The edits, which are in order, that lie within no block.
    static func outside(_ edits: [TextEdit], in text: [UInt8]) -> [TextEdit] {
        text.withUnsafeBufferPointer { text in
            var rest = edits[...]
            var outside: [TextEdit] = []
            var opened: Int?
            var line = 0
            while line < text.count, !rest.isEmpty {
                if opened == nil, starts(text, at: line, with: begin) { opened = line }
                if let start = opened, starts(text, at: line, with: end) {
                    while let first = rest.first, first.range.upperBound <= start { outside.append(rest.removeFirst()) }
                    while let first = rest.first, first.range.lowerBound < line { rest.removeFirst() }
                    opened = nil
                }
                while line < text.count, text[line] != 0x0A { line += 1 }
                line += 1
            }
            return outside + rest
        }
    }

    private static func starts(_ text: UnsafeBufferPointer<UInt8>, at index: Int, with mark: [UInt8]) -> Bool {
        index + mark.count < text.count && mark.indices.allSatisfy { text[index + $0] == mark[$0] } && text[index + mark.count].isASCIILetter
    }
}
