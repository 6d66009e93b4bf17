// What the leak check looks for, as plain octets in lower case.

/// The user's addresses, and those that may be there.
package struct LeakNames {
    /// An address of the user that may not leave.
    package struct Inbox: Sendable, Hashable {
        /// UTF-8 in lower case, as it is written or canonical; further spellings are further inboxes.
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

    /// What recognizes a token of the account that has no domain.
    package struct Tokens {
        /// Octets that are in each one.
        package let anchors: [[UInt8]]
        /// Makes a reader for one message: whether the octets around an anchor, at this index of a word, are a token.
        package let reader: () -> ([UInt8], Int) -> Bool

        package init(anchors: [[UInt8]], reader: @escaping () -> ([UInt8], Int) -> Bool) {
            self.anchors = anchors
            self.reader = reader
        }
    }

    package var inboxes: [Inbox]
    /// Bare local parts that give the inbox away.
    package var words: [[UInt8]]
    /// The address by which the team knows the user: `local@domain`.
    package var relayAddress: [UInt8]
    package var relayDomains: [[UInt8]]
    package var tokens: Tokens?
    /// Addresses that the rewriting saw in the typed text: `local@domain`.
    package var seenAddresses: Set<[UInt8]> = []
    /// Whether typed text with more than a few other addresses leaks, whatever they are.
    package var countsAddresses = true
    /// Whether the rewriting looked for bare local parts.
    package var looksForWords = true

    package init(inboxes: [Inbox], words: [[UInt8]] = [], relayAddress: [UInt8], relayDomains: [[UInt8]], tokens: Tokens? = nil) {
        self.inboxes = inboxes
        self.words = words
        self.relayAddress = relayAddress
        self.relayDomains = relayDomains
        self.tokens = tokens
    }
}
