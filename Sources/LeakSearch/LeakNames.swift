// The names that the leak check searches for, as plain octets in lower case.

/// The user's addresses, and the addresses that may be in a reply.
package struct LeakNames {
    /// An address of the user that must not leave.
    package struct Inbox: Sendable, Hashable {
        /// UTF-8 in lower case, as written or canonical. Other spellings are separate inboxes.
        package let local: [UInt8]
        package let domain: [UInt8]
        /// Whether the provider ignores dots in local parts.
        package let ignoresDots: Bool

        package init(local: [UInt8], domain: [UInt8], ignoresDots: Bool = false) {
            self.local = local
            self.domain = domain
            self.ignoresDots = ignoresDots
        }
    }

    /// The data that identifies a token of the account without its domain.
    package struct Tokens {
        /// Octets that every token contains.
        package let anchors: [[UInt8]]
        /// Makes a reader for one message. The reader decides whether the octets around an anchor,
        /// at this index of a word, are a token.
        package let reader: () -> ([UInt8], Int) -> Bool

        package init(anchors: [[UInt8]], reader: @escaping () -> ([UInt8], Int) -> Bool) {
            self.anchors = anchors
            self.reader = reader
        }
    }

    package var inboxes: [Inbox]
    /// Bare local parts that reveal the inbox.
    package var words: [[UInt8]]
    /// The address that the team knows: `local@domain`.
    package var relayAddress: [UInt8]
    package var relayDomains: [[UInt8]]
    package var tokens: Tokens?
    /// Addresses that the rewriting saw in the typed text: `local@domain`.
    package var seenAddresses: Set<[UInt8]> = []
    /// Whether typed text with more than a few other addresses is a leak, regardless of their
    /// owners.
    package var countsAddresses = true
    /// Whether the rewriting searched for bare local parts.
    package var looksForWords = true

    package init(
        inboxes: [Inbox], words: [[UInt8]] = [], relayAddress: [UInt8], relayDomains: [[UInt8]],
        tokens: Tokens? = nil
    ) {
        self.inboxes = inboxes
        self.words = words
        self.relayAddress = relayAddress
        self.relayDomains = relayDomains
        self.tokens = tokens
    }
}
