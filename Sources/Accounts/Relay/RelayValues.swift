// The relay's values as the store keeps them.

import Database
import InternetMessage
import MailAuth
import RelayCore

extension AccountNumber {
    /// As in tables, by row number.
    package var stored: Int64 { Int64(rawValue) }

    /// From a row; accounts are numbered from 1. Throws `unexpectedData` for a number that does not
    /// fit into a token.
    init(stored: Int64) throws(StoreFailure) {
        guard let number = UInt64(exactly: stored).flatMap(AccountNumber.init) else {
            throw .permanent(.unexpectedData, "an account has a number that no address can hold")
        }
        self = number
    }
}

extension UserRefusal: SQLBindable, SQLReadable {}

extension DKIMAlgorithm: SQLBindable, SQLReadable {}

extension LimitedDirection {
    /// The counter of the daily limit.
    package var kind: CounterKind { self == .forward ? .forwarded : .replied }
}

extension RelayCounter {
    package var kind: CounterKind {
        switch self {
        case .forwarded: .forwarded
        case .replied: .replied
        case .inboxBounced: .bouncedPermanently
        case .reportRelayed: .reportsRelayed
        case .reportDropped: .reportsDropped
        case .automaticDropped: .automaticDiscarded
        case .leakIncident: .leakIncident
        }
    }
}

extension OutboundSource {
    /// Nil if the source cannot be read: then it proves nothing.
    package var registered: RegisteredSource? {
        let scope: RegisteredSource.Scope? =
            switch kind {
            case .domain: .domain(value)
            case .address: AddrSpec(envelope: value).map { .address($0) }
            }
        return scope.map { RegisteredSource(scope: $0, pairedEnvelopeDomain: envelopeDomain) }
    }
}

extension StoredAddress {
    var purpose: StoredTokenPurpose { expiryDay == nil ? .reverse : .returnPath }
    /// The earliest end of a return path's use, in seconds since 1970. For a reverse address the
    /// repository sets the expiry.
    var expiresAt: Int64? { expiryDay.map { (Int64($0) + 1) * 86_400 } }
}

/// An address that is stored under a token, because it does not fit into one.
package struct StoredToken: Sendable {
    package let accountNumber: Int64
    package let address: AddrSpec
    /// Seconds since 1970.
    package let expiresAt: Int64
}

/// The purpose of a stored token.
package enum StoredTokenPurpose: String, SQLCodable, Sendable, Hashable {
    /// A correspondent's address; kept for a year after the last mail that used it.
    case reverse
    /// A sender's address that reports go back to; kept some days longer than the last return path
    /// that needs it.
    case returnPath = "return"
}
