// Every written form of the hidden addresses that a finished message is searched for.

import InternetMessage
import Support

/// Needles in lower case and without white space, found by their first two octets. Deliberately independent of the rewriter:
/// what one of them overlooks, the other should see.
struct LeakForms {
    struct Needle {
        let octets: [UInt8]
        /// Whether the local part comes first, so that more of it could be before.
        let startsWithLocal: Bool
        /// Whether the domain comes last, so that more of it could follow.
        let endsWithDomain: Bool
        /// How strictly a bare local part is matched; nil for whole addresses.
        let bare: LocalPartGuard?
        /// For `local+`: what must follow the tag.
        let afterTag: [UInt8]?
        /// Whether it is the beginning of a token of the account, which must be read whole.
        var isToken = false
        /// Whether it also counts directly after other letters: a long local part at a domain of the user's own.
        var countsGlued = false
    }

    /// Needles of the unchanged text, and of the text without dots, for providers that ignore dots.
    private(set) var needles: [Needle] = []
    private(set) var dotless: [Needle] = []
    private let own: OwnTokens
    private var table = WordTable()
    private var dotlessTable = WordTable()
    private var beginnings: Beginnings?

    /// - Parameter hidesWords: whether local parts alone are looked for.
    init(names: ReplyNames, hidesWords: Bool = true) {
        // The rewriter has refused messages with more tokens than it can read; of all others, more is read here than it had to.
        let own = OwnTokens(names: names, maximumReadings: 3 * OwnTokens.maximumReadings)
        self.own = own
        needles = own.anchors.map {
            Needle(octets: $0, startsWithLocal: false, endsWithDomain: false, bare: nil, afterTag: nil, isToken: true)
        }
        var seen: Set<[UInt8]> = []
        // Where there are more, nothing is relayed (`NameIndex.isOverfull`).
        for inbox in names.hidden.prefix(NameIndex.maximumPatterns) {
            let address = inbox.revealed
            let canonical = names.providers.canonical(address)
            var domains = [address.domain] + names.providers.aliases(of: canonical.domain)
            domains += domains.flatMap { [DomainName.toASCII($0), DomainName.toUnicode($0)].compactMap { $0 } }
            let locals = Set([Self.octets(address.localPart), Self.octets(canonical.localPart)])
            let isOwn =
                names.inboxDomains.contains(canonical.domain) && names.providers.rules[canonical.domain] == nil
                && !SharedProviders.contains(canonical.domain) && !names.isTeamDomain(canonical.domain)
            for local in locals {
                let countsGlued = isOwn && local.count >= LocalPartGuard.minimumLength
                for domain in Set(domains.map(Self.octets)) where seen.insert(local + [0] + domain).inserted {
                    needles += Self.forms(local, domain, countsGlued: countsGlued)
                    if names.providers.ignoresDots(canonical.domain) {
                        dotless += Self.forms(local.filter { $0 != 0x2E }, domain.filter { $0 != 0x2E }, countsGlued: countsGlued)
                    }
                }
                let kind = LocalPartGuard(local)
                if hidesWords, kind != .none, seen.insert(local).inserted {
                    needles.append(Needle(octets: local, startsWithLocal: true, endsWithDomain: false, bare: kind, afterTag: nil))
                }
            }
        }
        table = Self.table(needles)
        if !dotless.isEmpty { dotlessTable = Self.table(dotless) }
        beginnings = Beginnings(of: needles.map(\.octets), withoutDots: dotless.map(\.octets))
    }

    private static func octets(_ text: String) -> [UInt8] { Array(text.lowercased().utf8) }

    private static func forms(_ local: [UInt8], _ domain: [UInt8], countsGlued: Bool) -> [Needle] {
        let between = ["@", "=", "#", "%", "(a)", "(at)", "[at]", "{at}", "(@)", "\\@", "&#64;", "%40", "+40", "=40"].map {
            Array($0.utf8)
        }
        var forms = between.map {
            Needle(
                octets: local + $0 + domain, startsWithLocal: true, endsWithDomain: true, bare: nil, afterTag: nil,
                countsGlued: countsGlued)
        }
        forms.append(
            Needle(octets: domain + [0x3D] + local, startsWithLocal: false, endsWithDomain: false, bare: nil, afterTag: nil))
        forms.append(
            Needle(
                octets: local + [0x2B], startsWithLocal: true, endsWithDomain: true, bare: nil, afterTag: [0x40] + domain,
                countsGlued: countsGlued))
        return forms
    }

