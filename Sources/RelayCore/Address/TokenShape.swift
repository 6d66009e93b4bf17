// How the local parts that Postern makes are written, by the letter after the key id: what they hold, and their length.

import Support

/// How the tokens of one letter are written.
struct TokenShape: Sendable, Hashable {
    /// When tokens of this shape are, or were, made.
    enum Generation: Sendable, Hashable {
        case current
        /// A stored return path without a hash of its sender. Its row is found by the whole local part, so each message wrote a
        /// row. Valid until it expires. No longer made.
        case unhashed
        /// Holds the account's unpermuted number, as tokens did before the numbers were permuted. Valid until its key is
        /// retired. No longer made.
        case serial
    }

    let purpose: AddressToken.Purpose
    let generation: Generation
    /// The letter behind the key id.
    let letter: UInt8

    /// All shapes.
    static let all =
        AddressToken.Purpose.allCases.map { TokenShape($0) }
        + [TokenShape(.storedForward, .unhashed, letter: UInt8(ascii: "e"))]
        + AddressToken.Purpose.allCases.map { TokenShape($0, .serial, letter: $0.serialLetter) }

    /// All lengths, in octets.
    static let lengths = Set(all.map(\.length)).sorted()

    /// The shape of new tokens.
    init(_ purpose: AddressToken.Purpose) { self.init(purpose, .current, letter: purpose.rawValue) }

    /// Nil for a letter of no address token.
    init?(letter: UInt8) {
        if let purpose = AddressToken.Purpose(rawValue: letter) {
            self.init(purpose)
        } else if let shape = Self.all.first(where: { $0.letter == letter }) {
            self = shape
        } else {
            return nil
        }
    }

    private init(_ purpose: AddressToken.Purpose, _ generation: Generation, letter: UInt8) {
        self.purpose = purpose
        self.generation = generation
        self.letter = letter
    }

    /// Whether it holds the account's unpermuted number.
    var isSerial: Bool { generation == .serial }

    /// Whether a keyed hash of account and sender is before the MAC.
    var hasSenderHash: Bool { purpose == .storedForward && generation == .current }

    /// Whether the MAC covers the stored address, so that it cannot be checked before the address is found.
    var isCheckedByAddress: Bool { purpose.isStored && !hasSenderHash }

    /// Octets between the letter and the MAC.
    var headDigits: Int {
        if purpose.isReverse { return TokenMint.accountDigits }
        let recipients = purpose == .reply && generation == .current ? RecipientWitnesses.digits : 0
        return TokenMint.returnPathDigits + recipients + (hasSenderHash ? TokenMint.storedMACDigits : 0)
    }

    var macDigits: Int { isCheckedByAddress ? TokenMint.storedMACDigits : TokenMint.macDigits }

    /// Octets from the key id to the end.
    var length: Int { 2 + headDigits + macDigits }

    /// Whether an address precedes the token.
    var hasAddress: Bool { purpose == .reverse || purpose == .forward }

    /// The key of a stored token's address: the local part, or key id, letter, account and sender hash where it has one.
    /// - Parameter localPart: in lower case.
    static func storageKey(_ localPart: String) -> String {
        let text = localPart.utf8
        let shape = TokenShape(.storedForward)
        guard text.count == shape.length, text.dropFirst().first == shape.letter, Base32.isEncoded(text) else { return localPart }
        let hash = text.dropFirst(2 + TokenMint.returnPathDigits).prefix(TokenMint.storedMACDigits)
        return String(decoding: Array(text.prefix(2 + TokenMint.accountDigits)) + hash, as: UTF8.self)
    }
}

extension AddressToken.Purpose {
    /// The letter of tokens in which the account's number is unpermuted.
    fileprivate var serialLetter: UInt8 {
        switch self {
        case .reverse: UInt8(ascii: "v")
        case .storedReverse: UInt8(ascii: "w")
        case .forward: UInt8(ascii: "f")
        case .storedForward: UInt8(ascii: "g")
        case .silentForward: UInt8(ascii: "n")
        case .reply: UInt8(ascii: "r")
        }
    }
}
