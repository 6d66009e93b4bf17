// What can go wrong in the store: trouble that passes, trouble that stays, and requests that cannot be met.

/// Why the store did not do what it was asked for. Nothing of the transaction remains, and no other error leaves the store.
/// Two are equal where their codes are, whatever their messages say.
package struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether it passes, and what it is.
    package enum Code: Sendable, Hashable {
        /// The store may answer later. On the path of mail this is `451 4.3.0`.
        case temporary(Temporary)
        /// The store cannot answer until someone fixes something. On the path of mail it is answered like the temporary one: mail
        /// is never lost for it.
        case permanent(Permanent)
        /// The store declines the request: the caller can do something about it.
        case refused(Refused)
    }

    package enum Temporary: String, Sendable {
        /// Another process holds the database for longer than the timeout.
        case busy
        /// Reading or writing failed.
        case inputOutput = "input/output"
        /// No room left, or a quota is reached.
        case diskFull = "disk full"
        /// The database cannot be opened or reached.
        case unreachable
        /// The database's server does not answer, or none of its hosts takes writes.
        case away = "server away"
        /// This process has an older key file than the one that new values are made with.
        case staleKeys = "stale keys"
        /// Out of memory or another resource.
        case resources
    }

    package enum Permanent: String, Sendable {
        /// The file is damaged or no database.
        case corrupted
        /// The database was migrated by a newer program.
        case newerSchema = "newer schema"
        /// A migration that was applied is not the one this program knows.
        case changedMigration = "changed migration"
        /// The database has not been migrated to the version this program needs.
        case olderSchema = "older schema"
        /// A sealed value names a key that the key file lacks, or does not open with it.
        case unsealing
        /// A row is not of the expected shape.
        case unexpectedData = "unexpected data"
        /// A constraint of the schema was violated.
        case constraint
        /// The statement was refused.
        case statement
        /// The database's server does not let this user in, or has no such database.
        case refused
        /// The database may not be written by this user.
        case readOnly = "read only"
        /// A rehearsal has ended: its transaction is rolled back with this, which no caller sees.
        case rehearsed
    }

    package enum Refused: String, Sendable {
        /// No such team, user, …
        case notFound = "not found"
        /// It exists already.
        case exists
        /// The value is malformed or not allowed there.
        case invalid
        /// A stated maximum is reached.
        case limit
        /// What it depends on is missing, such as a verified inbox.
        case unmet
    }

    package let code: Code
    /// What happened; of a refusal, what is wrong and what to do, in one line. Holds no inbox address; only that of a refusal may
    /// name anyone.
    package let message: String

    package static func temporary(_ code: Temporary, _ message: String) -> Self { Self(code: .temporary(code), message: message) }
    package static func permanent(_ code: Permanent, _ message: String) -> Self { Self(code: .permanent(code), message: message) }
    package static func refused(_ code: Refused, _ message: String) -> Self { Self(code: .refused(code), message: message) }

    /// Whether the store may answer later.
    package var isTemporary: Bool { if case .temporary = code { true } else { false } }
    /// Whether the store is well, and declines the request.
    package var isRefusal: Bool { if case .refused = code { true } else { false } }

    package static func == (first: Self, second: Self) -> Bool { first.code == second.code }
    package func hash(into hasher: inout Hasher) { hasher.combine(code) }

    package var description: String {
        switch code {
        case .temporary(let code): "the store is unavailable (\(code.rawValue)): \(message)"
        case .permanent(let code): "\(message) (\(code.rawValue))"
        case .refused: message
        }
    }
}
