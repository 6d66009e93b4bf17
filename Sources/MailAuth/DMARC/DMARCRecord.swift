// The DMARC policy record (RFC 9989 sections 4.7 and 4.8).

import InternetMessage

/// A parsed `v=DMARC1` record. Unknown tags are ignored; an invalid known tag gets its default.
package struct DMARCRecord: Sendable, Hashable {
    /// The treatment that a domain requests for mail that does not pass; weakest first.
    package enum Policy: String, Sendable, Hashable, CaseIterable {
        case none, quarantine, reject

        /// One level below, as test mode requires (`t=y`).
        package var lowered: Policy { self == .reject ? .quarantine : .none }
    }

    /// Whether a domain says that it is a public suffix (`psd`).
    package enum PublicSuffix: String, Sendable, Hashable {
        case yes = "y"
        case no = "n"
        case unknown = "u"
    }

    /// `p`; also `none` if it is missing, or if it or another policy is
    /// invalid; see `hasUsablePolicy`.
    package let policy: Policy
    /// `sp`.
    package let subdomainPolicy: Policy?
    /// `np`.
    package let nonexistentPolicy: Policy?
    /// Whether the record requests anything. False if `p` is missing, or `p`, `sp` or `np` is
    /// invalid, and `rua` has no valid URI either. DMARC then does not apply (RFC 9989 section
    /// 4.10.1).
    package let hasUsablePolicy: Bool
    /// `adkim=s`.
    package let strictDKIM: Bool
    /// `aspf=s`.
    package let strictSPF: Bool
    package let publicSuffix: PublicSuffix
    /// `t=y`.
    package let isTesting: Bool
    /// The syntactically valid URIs of `rua`, as written.
    package let aggregateReports: [String]
    /// The syntactically valid URIs of `ruf`, as written.
    package let failureReports: [String]
    /// `fo`, as written; `0` by default.
    package let failureOptions: String

    /// Tags of RFC 7489 that RFC 9989 removed, if the record has them.
    package let endedTags: [String]

    /// Recently read records; nil for a text that is not a DMARC record.
    static let parsed = ParsedRecords<DMARCRecord?>(parse: DMARCRecord.init(parsing:))

    /// The `v` tag, exact except for white space around the equals sign.
    private static let version = Array("DMARC1".utf8)

    /// Parses the text of a TXT record; nil if it does not begin with `v=DMARC1`.
    package init?(parsing text: [UInt8]) {
        let tags = text.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let first = tags.first, first.first != 0x20, first.first != 0x09,
            let version = Self.tag(first),
            version.name == "v", version.value.elementsEqual(Self.version)
        else { return nil }
        // A tag that occurs twice is invalid (RFC 6376 section 3.2). It becomes empty, and an empty
        // value is invalid for every tag.
        var values: [String: String] = [:]
        for tag in tags.dropFirst().compactMap(Self.tag) {
            let isPrintable = tag.value.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            let value = isPrintable ? String(decoding: tag.value, as: UTF8.self) : ""
            values[tag.name] = values[tag.name] == nil ? value : ""
        }
        endedTags = ["pct", "rf", "ri"].filter { values[$0] != nil }
        func word(_ name: String) -> String? { values[name]?.lowercased() }
        func policy(_ name: String) -> Policy? { word(name).flatMap(Policy.init) }

        aggregateReports = Self.uris(values["rua"])
        failureReports = Self.uris(values["ruf"])
        let isInError =
            policy("p") == nil || ["sp", "np"].contains { values[$0] != nil && policy($0) == nil }
        hasUsablePolicy = !isInError || !aggregateReports.isEmpty
        self.policy = isInError ? .none : policy("p") ?? .none
        subdomainPolicy = isInError ? nil : policy("sp")
        nonexistentPolicy = isInError ? nil : policy("np")
        strictDKIM = word("adkim") == "s"
        strictSPF = word("aspf") == "s"
        publicSuffix = word("psd").flatMap(PublicSuffix.init) ?? .unknown
        isTesting = word("t") == "y"
        let options = (word("fo") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        let areKnown = !options.isEmpty && options.allSatisfy { ["0", "1", "d", "s"].contains($0) }
        failureOptions = areKnown ? options.joined(separator: ":") : "0"
    }

    /// The policy for a domain that does not have the record itself.
    package func policyForSubdomain(exists: Bool) -> Policy {
        let general = subdomainPolicy ?? policy
        return exists ? general : nonexistentPolicy ?? general
    }

    /// The tags with a weaker policy for subdomains than `p` for the domain, as written; nil if
    /// there are none.
    package var weakerSubdomains: String? {
        let order: [Policy] = [.none, .quarantine, .reject]
        func rank(_ policy: Policy) -> Int { order.firstIndex(of: policy) ?? 0 }
        let weak = [("sp", subdomainPolicy), ("np", nonexistentPolicy)].compactMap { name, value in
            value.flatMap { rank($0) < rank(policy) ? "\(name)=\($0.rawValue)" : nil }
        }
        return weak.isEmpty ? nil : weak.joined(separator: ", ")
    }

    private static func tag(_ text: ArraySlice<UInt8>) -> (name: String, value: ArraySlice<UInt8>)?
    {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let name = trimmed(text[..<equals])
        guard !name.isEmpty, name.allSatisfy({ (0x61...0x7A).contains($0.asciiLowercased) }) else {
            return nil
        }
        return (
            String(decoding: name.map(\.asciiLowercased), as: UTF8.self),
            trimmed(text[(equals + 1)...])
        )
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
        return text
    }

    /// dmarc-urilist, without entries that are not URIs: a scheme, a colon, and at least one more
    /// character.
    private static func uris(_ list: String?) -> [String] {
        guard let list else { return [] }
        return list.utf8.split(separator: UInt8(ascii: ",")).compactMap { item in
            let uri = trimmed(Array(item)[...])
            guard let colon = uri.firstIndex(of: UInt8(ascii: ":")), colon > uri.startIndex,
                colon + 1 < uri.endIndex,
                !uri.contains(0x20), (0x61...0x7A).contains(uri[uri.startIndex].asciiLowercased),
                uri[..<colon].allSatisfy({
                    (0x61...0x7A).contains($0.asciiLowercased) || (0x30...0x39).contains($0)
                        || "+-.".utf8.contains($0)
                })
            else { return nil }
            return String(decoding: uri, as: UTF8.self)
        }
    }
}
