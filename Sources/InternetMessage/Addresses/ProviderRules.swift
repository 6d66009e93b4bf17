// How mailbox providers treat local parts: dots that do not count, tags after a plus.

import Support

/// The spellings that reach one mailbox, by domain. For an unknown domain, a `+tag` (RFC 5233) is ignored, as nearly
/// everywhere, and everything else counts.
package struct ProviderRules: Sendable, Hashable {
    /// The rules of one domain.
    package struct Rule: Sendable, Hashable {
        /// Dots in the local part do not count (`a.b` and `ab` are one mailbox).
        package let ignoresDots: Bool
        /// Everything from the first `+` does not count.
        package let plusTags: Bool
        /// The domain of which this one is an alias; nil if it is not an alias.
        package let sameAs: String?

        package init(ignoresDots: Bool, plusTags: Bool, sameAs: String? = nil) {
            self.ignoresDots = ignoresDots
            self.plusTags = plusTags
            self.sameAs = sameAs
        }
    }

    private static let elsewhere = Rule(ignoresDots: false, plusTags: true)

    /// By domain in lower case.
    package let rules: [String: Rule]

    package init(_ rules: [String: Rule]) { self.rules = rules }

    /// Providers that document these rules. Gmail: dots and tags, and googlemail.com is gmail.com; the others: tags.
    package static let standard = ProviderRules([
        "gmail.com": Rule(ignoresDots: true, plusTags: true),
        "googlemail.com": Rule(ignoresDots: true, plusTags: true, sameAs: "gmail.com"),
        "outlook.com": Rule(ignoresDots: false, plusTags: true),
        "hotmail.com": Rule(ignoresDots: false, plusTags: true),
        "live.com": Rule(ignoresDots: false, plusTags: true),
        "icloud.com": Rule(ignoresDots: false, plusTags: true),
        "fastmail.com": Rule(ignoresDots: false, plusTags: true),
        "proton.me": Rule(ignoresDots: false, plusTags: true),
        "protonmail.com": Rule(ignoresDots: false, plusTags: true),
    ])

    /// The address, folded, with its provider's rules applied. A local part that would become empty is kept.
    package func canonical(_ address: AddrSpec) -> AddrSpec {
        let address = address.folded
        let rule = rules[address.domain] ?? Self.elsewhere
        var local = address.localPart
        if rule.plusTags, let plus = local.firstIndex(of: "+"), plus > local.startIndex { local = String(local[..<plus]) }
        if rule.ignoresDots {
            let dotless = local.filter { $0 != "." }
            if !dotless.isEmpty { local = dotless }
        }
        return AddrSpec(localPart: local, domain: rule.sameAs ?? address.domain)
    }
}

extension AddrSpec {
    /// How addresses are compared: the local part in lower case, the domain, if it is valid, in lower-case A-labels. Only the
    /// domain is case-insensitive by RFC 5321 (section 2.4), but no provider keeps two mailboxes that differ in letter case.
    package var folded: AddrSpec {
        AddrSpec(localPart: localPart.lowercased(), domain: DomainName.toASCII(domain) ?? domain.lowercased())
    }
}
