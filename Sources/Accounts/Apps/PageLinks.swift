// The operator's links at the foot of the users' pages.

/// Each is a page or a `mailto:` address; nil for none.
package struct PageLinks: Sendable, Hashable {
    package let help: String?
    package let privacy: String?
    package let terms: String?
    package let imprint: String?

    package static let none = PageLinks()

    package init(
        help: String? = nil, privacy: String? = nil, terms: String? = nil, imprint: String? = nil
    ) {
        (self.help, self.privacy, self.terms, self.imprint) = (help, privacy, terms, imprint)
    }
}
