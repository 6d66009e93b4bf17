// The values that Postern reads from the local parts that it makes: reverse addresses and return
// paths.

import InternetMessage

/// A local part made by Postern that is not a relay address: a reverse address or a return path.
///
/// A reverse address is written as `[local=domain.]<key id><letter><account><MAC>` in lower-case
/// base32 after the last dot: readable where the address fits, always authenticated, and useless to
/// any other account. A return path is `<key id><letter>` and sealed (`ReturnPath`).
package struct AddressToken: Sendable, Hashable {
    /// What can be seen of a token without its key.
    package enum Form: UInt8, Sendable, Hashable, CaseIterable {
        /// A reverse address that holds the correspondent.
        case reverse = 0x78  // x
        /// A reverse address whose correspondent is in the table of stored tokens.
        case storedReverse = 0x79  // y
        case returnPath = 0x64  // d
    }

    package enum Purpose: Sendable, Hashable, CaseIterable {
        /// Leads to a correspondent, whose address is in the local part.
        case reverse
        /// Leads to a correspondent, whose address is in the table of stored tokens.
        case storedReverse
        /// Return path of a forward; reports go to the envelope sender, which it holds as a code.
        case forward
        /// Return path of a forward. The envelope sender is in the table of stored tokens, under a
        /// keyed hash that the local part contains.
        case storedForward
        /// Return path of a forward whose envelope sender was not proved: failures are
        /// counted, but no one is notified.
        case silentForward
        /// Return path of a reply: reports go to the account's user.
        case reply

        package var isReverse: Bool { self == .reverse || self == .storedReverse }
    }

    package let purpose: Purpose
    package let account: AccountNumber
    /// The correspondent; nil if it is stored, and for a return path.
    package let address: AddrSpec?
    /// Distinguishes one relayed message from the next; 20 bits. Zero for reverse addresses.
    package let nonce: UInt64
    /// The last day on which a return path is valid, in days since 1970-01-01 UTC. Zero for reverse
    /// addresses.
    package let expiryDay: UInt64
    /// The whole local part in lower case.
    package let localPart: String
    /// The content of a return path, and its head, which begins with `ReturnPath.Kind`. Empty for
    /// reverse addresses.
    let content, head: [UInt8]
    /// The key under which the address is stored; nil if it is not.
    package var storageKey: String? {
        switch purpose {
        case .storedReverse: localPart
        case .storedForward: Self.storageKey(localPart.utf8.first ?? 0, senderHash: content)
        case .reverse, .forward, .silentForward, .reply: nil
        }
    }
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
    package let storageKey: String?

    init(_ localPart: [UInt8], storing address: AddrSpec? = nil, under key: String? = nil) {
        self.localPart = String(decoding: localPart, as: UTF8.self)
        addressToStore = address
        storageKey = address == nil ? nil : key ?? self.localPart
    }
}

/// The result of reading a local part.
package enum TokenReading: Sendable, Hashable {
    /// Does not have the form of a token.
    case notAToken
    /// Has the form of a token, but its MAC is wrong or its key is retired.
    case forged(AddressToken.Form)
    /// Valid, as far as this can be checked without the stored address.
    case token(AddressToken)
    /// Valid: it receives an answer to a verification message.
    case answer(AnswerToken)
    /// Has the form of an answer token, but its MAC is wrong or its key is retired.
    case forgedAnswer
}
