// Counts the addresses of others that a forward shows: a team that tries out guesses of an inbox would list them in the text.

import InternetMessage

/// Counts distinct address-like strings in the text of one forward, as its reader sees them or as a link holds them. It does
/// not use the user's inbox: the count is the same whether one of them is right or none is.
struct TextAddresses {
    /// Domains that do not count, nor do their subdomains: the team's own, and the relay's.
    private let known: Set<String>
    /// Beyond this number the search ends.
    private let limit: Int
    private var found: Set<[UInt8]> = []

    /// Octets of an address (RFC 5321 section 4.5.3.1.3); a longer one cannot be delivered.
    private static let length = 254
    /// Octets that are read at once.
    private static let window = 4_096
    /// Octets read before and after an `@`. An address that takes more, including its unseen octets, is counted as far as it
    /// reads as one.
    private static let reach = 512

    init(known: Set<String>, limit: Int) {
        self.known = known
        self.limit = limit
    }

    /// At most one more than the limit.
    var count: Int { found.count }

    /// - Parameters:
    ///   - text: in UTF-8 or another superset of ASCII.
    ///   - isMarkup: whether it is HTML, whose tags the reader does not see.
    ///   - isBegun: whether other text precedes it, so that an address at its first octet may be cut off.
    ///   - goesOn: the same for its end.
    mutating func look(at text: [UInt8], isMarkup: Bool = false, isBegun: Bool = false, goesOn: Bool = false) {
        text.withUnsafeBufferPointer { text in
            var window: DecodedWindow?
            var next = 0
            while found.count <= limit, let first = text[next...].firstIndex(where: Self.maySayAt) {
                var last = first
                // Nearby candidates are read together, and most of a text not at all.
                while let more = text[(last + 1)..<min(text.count, last + 2 * Self.reach)].firstIndex(where: Self.maySayAt),
                    more - first < Self.window - 2 * Self.reach
                { last = more }
                let read = max(0, first - Self.reach)..<min(text.count, last + 1 + Self.reach)
                let cut = (before: isBegun && read.lowerBound == 0, behind: goesOn && read.upperBound == text.count)
                let reading = window ?? DecodedWindow(foldsUnicode: false, capacity: Self.window)
                window = reading
                var joined: Set<Int> = []
                if isMarkup {
                    reading.read(text, from: read.lowerBound, to: read.upperBound, lens: [.percent, .tags])
                    joined = look(at: reading, text, first...last, cut, isAcrossTags: true, without: [])
                }
                reading.read(text, from: read.lowerBound, to: read.upperBound, lens: .percent)
                _ = look(at: reading, text, first...last, cut, isAcrossTags: false, without: joined)
                next = last + 1
            }
        }
    }

    /// `@`, the octets that may begin an encoded one, and the first octet of its other forms in UTF-8.
    private static func maySayAt(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x40, 0x25, 0x26, 0x5C, 0xEF: true
        default: false
        }
    }

    /// Looks at one reading of a window.
    /// - Parameters:
    ///   - own: where the `@` may be.
    ///   - isAcrossTags: whether only addresses count that have skipped tags inside.
    ///   - others: indices of `@` that were read in another way.
    /// - Returns: the indices of `@` in addresses that have skipped tags inside.
    private mutating func look(
        at window: DecodedWindow, _ text: UnsafeBufferPointer<UInt8>, _ own: ClosedRange<Int>,
        _ cut: (before: Bool, behind: Bool), isAcrossTags: Bool,
        without others: Set<Int>
    ) -> Set<Int> {
        var joined: Set<Int> = []
        let units = window.octets
        // Nothing is read twice: an address ends where the next one may begin.
        var first = 0
        for at in units.indices where units[at] == UInt8(ascii: "@") {
            guard found.count <= limit else { break }
            defer { first = at + 1 }
            guard own.contains(window.start(at)), !others.contains(window.start(at)) else { continue }
            var tags = false
            /// Whether a unit directly follows the one before it, as far as the reader sees.
            func follows(_ unit: Int) -> Bool {
                let between = window.end(unit - 1)..<max(window.end(unit - 1), window.start(unit))
                guard window.separators[unit] & ~DecodedWindow.unseen == 0, !Self.holdsBlock(text, between) else { return false }
                if isAcrossTags, text[between].contains(UInt8(ascii: "<")) { tags = true }
                return true
            }
            let lowest = max(first, at - Self.length)
            var start = at
            if at > lowest, units[at - 1] == UInt8(ascii: "\"") {
                // "anna"@inbox.example (RFC 5321 section 4.1.2)
                guard let opening = units[lowest..<(at - 1)].lastIndex(of: UInt8(ascii: "\"")) else { continue }
                guard follows(at) else { continue }
                start = opening + 1
            } else {
                while start > lowest, Self.isOfLocalPart(units[start - 1]), follows(start) { start -= 1 }
            }
            var end = at + 1
            while end < units.count, end - at <= Self.length, Self.isOfDomain(units[end]), follows(end) { end += 1 }
            guard start < at, end - start <= Self.length, !isAcrossTags || tags, !(cut.before && window.start(start) == 0),
                !(cut.behind && window.end(end - 1) == text.count)
            else { continue }
            if tags { joined.insert(window.start(at)) }
            note(units[start..<at].filter { $0 != UInt8(ascii: "\"") }, domain: Array(units[(at + 1)..<end]))
        }
        return joined
    }

    private static func holdsBlock(_ text: UnsafeBufferPointer<UInt8>, _ passed: Range<Int>) -> Bool {
        passed.contains { text[$0] == UInt8(ascii: "<") && QuoteStructure.beginsBlock(text[$0..<passed.upperBound]) }
    }

    private mutating func note(_ local: [UInt8], domain: [UInt8]) {
        let labels = domain.map(\.asciiLowercased).split(separator: UInt8(ascii: "."))
        // The id of a picture, `cid:image001.png@01D9ABCD.12345678`, is not an address.
        guard labels.count > 1, let last = labels.last, last.count > 1, last.allSatisfy({ $0.isASCIILetter || $0 >= 0x80 }) else {
            return
        }
        let dot = [UInt8(ascii: ".")]
        for start in labels.indices
        where known.contains(String(decoding: Array(labels[start...].joined(separator: dot)), as: UTF8.self)) {
            return
        }
        found.insert(local.map(\.asciiLowercased) + [UInt8(ascii: "@")] + labels.joined(separator: dot))
    }

    private static func isOfLocalPart(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || octet >= 0x80 || "._-+".utf8.contains(octet)
    }

    private static func isOfDomain(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || octet >= 0x80 || octet == UInt8(ascii: ".") || octet == UInt8(ascii: "-")
    }
}
