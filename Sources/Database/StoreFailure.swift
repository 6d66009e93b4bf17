// What can go wrong in the store: temporary failures, permanent failures, and requests that cannot be met.

/// Why the store did not do what it was asked for. Nothing of the transaction remains, and the store throws no other error. Two
/// are equal if their codes are equal, whatever their messages.
package struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure, and its cause.
    package enum Code: Sendable, Hashable {
        /// The store may answer later. In the mail path this is `451 4.3.0`.
        case temporary(Temporary)
        /// The store cannot answer until someone fixes something. In the mail path it gets the same reply as a temporary
        /// failure: mail is never lost because of it.
        case permanent(Permanent)
        /// The store declines the request: the caller can do something about it.
        case refused(Refused)
    }

    package enum Temporary: String, Sendable {
        /// Another process holds the database for longer than the timeout.
        case busy
        /// Reading or writing failed.
        case inputOutput = "input/output"
        /// No space left, or a quota is reached.
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
        /// The file is damaged or not a database.
        case corrupted
        /// It holds nothing of Postern.
        case empty
        /// The database was migrated by a newer program.
        case newerSchema = "newer schema"
        /// A migration that was applied is not the one this program knows: its text was edited since.
        case changedMigration = "changed migration"
        /// A sealed value names a key that the key file lacks, or cannot be opened with it.
        case unsealing
        /// A row is not of the expected shape.
        case unexpectedData = "unexpected data"
        /// A constraint of the schema was violated.
        case constraint
        /// The statement was refused.
        case statement
        /// The database's server does not admit this user, or has no such database.
        case refused
        /// The database may not be written by this user.
        case readOnly = "read only"
        /// A rehearsal has ended: this rolls back its transaction, and no caller sees it.
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
        /// Another change came first: the same again may succeed.
        case overtaken
    }

    package let code: Code
    /// What happened; for a refusal, what is wrong and what to do, in one line. Contains no inbox address; only a refusal may
    /// name anyone.
    package let message: String
    /// What a server says is to be put right; nil if it does not say, and for files.
    package internal(set) var serverFault: ServerFault?

    package static func temporary(_ code: Temporary, _ message: String) -> Self { Self(code: .temporary(code), message: message) }
    package static func permanent(_ code: Permanent, _ message: String) -> Self { Self(code: .permanent(code), message: message) }
    package static func refused(_ code: Refused, _ message: String) -> Self { Self(code: .refused(code), message: message) }

    /// Whether the store may answer later.
    package var isTemporary: Bool { if case .temporary = code { true } else { false } }
    /// Whether the store works, and declines the request.
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
