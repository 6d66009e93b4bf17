// The entries of one live list in memory: searched for every decision, updated from the store.

/// A value type. Every change rebuilds the search table, so combine changes.
///
/// Memory for 1,000,000 entries: 16 octets each for IPv4 ranges (64 for IPv6), some 50 and the text for texts and domains.
package struct LiveListEntries: Sendable {
    package let kind: LiveListKind
    /// Texts, normalized domains, or marks.
    private var texts: Set<ExactString> = []
    private var ranges = AddressRanges.Source()
    private var table = AddressRanges(AddressRanges.Source())

    /// An empty list.
    package init(_ kind: LiveListKind) { self.kind = kind }

    /// A list of these entries, which must be in their normal form.
    package init(_ kind: LiveListKind, _ entries: some Sequence<String>) {
        self.init(kind)
        change(adding: entries, removing: EmptyCollection())
    }

    /// Number of entries.
    package var count: Int { kind == .range ? ranges.count : texts.count }

    /// Adds and removes entries in their normal form; an entry in both arguments is in the list afterwards.
    package mutating func change(adding: some Sequence<String>, removing: some Sequence<String>) {
        guard kind == .range else {
            for text in removing { texts.remove(ExactString(text)) }
            for text in adding { texts.insert(ExactString(text)) }
            return
        }
        ranges.change(adding: adding, removing: removing)
        table = AddressRanges(ranges)
    }

    /// Whether the list matches the text.
    /// - Parameter text: the value of a signal; for `personal` its mark.
    package func contains(_ text: String) -> Bool {
        switch kind {
        case .text, .personal: return texts.contains(ExactString(text))
        case .range: return table.contain(text) ?? false
        case .domain:
            guard !texts.isEmpty, var domain = Self.domain(text)?[...] else { return false }
            while true {
                if texts.contains(ExactString(String(domain))) { return true }
                guard let dot = domain.firstIndex(of: ".") else { return false }
                domain = domain[domain.index(after: dot)...]
            }
        }
    }

    /// An entry as it is stored and compared: a range without host bits, a domain in lower case without the last dot, a
    /// personal value in lower case without spaces around it. Nil for a text that a list of this kind cannot contain.
    package static func normal(_ text: String, _ kind: LiveListKind) -> String? {
        switch kind {
        case .text: return text.isEmpty ? nil : text
        case .domain: return domain(text)
        case .range:
            if let address = CELAddress(text) { return CELNetwork(address: address, prefixLength: address.width).description }
            return CELNetwork(text)?.masked.description
        case .personal:
            let trimmed = personal(text)
            return trimmed.isEmpty ? nil : trimmed
        }
    }

    /// The normal form of a personal value, from which the mark is computed.
    package static func personal(_ text: String) -> String {
        var octets = Array(text.utf8)[...]
        while octets.first == 0x20 { octets.removeFirst() }
        while octets.last == 0x20 { octets.removeLast() }
        return String(decoding: octets.map(\.lowercased), as: UTF8.self)
    }

    private static func domain(_ text: String) -> String? {
        var octets = text.utf8.map(\.lowercased)
        if octets.last == UInt8(ascii: ".") { octets.removeLast() }
        guard (1...253).contains(octets.count) else { return nil }
        let labels = octets.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isHostName = labels.allSatisfy { label in
            (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                && label.allSatisfy {
                    (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                }
        }
        return isHostName ? String(decoding: octets, as: UTF8.self) : nil
    }
}

extension UInt8 {
    fileprivate var lowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
