// The entries of one live list in memory: searched for every decision, updated from the store.

import Support

/// A value type. Every change rebuilds the search table, so combine changes.
///
/// Memory for 1,000,000 entries: 16 octets each for IPv4 ranges (64 for IPv6), some 50 and the text
/// for texts and domains.
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

    /// Adds and removes entries in their normal form; an entry in both
    /// arguments is in the list afterwards.
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

    /// An entry as it is stored and compared: a range without host bits, a domain in lower-case
    /// A-labels without the last dot, or the result of `personal`. Nil for a text that a list of
    /// this kind cannot contain.
    package static func normal(_ text: String, _ kind: LiveListKind) -> String? {
        switch kind {
        case .text: return text.isEmpty ? nil : text
        case .domain: return domain(text).flatMap { CELAddress($0) == nil ? $0 : nil }
        case .range:
            if let address = CELAddress(text) {
                return CELNetwork(address: address, prefixLength: address.width).description
            }
            return CELNetwork(text)?.masked.description
        case .personal:
            let trimmed = personal(text)
            return trimmed.isEmpty || isBrokenAddress(trimmed) ? nil : trimmed
        }
    }

    /// Every entry that matches a value, both in their normal form. For a range these are the
    /// entries that contain all of it, the widest last.
    package static func normalEntries(thatMatch normal: String, _ kind: LiveListKind) -> [String] {
        switch kind {
        case .text, .personal: return [normal]
        case .range:
            guard let network = CELNetwork(normal) else { return [] }
            return (0...network.prefixLength).reversed().map {
                CELNetwork(address: network.address, prefixLength: $0).masked.description
            }
        case .domain:
            var (domain, found) = (normal[...], [normal])
            while let dot = domain.utf8.firstIndex(of: UInt8(ascii: ".")) {
                domain = domain[domain.index(after: dot)...]
                found.append(String(domain))
            }
            return found
        }
    }

    /// Whether a personal value in its normal form is an email address or a phone
    /// number, and not another text.
    package static func isAddressOrNumber(_ normal: String) -> Bool {
        let octets = Array(normal.utf8)
        if octets.contains(UInt8(ascii: "@")) {
            return octets.count { $0 == UInt8(ascii: "@") } == 1
                && octets.first != UInt8(ascii: "@")
                && !octets.starts(with: "mailto:".utf8)
        }
        return phoneNumber(octets[...]).map { Array($0.utf8) == octets } ?? false
    }

    /// A domain in lower-case A-labels. Full-width letters, digits and hyphens become the ASCII
    /// ones, as in IDNA.
    private static func domain(_ text: String) -> String? {
        guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { return DomainName.toASCII(text) }
        var narrow = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isWide = (0xFF01...0xFF5E).contains(scalar.value)
            narrow.append(isWide ? Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar : scalar)
        }
        return DomainName.toASCII(String(narrow))
    }

    /// The normal form of a personal value, from which the mark is computed. It is in lower case
    /// without spaces around it; the domain of an email address is in A-labels, and a phone number
    /// is its digits.
    package static func personal(_ text: String) -> String {
        var octets = Array(text.utf8)[...]
        while octets.first == 0x20 { octets.removeFirst() }
        while octets.last == 0x20 { octets.removeLast() }
        if let at = octets.lastIndex(of: UInt8(ascii: "@")),
            let domain = DomainName.toASCII(String(decoding: octets[(at + 1)...], as: UTF8.self))
        {
            return String(decoding: octets[...at].map(\.asciiLowercased), as: UTF8.self) + domain
        }
        return phoneNumber(octets) ?? String(decoding: octets.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Whether a text has an `@` but is not a valid email address, such as a whole line of a table.
    private static func isBrokenAddress(_ text: String) -> Bool {
        let octets = Array(text.utf8)
        guard let at = octets.lastIndex(of: UInt8(ascii: "@")) else { return false }
        let isSeparated = octets[..<at].contains {
            $0 <= 0x20 || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";")
        }
        return isSeparated && octets.first != UInt8(ascii: "\"")
            || DomainName.toASCII(String(decoding: octets[(at + 1)...], as: UTF8.self)) == nil
    }

    /// The digits of a phone number, with a `+` for an international one; nil for other texts. In
    /// most countries, people dial `00` for the `+`.
    private static func phoneNumber(_ octets: ArraySlice<UInt8>) -> String? {
        let between = [UInt8](" -.()/".utf8)
        var rest = octets
        if rest.prefix(4).elementsEqual("tel:".utf8) { rest = rest.dropFirst(4) }
        let isInternational = rest.first == UInt8(ascii: "+")
        if isInternational { rest = rest.dropFirst() }
        guard rest.allSatisfy({ $0.isASCIIDigit || between.contains($0) }) else { return nil }
        var digits = rest.filter(\.isASCIIDigit)[...]
        let isDialled = !isInternational && digits.starts(with: "00".utf8)
        if isDialled { digits = digits.dropFirst(2) }
        // E.164 has 15 at most.
        guard (7...15).contains(digits.count) else { return nil }
        return (isInternational || isDialled ? "+" : "") + String(decoding: digits, as: UTF8.self)
    }
}
