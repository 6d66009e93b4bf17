// Limits the addresses and words in typed text, so that one reply can confirm only a few guesses.

/// The different addresses and words in the typed text of one reply, counted without data about the
/// user. So one reply can confirm only a limited number of guesses, even if its form makes the
/// relay take all of it for typed text.
struct TypedBounds: Sendable {
    /// Maximum different addresses. Beyond this number, typed text is treated like quoted text.
    static let addresses = 4
    /// Maximum different words that look like a local part. Beyond this number, no word alone is
    /// searched for.
    static let words = 16

    /// How the typed text of a reply is treated.
    enum Mode: Sendable {
        /// Addresses and bare local parts of the user are replaced.
        case full
        /// Only addresses are replaced.
        case withoutWords
        /// Every address is removed, of any owner.
        case neutral
    }

    private var seenAddresses: Set<[UInt8]> = []
    private var seenWords: Set<[UInt8]> = []
    /// Words that were seen only in links.
    private var seenLinked: Set<[UInt8]> = []

    /// - Parameter address: in the canonical form used for comparison.
    mutating func note(address: [UInt8]) {
        if seenAddresses.count <= Self.addresses { seenAddresses.insert(address) }
    }

    /// - Parameter word: lower case. A word that cannot be a local part does not count.
    mutating func note(word: [UInt8], isLinked: Bool = false) {
        guard Self.counts(word) else { return }
        if isLinked {
            if seenLinked.count <= Self.words { seenLinked.insert(word) }
        } else if seenWords.count <= Self.words {
            seenWords.insert(word)
        }
    }

    /// Whether words in links are searched for. All words count together.
    var readsLinks: Bool { mode == .full && seenWords.union(seenLinked).count <= Self.words }

    /// Whether a word alone may be a local part. Digits with marks between them do not count: they
    /// are dates, times and amounts.
    static func counts(_ word: [UInt8]) -> Bool {
        LocalPartGuard(word) != .none
            && (word.contains { $0.isASCIILetter || $0 >= 0x80 } || word.allSatisfy(\.isASCIIDigit))
    }

    var mode: Mode {
        seenAddresses.count > Self.addresses
            ? .neutral : seenWords.count > Self.words ? .withoutWords : .full
    }
}
