// Classifies the domain of an inbox: the signal `inbox.domain_class`. The domain itself goes no
// further.

import CEL
import PolicyRules

/// The classes, as policies read them.
package enum DomainClass: String, Sendable, CaseIterable {
    /// A provider where anyone can have an inbox.
    case provider
    /// A service that forwards mail to a person, as this installation does for teams.
    case relay
    /// Temporary mail: anyone can get any number of inboxes, and no one keeps them.
    case disposable
    /// Any other domain: of a company, a school, a person.
    case own

    /// The installation's lists that replace the built-in ones, if they exist and have the kind
    /// `domain`.
    package static let lists: [DomainClass: String] = [
        .relay: "relay_domains", .disposable: "disposable_domains",
    ]

    private static let builtIn: [DomainClass: LiveListEntries] = [
        .provider: LiveListEntries(.domain, DomainLists.providers),
        .relay: LiveListEntries(.domain, DomainLists.relay),
        .disposable: LiveListEntries(.domain, DomainLists.disposable),
    ]

    /// The class of a domain. Relays come first, because lists of disposable domains often contain
    /// them by mistake.
    /// - Parameter replaced: the entries of the installation's own list for a class; nil if it has
    ///   none.
    package static func of(
        _ domain: String, replaced: (DomainClass) -> LiveListEntries? = { _ in nil }
    ) -> DomainClass {
        [.relay, .disposable, .provider].first { kind in
            (replaced(kind) ?? builtIn[kind])?.contains(domain) ?? false
        } ?? .own
    }
}
