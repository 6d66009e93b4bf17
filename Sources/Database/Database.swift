// The interface to the database engine: only what SQLite and PostgreSQL have in common.

/// What a committed write survives.
package enum Durability: Sendable, Hashable {
    /// Everything, including a power failure: for everything that a caller was told, and for tokens that mail already contains.
    case durable
    /// A crash of this process, but perhaps not of the machine: for counters, where the last few may be lost.
    case relaxed
}

/// What differs between engines in table definitions.
package struct Dialect: Sendable, Hashable {
    /// Replacements for `{id}`, `{int}`, `{bytes}`, `{strict}` and `{clustered}` in migrations, for `{clock}` in queries, and
    /// for `{sqlite}` and `{postgresql}`, before a line that is for one engine: nothing, or the start of a comment.
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

/// What runs in a transaction. If it throws, nothing of it remains.
package typealias TransactionBody<T> = (any DatabaseConnection) throws(StoreFailure) -> T

/// A connection inside a transaction. Valid only within the closure that it is passed to, and on its thread.
///
/// An engine prepares each text once per connection, and keeps it with the names of its columns.
package protocol DatabaseConnection: SQLQuerying {
    /// Runs a change and returns the number of rows it touched.
    @discardableResult
    func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int

    /// Runs several statements without parameters, separated by semicolons: table definitions.
    func runScript(_ sql: String) throws(StoreFailure)
}

/// A database: many readers and one writer at a time, over several processes or hosts. All calls block.
package protocol Database: SQLQuerying, Sendable {
    var dialect: Dialect { get }

    /// Runs `body` on one consistent snapshot. Concurrent reads run in parallel.
    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// Runs `body` in one transaction: committed when it returns, rolled back when it throws.
    /// An engine may run it again after a serialisation failure, so it must have no effect outside the database.
    @discardableResult
    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// The same, waiting for other writers no longer than `timeout` before it is `busy`; nil for the engine's own timeout. An
    /// engine whose writers do not wait for each other may ignore it.
    @discardableResult
    func write<T>(_ durability: Durability, timeout: Duration?, _ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// The same for a change of many rows, which would fail against every small concurrent one: those wait until it has ended.
    /// It should take some ten milliseconds.
    @discardableResult
    func writeAlone<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// The same for a command that may write many rows for seconds: beside others, and alone only where it conflicts with one. It
    /// is repeated for longer than a change that a request waits for.
    @discardableResult
    func writeAtLength<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T

    /// Ensures that what is written is still where others look for it. Throws `unreachable` otherwise.
    func requireInPlace() throws(StoreFailure)

    /// A lock that services share while they run: no one can replace the database meanwhile. Nil if the engine ensures that.
    /// Throws `busy` if someone is replacing it.
    func holdForService() throws(StoreFailure) -> (any DatabaseLock)?

    /// Runs `body` on a database with the contents of this one; none of its changes remain. Others can write meanwhile.
    func rehearse<T>(_ body: (any Database) throws(StoreFailure) -> T) throws(StoreFailure) -> T

    /// Takes a lock that only one of all processes and hosts on this database can hold; nil if it is held. It ends with the
    /// process that holds it, however that ends. Names are lower-case words with hyphens.
    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)?

    /// The same database for callers that cannot wait long: if connections are few, some are reserved for them.
    var first: any Database { get }

    /// Ends all connections; later calls fail. Waits for running ones.
    func close() throws(StoreFailure)
}

/// A lock that is held until it is released, or lost with its connection.
package protocol DatabaseLock: Sendable {
    /// Whether this process still holds it. Blocks for a round trip to the server.
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

    /// Reads for as long as it takes: for commands that read whole tables. Otherwise PostgreSQL cancels what takes longer than
    /// a request may, and uses an index where a sequential scan is best. Only for statements that are used nowhere else: a
    /// connection keeps their plans.
    package func readAtLength<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try read { connection throws(StoreFailure) in
            try connection.runScript(
                dialect.translate("{postgresql}SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on"))
            return try body(connection)
        }
    }

    package func rehearse<T>(_ body: (any Database) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        try rehearsedInTransaction(body)
    }

    package func write<T>(_ durability: Durability, timeout: Duration?, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func writeAlone<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func writeAtLength<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try write(durability, body)
    }

    package func requireInPlace() throws(StoreFailure) {}

    package func holdForService() throws(StoreFailure) -> (any DatabaseLock)? { nil }
}

/// Shared threads, which write for some callers and read for others.
package enum WriteQueue {
    /// How many of a pool's threads may wait to write for their full timeout. Further changes wait a moment and are then
    /// refused (`busy`), so that reads find a thread.
    package static let sharedThreads = 32

    /// Whether this thread is one of a pool that others wait for.
    @TaskLocal package static var isOnSharedThread = false
}
