// Decides whether a bare local part belongs to other text: another person's address, a host name,
// or a URL of another host.

import InternetMessage

/// Classifies words of one window by the text around them. The words must come in order. Each octet
/// of a URL is read once.
struct Surroundings {
    private let units: UnsafeBufferPointer<UInt8>
    private let gaps: UnsafeBufferPointer<UInt8>
    private let isFileName: Bool
    private let hiddenDomains: Set<[UInt8]>

    /// The unbroken octets around the last word that may belong to a local part.
    private var locals = 0..<0
    /// The unbroken octets around the last word, as far as they may belong to a URL.
    private var token = 0..<0
    /// The index up to which the token was searched for schemes, and the host after the last one.
    private var searched = 0
    private var host: Range<Int>?
    /// Whether that host is a domain of the user's addresses or is below one.
    private var isHostHidden = false
    /// The start of the path after that host.
    private var path = 0

    /// Octets on each side that may belong to one address. A longer address cannot be delivered.
    private static let maximumAddress = 256

    init(window: DecodedWindow, isFileName: Bool, hiddenDomains: Set<[UInt8]>) {
        units = window.octets
        gaps = window.separators
        self.isFileName = isFileName
        self.hiddenDomains = hiddenDomains
    }

    /// - Parameter range: units of the local part.
    mutating func belongElsewhere(_ range: Range<Int>) -> Bool {
        isInAddress(range)
            || (!isFileName && (continuesAsHost(range.upperBound) || isInURLOfAnother(range)))
    }

    /// The text to which a word belongs.
    enum Surrounding {
        case nothing
        /// A link to a host of the user's, or to any other.
        case ownLink, link
        /// An address or the name of a host.
        case another
    }

    /// - Parameter range: units of the local part. Ranges must come in the order of their starts.
    mutating func surrounding(_ range: Range<Int>) -> Surrounding {
        if isInAddress(range) || !isFileName && continuesAsHost(range.upperBound) {
            return .another
        }
        if isFileName { return .nothing }
        if range.lowerBound >= token.upperBound { open(around: range.lowerBound) }
        advance(to: range.lowerBound)
        guard let host, range.lowerBound >= host.lowerBound else { return .nothing }
        return range.lowerBound < path ? .another : isHostHidden ? .ownLink : .link
    }

    private func isBreak(_ unit: Int) -> Bool { gaps[unit] & ~DecodedWindow.unseen != 0 }

    private func isLetter(_ octet: UInt8) -> Bool { (0x61...0x7A).contains(octet) || octet >= 0x80 }

    private func isWord(_ octet: UInt8) -> Bool { isLetter(octet) || octet.isASCIIDigit }

    /// Octets that are usual in dot-atoms (RFC 5322 section 3.4.1), without those
    /// that join addresses in VERP.
    private func isLocal(_ octet: UInt8) -> Bool {
        isWord(octet) || octet == 0x2E || octet == 0x5F || octet == 0x2D || octet == 0x2B
            || octet == 0x27
    }

    // MARK: Addresses

    private mutating func isInAddress(_ range: Range<Int>) -> Bool {
        if let domain = separator(at: range.upperBound), isDomain(from: domain) { return true }
        if range.lowerBound < locals.lowerBound || range.upperBound > locals.upperBound {
            findLocals(around: range)
        }
        let end = min(locals.upperBound, range.upperBound + Self.maximumAddress)
        if end > range.upperBound, let domain = separator(at: end), isDomain(from: domain) {
            return true
        }
        let start = max(locals.lowerBound, range.lowerBound - Self.maximumAddress)
        return start > 1 && !isBreak(start) && units[start - 1] == UInt8(ascii: "@")
            && !isBreak(start - 1)
            && isLocal(units[start - 2])
    }

    /// Finds all of them at once, as the next words are usually among them.
    private mutating func findLocals(around range: Range<Int>) {
        var (start, end) = (range.lowerBound, range.upperBound)
        while end < units.count, !isBreak(end), isLocal(units[end]) { end += 1 }
        while start > 0, !isBreak(start), isLocal(units[start - 1]) { start -= 1 }
        locals = start..<end
    }

    private static let separators = [
        "@", "\\@", "(at)", "[at]", "{at}", "(@)", "(a)", "%40", "=40", "+40", "=", "#", "%",
    ].map { Array($0.utf8) }
    private static let separatorStarts = (0..<256).map { octet in
        separators.contains { Int($0[0]) == octet }
    }

    /// The unit after a separator of local part and domain; nil if there is none here.
    private func separator(at unit: Int) -> Int? {
        guard unit < units.count, Self.separatorStarts[Int(units[unit])], !isBreak(unit) else {
            return nil
        }
        return Self.separators.first { separator in
            unit + separator.count < units.count
                && separator.indices.allSatisfy { units[unit + $0] == separator[$0] }
        }.map { unit + $0.count }
    }

    /// Whether a domain begins here. A single label is enough only after an at sign.
    private func isDomain(from unit: Int) -> Bool {
        guard unit < units.count, !isBreak(unit), isWord(units[unit]) else { return false }
        if units[unit - 1] == UInt8(ascii: "@") { return true }
        var lastLabel = unit
        var end = unit
        while end < units.count, end - unit < Self.maximumAddress, end == unit || !isBreak(end) {
            if units[end] == UInt8(ascii: "."), end + 1 < units.count, isWord(units[end + 1]),
                !isBreak(end + 1)
            {
                lastLabel = end + 1
            } else if !(isWord(units[end]) || units[end] == UInt8(ascii: "-")) {
                break
            }
            end += 1
        }
        return lastLabel > unit && end - lastLabel >= 2 && isLetter(units[lastLabel])
    }

