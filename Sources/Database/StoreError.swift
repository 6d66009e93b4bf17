// What can go wrong in the store: trouble that passes, trouble that stays, and requests that cannot be met.

/// The store cannot answer now and may answer later: locked, disk full, input/output trouble, connection lost.
/// On the path of mail this is `451 4.3.0`.
package struct TemporaryStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }
        /// Another process holds the database for longer than the timeout.
        package static let busy = Code(rawValue: "busy")
        /// Reading or writing failed.
        package static let inputOutput = Code(rawValue: "input/output")
        /// No room left, or a quota is reached.
        package static let diskFull = Code(rawValue: "disk full")
        /// The database cannot be opened or reached.
        package static let unreachable = Code(rawValue: "unreachable")
        /// The database's server does not answer, or none of its hosts takes writes.
        package static let away = Code(rawValue: "server away")
        /// This process has an older key file than the one that new values are made with.
        package static let staleKeys = Code(rawValue: "stale keys")
        /// Out of memory or another resource.
        package static let resources = Code(rawValue: "resources")
    }
    package let code: Code
    /// What happened; holds no address and no name.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "the store is unavailable (\(code.rawValue)): \(message)" }
}

/// The store cannot answer until someone fixes something: corruption, a wrong key file, a newer schema, a fault of ours.
/// On the path of mail it is answered like the temporary one: mail is never lost for it.
package struct PermanentStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }
        /// The file is damaged or no database.
        package static let corrupted = Code(rawValue: "corrupted")
        /// The database was migrated by a newer program.
        package static let newerSchema = Code(rawValue: "newer schema")
        /// A migration that was applied is not the one this program knows.
        package static let changedMigration = Code(rawValue: "changed migration")
        /// The database has not been migrated to the version this program needs.
        package static let olderSchema = Code(rawValue: "older schema")
        /// A sealed value names a key that the key file lacks, or does not open with it.
        package static let unsealing = Code(rawValue: "unsealing")
        /// A row is not of the expected shape.
        package static let unexpectedData = Code(rawValue: "unexpected data")
        /// A constraint of the schema was violated.
        package static let constraint = Code(rawValue: "constraint")
        /// The statement was refused.
        package static let statement = Code(rawValue: "statement")
        /// The database's server does not let this user in, or has no such database.
        package static let refused = Code(rawValue: "refused")
        /// The database may not be written by this user.
        package static let readOnly = Code(rawValue: "read only")
    }
    package let code: Code
    /// What happened; holds no address and no name.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(message) (\(code.rawValue))" }
}

/// A request that the store declines unchanged: the asker can do something about it.
package struct StoreRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }
        /// No such team, user, …
        package static let notFound = Code(rawValue: "not found")
        /// It exists already.
        package static let exists = Code(rawValue: "exists")
        /// The value is malformed or not allowed there.
        package static let invalid = Code(rawValue: "invalid")
        /// A stated maximum is reached.
        package static let limit = Code(rawValue: "limit")
        /// What it depends on is missing, such as a verified inbox.
        package static let unmet = Code(rawValue: "unmet")
    }
    package let code: Code
    /// What is wrong and what to do, in one line; holds no inbox address.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
