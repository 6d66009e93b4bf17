// The values that Postern reads from the local parts that it makes: reverse addresses and return
// paths.

import InternetMessage

/// A local part made by Postern that is not a relay address: a reverse address or a return path.
///
/// Written as
/// `[local=domain.]<key id><purpose><account>[<nonce><expiry>[<recipients>|<sender>]]<MAC>` in
/// lower-case base32 after the last dot: readable where the address fits, always authenticated, and
/// useless to any other account.
package struct AddressToken: Sendable, Hashable {
    /// The letter after the key id.
    package enum Purpose: UInt8, Sendable, Hashable, CaseIterable {
        /// Leads to a correspondent, whose address is in the local part.
        case reverse = 0x78  // x
        /// Leads to a correspondent, whose address is in the table of stored tokens.
        case storedReverse = 0x79  // y
        /// Return path of a forward; reports go to the envelope sender in the local part.
        case forward = 0x64  // d
        /// Return path of a forward. The envelope sender is in the table of stored tokens, under a
        /// keyed hash that the local part contains.
        case storedForward = 0x73  // s
        /// Return path of a forward whose envelope sender was not proved: failures are
        /// counted, but no one is notified.
        case silentForward = 0x6F  // o
        /// Return path of a reply: reports go to the account's user.
        case reply = 0x70  // p

        /// The return paths of forwards.
        static let ofForwards: [Purpose] = [.forward, .storedForward, .silentForward]

        package var isReverse: Bool { self == .reverse || self == .storedReverse }
        package var isStored: Bool { self == .storedReverse || self == .storedForward }
    }

    package let purpose: Purpose
    package let account: AccountNumber
    /// The correspondent or envelope sender; nil if it is stored elsewhere or if there is none.
    package let address: AddrSpec?
    /// Distinguishes one relayed message from the next; 40 bits. Zero for reverse addresses.
    package let nonce: UInt64
    /// The last day on which a return path is valid, in days since 1970-01-01 UTC. Zero for reverse
    /// addresses.
    package let expiryDay: UInt64
    /// The whole local part in lower case.
    package let localPart: String
    /// The key of a stored address: the local part, or those parts of it that identify account and
    /// sender.
    package var storageKey: String { AddressToken.storageKey(localPart) }
}

/// A local part that receives bounces of a verification message, and answers to it, which confirm
/// nothing. It belongs to no account. Its second letter distinguishes it from other tokens.
///
/// Written as `<key id>h<number><nonce><expiry><MAC>` in lower-case base32.
package struct AnswerToken: Sendable, Hashable {
    /// The letter at the position of the purpose in other tokens.
    static let letter: UInt8 = 0x68  // h

    /// Number of the verification, below 2^35.
    package let number: UInt64
    /// 40 bits.
    package let nonce: UInt64
    /// The last day on which it is valid, in days since 1970-01-01 UTC.
    package let expiryDay: UInt64

    package init(number: UInt64, nonce: UInt64, expiryDay: UInt64) {
        self.number = number
        self.nonce = nonce
        self.expiryDay = expiryDay
    }
}

/// A new local part.
package struct MintedToken: Sendable, Hashable {
    package let localPart: String
    /// Set if the local part does not contain the address: store it under `storageKey` before the
    /// mail leaves.
    package let addressToStore: AddrSpec?
    /// As `AddressToken.storageKey`.
    package var storageKey: String { AddressToken.storageKey(localPart) }
}

/// The result of reading a local part.
package enum TokenReading: Sendable, Hashable {
    /// Does not have the form of a token.
    case notAToken
    /// Has the form of a token, but its MAC is wrong or its key is retired.
    case forged(AddressToken.Purpose)
    /// Valid, as far as this can be checked without the stored address.
    case token(AddressToken)
    /// Valid: it receives an answer to a verification message.
    case answer(AnswerToken)
    /// Has the form of an answer token, but its MAC is wrong or its key is retired.
    case forgedAnswer
}
