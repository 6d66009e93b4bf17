// How many addresses of others a forward shows: a list of them in text is how a team would try out guesses of an inbox.

import InternetMessage

/// Counts what reads like an address, each once, in the text of one forward. It asks nothing of the user's inbox: the count is the same
/// whether one of them is right or none is.
struct TextAddresses {
    /// Domains that do not count, with what lies below them: the team's own, and the relay's.
    private let known: Set<String>
    /// Beyond so many no further ones are looked for.
    private let limit: Int
    private var found: Set<[UInt8]> = []

    /// Octets of an address (RFC 5321 section 4.5.3.1.3); a longer one is delivered nowhere.
    private static let length = 254

    init(known: Set<String>, limit: Int) {
        self.known = known
        self.limit = limit
    }

    /// At most one more than the limit.
    var count: Int { found.count }

    /// - Parameters:
    ///   - text: in a superset of ASCII.
    ///   - isBegun: whether text stands before it, so that what touches its first octet may be cut off.
    ///   - goesOn: the same of its end.
    mutating func look(at text: some Collection<UInt8>, isBegun: Bool = false, goesOn: Bool = false) {
        guard found.count <= limit else { return }
        text.withContiguousStorageIfAvailable { text in
            // Nothing of a text is read twice: an address ends where the next one may begin.
            var from = 0
            while found.count <= limit, let at = text[from...].firstIndex(of: UInt8(ascii: "@")) {
                let local = max(from, at - Self.length)..<at
                let start = text[local].lastIndex { !Self.isOfLocalPart($0) }.map { $0 + 1 } ?? local.lowerBound
                let rest = (at + 1)..<min(text.count, at + 1 + Self.length)
                let end = text[rest].firstIndex { !Self.isOfDomain($0) } ?? rest.upperBound
                from = at + 1
                guard start < at, end - start <= Self.length, !(isBegun && start == 0), !(goesOn && end == text.count) else { continue }
                note(Array(text[start..<at]), domain: Array(text[(at + 1)..<end]))
            }
        }
    }

    private mutating func note(_ local: [UInt8], domain: [UInt8]) {
        let labels = domain.map(\.asciiLowercased).split(separator: UInt8(ascii: "."))
        // The id of a picture, `cid:image001.png@01D9ABCD.12345678`, is none.
        guard labels.count > 1, let last = labels.last, last.count > 1, last.allSatisfy({ $0.isASCIILetter || $0 >= 0x80 }) else { return }
        let dot = [UInt8(ascii: ".")]
        for start in labels.indices where known.contains(String(decoding: Array(labels[start...].joined(separator: dot)), as: UTF8.self)) {
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
