// What kind of place an inbox is at, by its domain: the signal `inbox.domain_class`. The domain itself goes nowhere.

import CEL
import PolicyRules

/// The kinds, as policies read them.
package enum DomainClass: String, Sendable, CaseIterable {
    /// A provider that anyone can have an inbox at.
    case provider
    /// A service that forwards mail to a person: what this installation is to teams.
    case relay
    /// Mail for a moment: anyone gets as many as they like, and no one keeps them.
    case disposable
    /// Any other domain: of a company, a school, a person.
    case own

    /// The lists of the installation that take the place of those of the program, where they exist with the kind `domain`.
    package static let lists: [DomainClass: String] = [.relay: "relay_domains", .disposable: "disposable_domains"]

    private static let builtIn: [DomainClass: LiveListEntries] = [
        .provider: LiveListEntries(.domain, DomainLists.providers), .relay: LiveListEntries(.domain, DomainLists.relay),
        .disposable: LiveListEntries(.domain, DomainLists.disposable),
    ]

    /// The class of a domain. Relays come first: lists of disposable domains often hold them by mistake.
    /// - Parameter replaced: the entries of the installation's own list for a class; nil where it has none.
    package static func of(_ domain: String, replaced: (DomainClass) -> LiveListEntries? = { _ in nil }) -> DomainClass {
        [.relay, .disposable, .provider].first { kind in
            (replaced(kind) ?? builtIn[kind])?.contains(domain) ?? false
        } ?? .own
    }
}
