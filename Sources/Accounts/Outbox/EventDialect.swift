// The form in which an endpoint gets its events.

import Database

/// The raw values are used in databases and in commands.
package enum EventDialect: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// Apple's server-to-server notifications, as they were until 2025.
    case apple
    /// The same, with `account-deleted` and `exp`, as Apple sends them since 2025.
    case apple2025 = "apple-2025"
    /// Security event tokens of the OpenID Shared Signals Framework 1.0: a stream.
    case sharedSignals = "ssf"
}