    private static func table(_ needles: [Needle]) -> WordTable {
        var table = WordTable()
        for needle in needles { table.append(needle.octets) }
        return table
    }

    /// Whether anything beyond ASCII is searched for.
    var isBeyondASCII: Bool { needles.contains { $0.octets.contains { $0 >= 0x80 } } }

    // MARK: Search

    /// Whether a needle may be in octets, ignoring white space and NUL; a no costs nearly nothing.
    func mayBegin(in octets: UnsafeBufferPointer<UInt8>) -> Bool { beginnings?.occur(in: octets) ?? true }

    /// What is known of an octet besides its value.
    static let afterGap: UInt8 = 1
    static let wasCapital: UInt8 = 2
    /// A single NUL precedes it: in UTF-16 every octet, in other data the second of two texts.
    static let afterNul: UInt8 = 4

    /// What was found in a view.
    enum Finding {
        case nothing
        /// The number of needles that end with the view: the next octets may make each of them part of something else.
        case atEnd(Int)
        case needle
    }

    /// - Parameters:
    ///   - view: lower case, without white space.
    ///   - marks: `afterGap` and `wasCapital` for each octet.
    ///   - first: where a needle may begin: what is before was searched earlier.
    ///   - isLast: whether nothing follows, so that words end with the view.
    func find(
        in view: UnsafeBufferPointer<UInt8>, marks: UnsafeBufferPointer<UInt8>, from first: Int, withoutDots: Bool,
        isBinary: Bool, isLast: Bool
    ) -> Finding {
        let (table, needles) = withoutDots ? (dotlessTable, dotless) : (self.table, self.needles)
        var atEnd = 0
        let isFound = table.pairs.search(view) { index in
            index >= first
                && table.contains(at: index, in: view) { number in
                    let needle = needles[number]
                    guard stands(needle, at: index, in: view, marks: marks, isBinary: isBinary, endsThere: true) else {
                        return false
                    }
                    if isLast || stands(needle, at: index, in: view, marks: marks, isBinary: isBinary, endsThere: false) {
                        return true
                    }
                    atEnd += 1
                    return false
                }
        }
        return isFound ? .needle : atEnd > 0 ? .atEnd(atEnd) : .nothing
    }

    /// - Parameter endsThere: whether a needle at the end of the view counts as ended there.
    private func stands(
        _ needle: Needle, at index: Int, in view: UnsafeBufferPointer<UInt8>, marks: UnsafeBufferPointer<UInt8>, isBinary: Bool,
        endsThere: Bool
    ) -> Bool {
        let end = index + needle.octets.count
        if needle.isToken {
            return own.find(around: index, in: view, joins: { _ in true }, isApart: { marks[$0] & Self.afterGap != 0 }) != nil
        }
        if let bare = needle.bare { return isBare(bare, index..<end, view, marks, endsThere) }
        // In data that is not text a length or a tag may look like a letter: there every occurrence counts.
        if isBinary { return needle.afterTag.map { tagLeads(from: end, to: $0, in: view) } ?? true }
        if needle.startsWithLocal, !needle.countsGlued, !beginsWord(index, view, marks, isAddress: !needle.octets.contains(0x3D))
        {
            return false
        }
        if let afterTag = needle.afterTag { return tagLeads(from: end, to: afterTag, in: view) }
        return !needle.endsWithDomain || endsDomain(end, view, marks, endsThere)
    }

    private func isAlphanumeric(_ octet: UInt8) -> Bool { (0x61...0x7A).contains(octet) || (0x30...0x39).contains(octet) }

