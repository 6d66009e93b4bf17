// What the search of forwards for mentions still needs, until it goes.

import InternetMessage

/// Looks at the mentions of an inbox found in a forward. Not thread-safe: one for each message.
protocol MentionJudge: AnyObject {
    /// The edits that are made.
    /// - Parameter edits: in order and without overlaps.
    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit]
}

enum QuoteStructure {
    /// The name of a tag that begins here, in lower case; empty for a comment.
    private static func name(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
        let isClosing = text.dropFirst().first == UInt8(ascii: "/")
        return text.dropFirst(isClosing ? 2 : 1).prefix {
            ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A || (0x31...0x36).contains($0)
        }.prefix(12).map(\.asciiLowercased)
    }

    /// Whether a tag begins here that starts a new line of text.
    static func beginsBlock(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool { blocks.contains(name(text)) }

    private static let blocks: Set<[UInt8]> = Set(
        [
            "div", "p", "br", "tr", "td", "th", "table", "li", "ul", "ol", "hr", "h1", "h2", "h3", "h4", "pre", "body",
            "blockquote", "dt", "dd",
        ].map {
            Array($0.utf8)
        })
}

extension [Int] {
    /// The first element of an ascending array that is not less than this.
    func first(from place: Int) -> Int? { self[count(below: place)...].first }
}
