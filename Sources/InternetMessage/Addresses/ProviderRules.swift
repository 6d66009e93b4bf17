// The rules of mailbox providers for local parts: dots that do not count, tags after a plus.

import Support

/// The spellings of one mailbox, by domain. For an unknown domain, a `+tag` (RFC 5233) is ignored,
/// as nearly all providers do, and everything else counts.
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

    /// Providers that document these rules. Gmail: dots and tags, and googlemail.com is
    /// gmail.com; the others: tags.
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

    /// Domains of one provider at which a name always belongs to the same person. Proton: the owner
    /// of `name@proton.me` also has it at the others. Apple: the owner of `name@mac.com` or
    /// `name@me.com` also has `name@icloud.com`, and no one else can get it.
    private static let ofOnePerson: [[String]] = [
        ["proton.me", "protonmail.com", "pm.me", "protonmail.ch"],
        ["icloud.com", "me.com", "mac.com"],
    ]

    /// Domains of one provider at which a name may belong to different people, but often belongs to
    /// the same person.
    private static let ofOneProvider: [[String]] = [
        [
            "outlook.com", "outlook.de", "outlook.es", "outlook.fr", "outlook.it", "outlook.jp",
            "hotmail.com", "hotmail.co.uk",
            "hotmail.de", "hotmail.es", "hotmail.fr", "hotmail.it", "live.com", "live.co.uk",
            "live.de", "live.fr", "live.it",
            "live.nl", "msn.com", "passport.com",
        ]
    ]

    /// The sister domains of a domain, itself among them; always in the same order.
    ///
    /// They are not in `rules`, as a rule decides how inboxes are stored and looked up.
    /// - Parameter domain: canonical.
    package static func sisters(of domain: String) -> [String] {
        (ofOnePerson + ofOneProvider).first { $0.contains { $0.hasSameOctets(as: domain) } } ?? [
            domain
        ]
    }

    /// Whether two addresses belong to one person: the same mailbox, or the same name at domains of
    /// which one person has both.
    package func areOnePersons(_ one: AddrSpec, _ other: AddrSpec) -> Bool {
        let (one, other) = (canonical(one), canonical(other))
        guard one.localPart.hasSameOctets(as: other.localPart) else { return false }
        return one.domain.hasSameOctets(as: other.domain)
            || Self.ofOnePerson.contains { family in
                [one, other].allSatisfy { address in
                    family.contains { $0.hasSameOctets(as: address.domain) }
                }
            }
    }

    /// The address, folded, with its provider's rules applied. A local part that
    /// would become empty is kept.
    package func canonical(_ address: AddrSpec) -> AddrSpec {
        let address = address.folded
        let rule = rules[address.domain] ?? Self.elsewhere
        var local = address.localPart
        if rule.plusTags, let plus = local.firstIndex(of: "+"), plus > local.startIndex {
            local = String(local[..<plus])
        }
        if rule.ignoresDots {
            let dotless = local.filter { $0 != "." }
            if !dotless.isEmpty { local = dotless }
        }
        return AddrSpec(localPart: local, domain: rule.sameAs ?? address.domain)
    }
}

extension AddrSpec {
    /// The form in which addresses are compared: the local part in lower case, and a valid domain
    /// in lower-case A-labels. By RFC 5321 (section 2.4) only the domain is case-insensitive, but
    /// no provider has two mailboxes that differ only in letter case.
    package var folded: AddrSpec {
        AddrSpec(
            localPart: localPart.foldedIdentity,
            domain: DomainName.toASCII(domain) ?? domain.foldedIdentity)
    }
}
