// The interface to the database engine: only what SQLite and PostgreSQL have in common.

/// The failures that a committed write survives.
package enum Durability: Sendable, Hashable {
    /// All, including a power failure: for data that Postern confirmed to a caller, and for tokens
    /// that mail already contains.
    case durable
    /// A crash of this process, but perhaps not of the machine: for counters, of which the last few
    /// may be lost.
    case relaxed
}

/// The parts of table definitions that differ between engines.
package struct Dialect: Sendable, Hashable {
    /// Replacements for `{id}`, `{int}`, `{bytes}`, `{strict}` and `{clustered}` in migrations, and
    /// for `{clock}` in queries. `{sqlite}` and `{postgresql}` begin a line that is for one engine:
    /// their replacement is empty, or starts a comment.
    package let types: [String: String]

    package init(types: [String: String]) { self.types = types }

    /// The SQL of a migration with this engine's words in place of `{…}`.
    package func translate(_ template: String) -> String {
        var result = ""
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            result += rest[..<open]
            let word = String(rest[rest.index(after: open)..<close])
            result += types[word] ?? "{\(word)}"
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }
}

/// The work of a transaction. If it throws, none of its changes remain.
package typealias TransactionBody<T> = (any DatabaseConnection) throws(StoreFailure) -> T

/// A connection inside a transaction. It is valid only within the closure that gets it, and on that
/// closure's thread.
///
/// An engine prepares each text once per connection, and keeps it with the names of its columns.
package protocol DatabaseConnection: SQLQuerying {
    /// Runs a change and returns the number of changed rows.
    @discardableResult
    func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int

    /// Runs several statements without parameters, separated by semicolons: table definitions.
    func runScript(_ sql: String) throws(StoreFailure)
}

/// A database: many readers and one writer at a time, over several processes or
/// hosts. All calls block.
package protocol Database: SQLQuerying, Sendable {
    var dialect: Dialect { get }

    /// Runs `body` on one consistent snapshot. Concurrent reads run in parallel.
    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// Runs `body` in one transaction: committed when it returns, rolled back when it throws. An
    /// engine may run it again after a serialization failure, so it must have no effect outside the
    /// database.
    @discardableResult
    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// As `write`, but waits for other writers no longer than `timeout`, and then throws `busy`;
    /// nil for the engine's own timeout. An engine whose writers do not wait for each other may
    /// ignore it.
    @discardableResult
    func write<T>(
        _ durability: Durability, timeout: Duration?, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T

    /// As `write`, for a count: a change that reads and writes one row alone, found by its key. It
    /// waits only for other changes of that row, and sees the row as they left it. A concurrent
    /// change that sums such rows may miss it, so no rule may need their exact order.
    @discardableResult
    func writeRow<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T

    /// As `write`, for a change of many rows that would conflict with every small concurrent one.
    /// Other writers wait until it has ended. It should take some ten milliseconds.
    @discardableResult
    func writeAlone<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T

    /// As `write`, for a command that may write many rows for seconds. It runs beside other
    /// writers, and alone only after a conflict. It is repeated for longer than a change that a
    /// request waits for.
    @discardableResult
    func writeAtLength<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T

    /// Ensures that the database's files are still in their place. Throws `unreachable` otherwise.
    func requireInPlace() throws(StoreFailure)

    /// Throws `refused` if the database's server lacks something that Postern relies on, even
    /// though it accepts the statements: locks that exclude, and conflicts that are reported.
    /// Before the first migration it tests only what needs no table.
    func requireEngine() throws(StoreFailure)

    /// A lock that running services share, so that no process can replace the database. Nil if the
    /// engine ensures that itself. Throws `busy` if a process is replacing the database.
    func holdForService() throws(StoreFailure) -> (any DatabaseLock)?

    /// Runs `body` on a database with the contents of this one; none of its changes remain. Other
    /// processes can write at the same time.
    func rehearse<T>(_ body: (any Database) throws(StoreFailure) -> T) throws(StoreFailure) -> T

    /// Takes a lock that only one of all processes and hosts on this database can have; nil if
    /// another one has it. It ends with its process, even if that is killed. Names are lower-case
    /// words with hyphens.
    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)?

    /// How often changes of this process waited for others or were repeated; nil if the engine does
    /// not count it.
    var writerWaits: WriterWaits? { get }

    /// The locks that sessions wait for now; nil if the engine has no server. Blocks for a round
    /// trip.
    func serverWaits() throws(StoreFailure) -> ServerWaits?

    /// The same database for callers that cannot wait long: if connections are few,
    /// some are reserved for them.
    var first: any Database { get }

    /// Ends all connections; later calls fail. Waits for running ones.
    func close() throws(StoreFailure)
}

/// A lock that lasts until it is released, or lost with its connection.
package protocol DatabaseLock: Sendable {
    /// Whether this process still has it. Blocks for a round trip to the server.
    var isHeld: Bool { get }

    /// Releases it; a second call has no effect.
    func release()
}

extension Database {
    /// The store's clock, one for all hosts: milliseconds since 1970.
    package func clock() throws(StoreFailure) -> Int64 {
        try value("SELECT \(raw: dialect.translate("{clock}")) AS now") ?? 0
    }

    package var first: any Database { self }

    package func rows(_ text: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
        try read { connection throws(StoreFailure) in try connection.rows(text, arguments) }
    }

    /// Reads without a time limit: for commands that read whole tables. Otherwise PostgreSQL
    /// cancels a statement that takes longer than a request may, and uses an index even if a
    /// sequential scan is better. Use it only for statements that occur nowhere else, because a
    /// connection keeps their plans.
    package func readAtLength<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try read { connection throws(StoreFailure) in
            try connection.runScript(
                dialect.translate(
                    "{postgresql}SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on"))
            return try body(connection)
        }
    }

    package func rehearse<T>(
        _ body: (any Database) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        try rehearsedInTransaction(body)
    }

    package func write<T>(
        _ durability: Durability, timeout: Duration?, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func writeRow<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func writeAlone<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func writeAtLength<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package var writerWaits: WriterWaits? { nil }

    package func serverWaits() throws(StoreFailure) -> ServerWaits? { nil }

    package func requireInPlace() throws(StoreFailure) {}

    package func requireEngine() throws(StoreFailure) {}

    package func holdForService() throws(StoreFailure) -> (any DatabaseLock)? { nil }
}

/// Shared threads, which write for some callers and read for others.
package enum WriteQueue {
    /// How many of a pool's threads may wait to write for their full timeout. Further changes wait
    /// a moment and are then refused (`busy`), so that threads are left for reads.
    package static let sharedThreads = 32

    /// Whether this thread belongs to a pool for which other callers wait.
    @TaskLocal package static var isOnSharedThread = false
}
