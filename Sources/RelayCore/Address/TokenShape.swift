// How local parts that Postern makes are written, by the letter behind the key id: what is in them, and how long they are.

import Support

/// How the tokens of one letter are written.
struct TokenShape: Sendable, Hashable {
    /// When tokens are, or were, written so.
    enum Generation: Sendable, Hashable {
        case current
        /// A stored return path without a hash of its sender: its row is found by the whole local part, so that each message
        /// wrote one. Good until it expires. None is made any more.
        case unhashed
        /// The account's number is in it unpermuted: so it was until the numbers were permuted, and such tokens are good until
        /// their key is retired. None is made any more.
        case serial
    }

    let purpose: AddressToken.Purpose
    let generation: Generation
    /// The letter behind the key id.
    let letter: UInt8

    /// Every one there is.
    static let all =
        AddressToken.Purpose.allCases.map { TokenShape($0) }
        + [TokenShape(.storedForward, .unhashed, letter: UInt8(ascii: "e"))]
        + AddressToken.Purpose.allCases.map { TokenShape($0, .serial, letter: $0.serialLetter) }

    /// Every length there is, in octets.
    static let lengths = Set(all.map(\.length)).sorted()

    /// As tokens are written now.
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

    /// Whether the account's number is in it unpermuted.
    var isSerial: Bool { generation == .serial }

    /// Whether a keyed hash of account and sender is before the MAC.
    var hasSenderHash: Bool { purpose == .storedForward && generation == .current }

    /// Whether the MAC is over the stored address, so that it cannot be checked before that is found.
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

    /// Whether an address is before it.
    var hasAddress: Bool { purpose == .reverse || purpose == .forward }

    /// What the address of a stored token is found under: the local part, or key id, letter, account and hash where it has one.
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
