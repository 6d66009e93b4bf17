// The number that identifies an account in tokens.

/// An account's number: below 2^35, so that it fits seven base32 characters. It has no meaning
/// outside this installation.
package struct AccountNumber: Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt64

    /// Nil from 2^35 on.
    package init?(_ rawValue: UInt64) {
        guard rawValue < 1 << 35 else { return nil }
        self.rawValue = rawValue
    }

    /// The highest number; the accounts of a store are numbered from 1.
    package static let highest = AccountNumber(unchecked: (1 << 35) - 1)

    /// Base32 characters of a number.
    static let digits = 7

    private init(unchecked rawValue: UInt64) { self.rawValue = rawValue }

    package var description: String { "account \(rawValue)" }
}
