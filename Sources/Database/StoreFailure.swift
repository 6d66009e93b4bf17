// Errors of the store: temporary failures, permanent failures, and refused requests.

/// The reason why the store did not fulfil a request. No change of the transaction remains, and the
/// store throws no other type of error. Two failures are equal if their codes are equal, even if
/// their messages differ.
package struct StoreFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure, with its cause.
    package enum Code: Sendable, Hashable {
        /// The store may answer later. In the mail path this is `451 4.3.0`.
        case temporary(Temporary)
        /// The store cannot answer until a person fixes the cause. In the mail path it gets the
        /// same reply as a temporary failure, so that mail is never lost because of it.
        case permanent(Permanent)
        /// The store refuses the request: the caller can change something about it.
        case refused(Refused)
    }

    package enum Temporary: String, Sendable {
        /// Another process locks the database for longer than the timeout.
        case busy
        /// Reading or writing failed.
        case inputOutput = "input/output"
        /// No space left, or a quota is reached.
        case diskFull = "disk full"
        /// The database cannot be opened or reached.
        case unreachable
        /// The database's server does not answer, or none of its hosts accepts writes.
        case away = "server away"
        /// This process has an older key file than the one for new values.
        case staleKeys = "stale keys"
        /// Out of memory or another resource.
        case resources
    }

    package enum Permanent: String, Sendable {
        /// The file is damaged or not a database.
        case corrupted
        /// The database has no tables of Postern.
        case empty
        /// The database was migrated by a newer program.
        case newerSchema = "newer schema"
        /// An applied migration differs from the one in this program: its text was edited since.
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
        /// This user may not write to the database.
        case readOnly = "read only"
        /// A rehearsal has ended: this rolls back its transaction, and no caller sees it.
        case rehearsed
    }

    package enum Refused: String, Sendable {
        /// The team, user or other object does not exist.
        case notFound = "not found"
        /// The object exists already.
        case exists
        /// The value is malformed, or not allowed in this place.
        case invalid
        /// A defined maximum is reached.
        case limit
        /// A prerequisite is missing, such as a verified inbox.
        case unmet
        /// An administrator froze the user or the team.
        case frozen
        /// Another change came first: a repetition may succeed.
        case overtaken
    }

    package let code: Code
    /// A description of the failure, in one line. For a refusal it says what is wrong and what to
    /// do. It contains no inbox address, and only a refusal may name a user or team.
    package let message: String
    /// The fault to be fixed at the server; nil if the server does not name one, and for files.
    package internal(set) var serverFault: ServerFault?

    package static func temporary(_ code: Temporary, _ message: String) -> Self {
        Self(code: .temporary(code), message: message)
    }
    package static func permanent(_ code: Permanent, _ message: String) -> Self {
        Self(code: .permanent(code), message: message)
    }
    package static func refused(_ code: Refused, _ message: String) -> Self {
        Self(code: .refused(code), message: message)
    }

    /// Whether the store may answer later.
    package var isTemporary: Bool { if case .temporary = code { true } else { false } }
    /// Whether the store works, but refuses the request.
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
