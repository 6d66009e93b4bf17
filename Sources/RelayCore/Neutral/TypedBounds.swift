// How many addresses and words typed text holds, so that one reply answers few guesses.

/// The different addresses and words of the typed text of one reply, counted without knowing the user. So one reply answers a
/// bounded number of guesses, whatever its forms make it take for typed.
struct TypedBounds: Sendable {
    /// Different addresses beyond which typed text is treated like quoted text.
    static let addresses = 4
    /// Different words that look like a local part, beyond which none is looked for alone.
    static let words = 16

    /// How the typed text of a reply is treated.
    enum Mode: Sendable {
        /// Addresses and bare local parts of the user are replaced.
        case full
        /// Only addresses are.
        case withoutWords
        /// Every address goes, whoever has it.
        case neutral
    }

    private var seenAddresses: Set<[UInt8]> = []
    private var seenWords: Set<[UInt8]> = []
    /// Words that are seen in links alone.
    private var seenLinked: Set<[UInt8]> = []

    /// - Parameter address: canonical, as it is compared.
    mutating func note(address: [UInt8]) {
        if seenAddresses.count <= Self.addresses { seenAddresses.insert(address) }
    }

    /// - Parameter word: lower case; a word that is no local part of its own does not count.
    mutating func note(word: [UInt8], isLinked: Bool = false) {
        guard Self.counts(word) else { return }
        if isLinked {
            if seenLinked.count <= Self.words { seenLinked.insert(word) }
        } else if seenWords.count <= Self.words {
            seenWords.insert(word)
        }
    }

    /// Whether words in links are looked for: all words count together.
    var readsLinks: Bool { mode == .full && seenWords.union(seenLinked).count <= Self.words }

    /// Whether a word is looked for alone, as a local part: digits with marks between them are dates, times and amounts.
    static func counts(_ word: [UInt8]) -> Bool {
        LocalPartGuard(word) != .none
            && (word.contains { $0.isASCIILetter || $0 >= 0x80 } || word.allSatisfy(\.isASCIIDigit))
    }

    var mode: Mode {
        seenAddresses.count > Self.addresses ? .neutral : seenWords.count > Self.words ? .withoutWords : .full
    }
}