    private func beginsWord(
        _ index: Int, _ view: UnsafeBufferPointer<UInt8>, _ marks: UnsafeBufferPointer<UInt8>, isAddress: Bool
    ) -> Bool {
        if index == 0 || marks[index] & Self.afterGap != 0 { return true }
        if marks[index] & Self.afterNul != 0, index + 1 < view.count, marks[index + 1] & Self.afterNul == 0 { return true }
        let before = view[index - 1]
        if isAlphanumeric(before) {
            return index > 1 && view[index - 2] == UInt8(ascii: "\\") && "nrt".utf8.contains(before)
        }
        guard isAddress, "._-+".utf8.contains(before), index > 1, marks[index - 1] & Self.afterGap == 0 else { return true }
        return !isAlphanumeric(view[index - 2])
    }

    private func endsDomain(
        _ end: Int, _ view: UnsafeBufferPointer<UInt8>, _ marks: UnsafeBufferPointer<UInt8>, _ endsThere: Bool
    ) -> Bool {
        guard end < view.count else { return endsThere }
        guard marks[end] & Self.afterGap == 0 else { return true }
        if marks[end] & Self.afterNul != 0, marks[end - 1] & Self.afterNul == 0 { return true }
        if isAlphanumeric(view[end]) || view[end] == UInt8(ascii: "_") { return false }
        guard view[end] == UInt8(ascii: ".") || view[end] == UInt8(ascii: "-") else { return true }
        guard end + 1 < view.count else { return endsThere }
        return marks[end + 1] & Self.afterGap != 0 || !isAlphanumeric(view[end + 1])
    }

    /// A tag of up to 64 octets, then the domain.
    private func tagLeads(from start: Int, to domain: [UInt8], in view: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = start
        while index + domain.count <= view.count, index - start <= 64 {
            if view[index] == 0x40 { return (0..<domain.count).allSatisfy { view[index + $0] == domain[$0] } }
            index += 1
        }
        return false
    }

    private func isBare(
        _ kind: LocalPartGuard, _ range: Range<Int>, _ view: UnsafeBufferPointer<UInt8>, _ marks: UnsafeBufferPointer<UInt8>,
        _ endsThere: Bool
    ) -> Bool {
        // Not words that only the removal of white space makes: `for get` is not `forget`.
        for index in range.dropFirst() where marks[index] & Self.afterGap != 0 { return false }
        if kind == .word {
            guard beginsWord(range.lowerBound, view, marks, isAddress: false) else { return false }
            guard
                range.upperBound == view.count || marks[range.upperBound] & Self.afterGap != 0
                    || !isAlphanumeric(view[range.upperBound])
            else { return false }
        }
        return kind != .none && standsAlone(range, view, marks, endsThere)
    }

    /// Octets that are searched on each side of a bare local part.
    private static let reach = 512

    /// Whether nothing around a bare local part could make it a piece of an address, a host name or a URL. The rewriting finds
    /// out exactly which it is (`Surroundings`); here, where the same octets are read in many ways, a doubt is not an incident.
    private func standsAlone(
        _ range: Range<Int>, _ view: UnsafeBufferPointer<UInt8>, _ marks: UnsafeBufferPointer<UInt8>, _ endsThere: Bool
    ) -> Bool {
        func isGap(_ index: Int) -> Bool { index >= view.count || marks[index] & Self.afterGap != 0 }
        var end = range.upperBound
        if !isGap(end), view[end] == UInt8(ascii: "."), !isGap(end + 1), isAlphanumeric(view[end + 1]) { return false }
        while !isGap(end), end - range.upperBound < Self.reach,
            isAlphanumeric(view[end]) || view[end] >= 0x80 || "._-'".utf8.contains(view[end])
        { end += 1 }
        // A domain may follow the view.
        if end >= view.count, end - range.upperBound < Self.reach, !endsThere { return false }
        if !isGap(end), "@=%#&+\\([{/?".utf8.contains(view[end]) { return false }
        var start = range.lowerBound
        while start > 0 {
            let before = view[start - 1]
            // A soft line break: the text before it belongs to the word, in the reading that decodes it.
            if isGap(start) { return before != UInt8(ascii: "=") }
            if "<>\"'()[]{}|^`".utf8.contains(before) { return true }
            if "/@?%&#\\".utf8.contains(before) || range.lowerBound - start == Self.reach { return false }
            start -= 1
        }
        return true
    }
}
