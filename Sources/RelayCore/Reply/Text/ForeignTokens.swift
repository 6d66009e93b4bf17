// Finds tokens of other accounts of this relay without their domain, so that no team gets another
// team's token.

import InternetMessage

enum ForeignTokens {
    /// Maximum octets of a local part (RFC 5321 section 4.5.3.1.1).
    private static let maximumLocalPart = 64

    /// Calls `body` with each word that is a token of another account, if its last part begins in a
    /// range of the text.
    /// - Parameter isForeign: whether a local part is such a token, as its MAC shows.
    static func find(
        _ window: DecodedWindow, _ range: Range<Int>, isForeign: ([UInt8]) -> Bool,
        _ body: (Range<Int>) -> Void
    ) {
        let units = window.octets
        var first = 0
        while first < units.count {
            guard units[first].isASCIIAlphanumeric else {
                first += 1
                continue
            }
            var end = first + 1
            while end < units.count, units[end].isASCIIAlphanumeric, window.separators[end] == 0 {
                end += 1
            }
            defer { first = end }
            guard range.contains(window.start(first)),
                TokenMint.mayBeTail(UnsafeBufferPointer(rebasing: units[first..<end]))
            else { continue }
            var start = first
            while start > 0, end - start < maximumLocalPart, window.separators[start] == 0,
                units[start - 1].isASCIIAlphanumeric || "=.-_+".utf8.contains(units[start - 1])
            {
                start -= 1
            }
            let local = Array(units[start..<end])
            if isForeign(Array(local.suffix(end - first))) {
                body(first..<end)
            } else if let shorter = (0..<(first - start)).first(where: {
                isForeign(Array(local[$0...]))
            }) {
                body((start + shorter)..<end)
            }
        }
    }
}
