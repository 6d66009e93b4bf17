// The form of the local parts that Postern makes: their content and their length.

import Support

extension AddressToken.Form {
    /// Lengths of all tokens, in octets.
    static let lengths = Set(allCases.map(\.length)).sorted()

    /// The forms in which the account has the same octets in each token under one key.
    static let ofCorrespondents = [Self.reverse, .storedReverse]

    /// Whether the MAC covers the stored address. Such a MAC can be checked only after the address
    /// is found.
    var isCheckedByAddress: Bool { self == .storedReverse }

    /// Octets from the key id to the end.
    var length: Int {
        switch self {
        case .reverse: 2 + AccountNumber.digits + TokenMint.macDigits
        case .storedReverse: 2 + AccountNumber.digits + TokenMint.storedMACDigits
        case .returnPath: ReturnPath.length
        }
    }

    /// Whether an address precedes the token.
    var hasAddress: Bool { self == .reverse }
}

extension AddressToken.Purpose {
    init(_ kind: ReturnPath.Kind) {
        self =
            switch kind {
            case .forward, .wholeForward: .forward
            case .storedForward: .storedForward
            case .silentForward: .silentForward
            case .reply: .reply
            }
    }
}

extension AddressToken {
    /// The key of the sender of a return path: the id of the key that made it, and the hash of
    /// account and sender.
    static func storageKey(_ id: UInt8, senderHash: some Sequence<UInt8>) -> String {
        String(
            decoding: [id, UInt8(ascii: "s")] + senderHash.prefix(TokenMint.storedMACDigits),
            as: UTF8.self)
    }
}
