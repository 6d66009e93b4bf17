// The form of the local parts that Postern makes, by purpose: their content and their length.

import Support

extension AddressToken.Purpose {
    /// Lengths of all tokens, in octets.
    static let lengths = Set(allCases.map(\.length)).sorted()

    /// Whether a keyed hash of account and sender is before the MAC.
    var hasSenderHash: Bool { self == .storedForward }

    /// Whether the MAC covers the stored address. Such a MAC can be checked only after the address
    /// is found.
    var isCheckedByAddress: Bool { self == .storedReverse }

    /// Octets between the letter and the MAC.
    var headDigits: Int {
        switch self {
        case .reverse, .storedReverse: TokenMint.accountDigits
        case .forward, .silentForward: TokenMint.returnPathDigits
        case .storedForward: TokenMint.returnPathDigits + TokenMint.storedMACDigits
        case .reply: TokenMint.returnPathDigits + RecipientWitnesses.digits
        }
    }

    var macDigits: Int { isCheckedByAddress ? TokenMint.storedMACDigits : TokenMint.macDigits }

    /// Octets from the key id to the end.
    var length: Int { 2 + headDigits + macDigits }

    /// Whether an address precedes the token.
    var hasAddress: Bool { self == .reverse || self == .forward }
}

extension AddressToken {
    /// The key of a stored token's address: the local part, or key id, letter, account and sender
    /// hash if it has one.
    /// - Parameter localPart: in lower case.
    static func storageKey(_ localPart: String) -> String {
        let text = localPart.utf8
        let purpose = Purpose.storedForward
        guard text.count == purpose.length, text.dropFirst().first == purpose.rawValue,
            Base32.isEncoded(text)
        else {
            return localPart
        }
        let hash = text.dropFirst(2 + TokenMint.returnPathDigits).prefix(TokenMint.storedMACDigits)
        return String(
            decoding: Array(text.prefix(2 + TokenMint.accountDigits)) + hash, as: UTF8.self)
    }
}
