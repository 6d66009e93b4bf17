// The user's addresses, each once, with which candidates are compared.

import Support

struct NameTable {
    private struct Group {
        let domain: [UInt8]
        var inboxes: [LeakNames.Inbox]
    }

    private var groups: [Group] = []
    /// Whether a domain of the user begins with an octet.
    private var firsts = [Bool](repeating: false, count: 256)
    /// The bare local parts.
    let words: Set<[UInt8]>
    /// Inboxes in the form of gateways, with `_` for each separator.
    let joined: Set<[UInt8]>
    /// The lengths of these names; most words have another length.
    let wordLengths: Set<Int>
    let joinedLengths: Set<Int>

    init(_ names: LeakNames) {
        var places: [[UInt8]: Int] = [:]
        for inbox in Set(names.inboxes) where !inbox.local.isEmpty && !inbox.domain.isEmpty {
            if let place = places[inbox.domain] {
                groups[place].inboxes.append(inbox)
            } else {
                places[inbox.domain] = groups.count
                groups.append(Group(domain: inbox.domain, inboxes: [inbox]))
                firsts[Int(inbox.domain[0])] = true
            }
        }
        words = Set(names.words)
        joined = Set(names.inboxes.map { Self.joined($0.local + [0x40] + $0.domain) })
        wordLengths = Set(words.map(\.count))
        joinedLengths = Set(joined.map(\.count))
    }

    static func joined(_ octets: some Sequence<UInt8>) -> [UInt8] {
        octets.map { "._@-+".utf8.contains($0) ? UInt8(ascii: "_") : $0 }
    }

    /// How strictly a candidate is compared.
    enum Context {
        /// Words of a text. Octets after a domain may make it another domain.
        case text
        /// A file. Matches also if other octets are directly before a local part.
        case file
        /// Compressed data, or decoded data of a file. Matches likewise, and with any octets after
        /// the domain.
        case binary
    }

    /// Whether a candidate is an inbox.
    func holds(
        _ text: Reading.View, local: Range<Int>, domain: Range<Int>, form: AddressReading.Form,
        _ context: Context
    ) -> Bool {
        guard firsts[Int(text[domain.lowerBound])] else { return false }
        for number in groups.indices
        where text.holds(groups[number].domain, at: domain.lowerBound, before: domain.upperBound) {
            if holds(text, local: local, domain: domain, groups[number], form: form, context) {
                return true
            }
        }
        return false
    }

    private func holds(
        _ text: Reading.View, local: Range<Int>, domain: Range<Int>, _ group: Group,
        form: AddressReading.Form,
        _ context: Context
    ) -> Bool {
        let end = domain.lowerBound + group.domain.count
        if form == .reversed, end != domain.upperBound { return false }
        if context != .binary, Domain.goesOn(text, domain, after: end) { return false }
        for inbox in group.inboxes {
            if Self.matches(text, local, inbox, form: form, context) { return true }
            // `b'jane@home.example'`
            guard end < text.count, text[end] == UInt8(ascii: "'"),
                let mark = text[local].firstIndex(of: UInt8(ascii: "'"))
            else { continue }
            if Self.equals(text, (mark + 1)..<local.upperBound, inbox) { return true }
        }
        return false
    }

    /// Words that programs and people write directly before an address.
    private static let glues = [
        "e-mail", "email", "mailto", "mail", "u003c", "u003e", "nbsp", "x22", "3d",
    ].map { Array($0.utf8) }
    private static let beginsGlue = (0..<256).map { octet in glues.contains { Int($0[0]) == octet }
    }
    /// Minimum octets that must be left after such a word.
    private static let shortestGlued = 6

    /// The local part at the end of a run, without the marks before it.
    static func local(_ text: Reading.View, _ run: Range<Int>) -> Range<Int> {
        if run.upperBound < text.count, text[run.upperBound] == UInt8(ascii: "\"") { return run }
        var start = run.upperBound
        while start > run.lowerBound, AddressReading.isOfLocal(text[start - 1]) { start -= 1 }
        while start < run.upperBound, AddressReading.isTrimmed(text[start]) { start += 1 }
        return start..<run.upperBound
    }

    /// A local part without its tag.
    static func base(_ text: Reading.View, _ local: Range<Int>) -> Range<Int> {
        guard let plus = text[local].firstIndex(of: UInt8(ascii: "+")), plus > local.lowerBound
        else { return local }
        return local.lowerBound..<plus
    }

    private static func matches(
        _ text: Reading.View, _ run: Range<Int>, _ inbox: LeakNames.Inbox,
        form: AddressReading.Form, _ context: Context
    ) -> Bool {
        let isLoose = context == .file || context == .binary
        let local = local(text, run)
        // A local part with octets that people's local parts do not have.
        if inbox.local.contains(where: { !AddressReading.isOfLocal($0) }) {
            return run.count >= inbox.local.count
                && text[run].suffix(inbox.local.count).elementsEqual(inbox.local)
        }
        func isInbox(_ range: Range<Int>) -> Bool {
            isLoose ? ends(text, range, with: inbox) : equals(text, range, inbox)
        }
        let base = base(text, local)
        if isInbox(local) || isInbox(base) { return true }
        // A word in another script directly before it.
        if let last = text[local].lastIndex(where: { $0 >= 0x80 }),
            inbox.local.allSatisfy({ $0 < 0x80 })
        {
            var from = last + 1
            while from < local.upperBound, AddressReading.isTrimmed(text[from]) { from += 1 }
            let tail = from..<local.upperBound
            if isInbox(tail) || isInbox(Self.base(text, tail)) { return true }
        }
        guard !isLoose else { return false }
        if form == .other {
            let dashes = [
                text[local].firstIndex(of: UInt8(ascii: "-")),
                text[local].lastIndex(of: UInt8(ascii: "-")),
            ]
            if dashes.contains(where: { $0.map { isInbox(($0 + 1)..<local.upperBound) } ?? false })
            {
                return true
            }
        }
        guard local.count > shortestGlued, beginsGlue[Int(text[local.lowerBound])] else {
            return false
        }
        for glue in glues
        where local.count >= glue.count + shortestGlued
            && text.holds(glue, at: local.lowerBound, before: local.upperBound)
        {
            var from = local.lowerBound + glue.count
            while from < base.upperBound, AddressReading.isTrimmed(text[from]) { from += 1 }
            if from < base.upperBound,
                isInbox(from..<base.upperBound) || isInbox(from..<local.upperBound)
            {
                return true
            }
        }
        return false
    }

    private static func equals(
        _ text: Reading.View, _ range: Range<Int>, _ inbox: LeakNames.Inbox
    ) -> Bool {
        if text[range].elementsEqual(inbox.local) { return true }
        return inbox.ignoresDots
            && text[range].lazy.filter { $0 != 0x2E }.elementsEqual(
                inbox.local.lazy.filter { $0 != 0x2E })
    }

    private static func ends(
        _ text: Reading.View, _ range: Range<Int>, with inbox: LeakNames.Inbox
    ) -> Bool {
        if text[range].suffix(inbox.local.count).elementsEqual(inbox.local) { return true }
        guard inbox.ignoresDots else { return false }
        var rest = text[range].lazy.filter { $0 != 0x2E }.reversed()[...]
        for octet in inbox.local.lazy.filter({ $0 != 0x2E }).reversed()
        where rest.popFirst() != octet { return false }
        return true
    }
}
