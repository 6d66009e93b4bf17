// What the local parts that Postern makes say, once read: the values of reverse addresses and return paths.

import InternetMessage

/// A local part that is no relay address but one of ours: a reverse address or a return path.
///
/// Written as `[local=domain.]<key id><purpose><account>[<nonce><expiry>]<MAC>` in lower-case base32 after the last dot:
/// readable where the address fits, authenticated always, and worth nothing to any account but its own.
package struct AddressToken: Sendable, Hashable {
    package enum Purpose: UInt8, Sendable, Hashable {
        /// Leads to a correspondent, whose address is in the local part.
        case reverse = 0x76  // v
        /// Leads to a correspondent, whose address is in the table of stored tokens.
        case storedReverse = 0x77  // w
        /// Return path of a forward; reports go to the envelope sender in the local part.
        case forward = 0x66  // f
        /// Return path of a forward; the envelope sender is in the table of stored tokens.
        case storedForward = 0x67  // g
        /// Return path of a forward whose envelope sender was not proved: failures are counted, nobody is written to.
        case silentForward = 0x6E  // n
        /// Return path of a reply: reports go to the account's user.
        case reply = 0x72  // r

        package var isReverse: Bool { self == .reverse || self == .storedReverse }
        package var isStored: Bool { self == .storedReverse || self == .storedForward }
    }

    package let purpose: Purpose
    package let account: AccountNumber
    /// The correspondent or envelope sender; nil where it is stored elsewhere or where there is none.
    package let address: AddrSpec?
    /// Distinguishes one relayed message from the next; 40 bits. Zero for reverse addresses.
    package let nonce: UInt64
    /// The last day, in days since 1970-01-01 UTC, on which a return path is good. Zero for reverse addresses.
    package let expiryDay: UInt64
    /// The whole local part in lower case: the key under which a stored address is found.
    package let localPart: String
}

/// A local part that an answer to a verification message comes to: no account's, and told from the others by its second letter.
///
/// Written as `<key id>c<number><nonce><expiry><MAC>` in lower-case base32.
package struct AnswerToken: Sendable, Hashable {
    /// The letter that stands where other tokens have their purpose.
    static let letter: UInt8 = 0x63  // c

    /// Number of the verification, below 2^35.
    package let number: UInt64
    /// 40 bits.
    package let nonce: UInt64
    /// The last day, in days since 1970-01-01 UTC, on which it is good.
    package let expiryDay: UInt64

    package init(number: UInt64, nonce: UInt64, expiryDay: UInt64) {
        self.number = number
        self.nonce = nonce
        self.expiryDay = expiryDay
    }
}

/// A freshly made local part.
package struct MintedToken: Sendable, Hashable {
    package let localPart: String
    /// Set where the local part does not hold the address: to be stored under `localPart` before the mail leaves.
    package let addressToStore: AddrSpec?
}

/// What a local part turned out to be.
package enum TokenReading: Sendable, Hashable {
    /// Not written as a token at all.
    case notAToken
    /// Written as a token; its MAC is wrong or its key is retired.
    case forged(AddressToken.Purpose)
    /// Right, as far as can be told without the stored address.
    case token(AddressToken)
    /// Right: an answer to a verification message comes to it.
    case answer(AnswerToken)
    /// Written as one of those; its MAC is wrong or its key is retired.
    case forgedAnswer
}