    // MARK: Hosts and URLs

    /// Top-level domains that mark a host name, and not the end of a file name or of a sentence; in
    /// addition to all of two letters.
    private static let topLevels: Set<[UInt8]> = Set(
        [
            "com", "org", "net", "info", "biz", "name", "dev", "app", "online", "shop", "blog",
            "site", "page", "email",
            "example", "test",
        ].map {
            Array($0.utf8)
        })

    /// Whether labels follow, so that the word begins a host name: `anna-berg.de`.
    private func continuesAsHost(_ end: Int) -> Bool {
        guard end + 2 < units.count, !isBreak(end), units[end] == UInt8(ascii: "."),
            !isBreak(end + 1)
        else { return false }
        var stop = end
        while stop < units.count, stop - end < Self.maximumAddress, !isBreak(stop),
            isHost(units[stop])
        { stop += 1 }
        return isTopLevel(before: stop, from: end)
    }

    private func isHost(_ octet: UInt8) -> Bool {
        isWord(octet) || octet == UInt8(ascii: ".") || octet == UInt8(ascii: "-")
    }

    /// Whether the last label of a name that ends here is a top-level domain.
    private func isTopLevel(before end: Int, from start: Int) -> Bool {
        var end = end
        while end > start, !isWord(units[end - 1]) { end -= 1 }
        var label = end
        while label > start, isWord(units[label - 1]) { label -= 1 }
        guard label > start, units[label - 1] == UInt8(ascii: ".") else { return false }
        return end - label == 2 && units[label..<end].allSatisfy(isLetter)
            || Self.topLevels.contains(Array(units[label..<end]))
    }

    /// Whether a URL may contain this octet: no space or control, none of `<>"'()[]{}|^`, no grave
    /// accent. Tested for every octet around a word.
    private func isURL(_ octet: UInt8) -> Bool {
        switch octet {
        case 0...0x20, 0x22, 0x27...0x29, 0x3C, 0x3E, 0x5B, 0x5D, 0x5E, 0x60, 0x7B...0x7D, 0x7F:
            false
        default: true
        }
    }

    /// Whether the word is in a URL of another host than the user's, with or without a scheme. It
    /// is then a name at that host.
    private mutating func isInURLOfAnother(_ range: Range<Int>) -> Bool {
        if range.lowerBound >= token.upperBound { open(around: range.lowerBound) }
        advance(to: range.lowerBound)
        guard let host, range.lowerBound >= host.lowerBound else { return false }
        // The host itself, as the user typed it.
        if range.lowerBound < path { return true }
        return !isHostHidden
    }

    private mutating func open(around unit: Int) {
        var start = unit
        while start > token.upperBound, !isBreak(start), isURL(units[start - 1]) { start -= 1 }
        var end = unit
        while end < units.count, end == unit || !isBreak(end), isURL(units[end]) { end += 1 }
        token = start..<max(end, unit + 1)
        searched = start
        host = nil
        path = start
        // `www.example.com/…`, `example.com/…`: a host name before the first slash.
        guard let slash = units[start..<unit].firstIndex(of: UInt8(ascii: "/")), slash > start,
            units[slash - 1] != UInt8(ascii: ":")
        else { return }
        var first = slash
        while first > start, isHost(units[first - 1]) { first -= 1 }
        if isTopLevel(before: slash, from: first) { enter(first..<slash, path: slash) }
    }

    /// Searches for schemes up to a unit. The last one counts, as URLs may contain URLs.
    private mutating func advance(to unit: Int) {
        while searched < unit {
            defer { searched += 1 }
            // `file:`, `mailbox:`, `smb:` and others lead to a path on the user's own machine or
            // network, not to a host of other people.
            guard units[searched] == UInt8(ascii: ":"), isWebScheme(before: searched) else {
                continue
            }
            // JSON writes `:\/\/`.
            var at = searched + 1
            var slashes = 0
            while at < token.upperBound, slashes < 2,
                units[at] == UInt8(ascii: "/") || units[at] == UInt8(ascii: "\\")
            {
                slashes += units[at] == UInt8(ascii: "/") ? 1 : 0
                at += 1
            }
            guard slashes == 2 else { continue }
            var first = at
            while at < token.upperBound, !"/?#\\".utf8.contains(units[at]) {
                if units[at] == UInt8(ascii: "@") { first = at + 1 }
                at += 1
            }
            var end = first
            while end < at, isHost(units[end]) { end += 1 }
            enter(first..<end, path: at)
        }
    }

    /// Schemes of links to hosts that anyone can open. Other text may be directly before one.
    private static let webSchemes = [
        "http", "https", "ftp", "ftps", "ws", "wss", "webcal", "git", "svn",
    ].map { Array($0.utf8) }

    private func isWebScheme(before colon: Int) -> Bool {
        Self.webSchemes.contains {
            colon >= $0.count && units[(colon - $0.count)..<colon].elementsEqual($0)
        }
    }

    private mutating func enter(_ host: Range<Int>, path: Int) {
        self.host = host
        self.path = path
        isHostHidden = isHidden(host)
    }

    private func isHidden(_ host: Range<Int>) -> Bool {
        var rest = units[host].suffix(Self.maximumAddress)
        while !rest.isEmpty {
            if hiddenDomains.contains(Array(rest)) { return true }
            guard let dot = rest.firstIndex(of: UInt8(ascii: ".")) else { return false }
            rest = rest[(dot + 1)...]
        }
        return false
    }
}
