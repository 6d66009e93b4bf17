// Rehearsals: what a change would do, without doing it.

extension Database {
    /// Runs `body` on a database with the contents of this one, of which nothing remains afterwards.
    /// This one way fits every engine with versions of rows: a transaction that is rolled back at the end. An engine that
    /// would keep other writers waiting for so long brings its own.
    package func rehearsedInTransaction<T>(_ body: (any Database) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        try rehearsed(body) { change throws(StoreFailure) in try write(.relaxed, change) }
    }

    /// The same in a transaction of the engine's own making.
    package func rehearsed<T>(
        _ body: (any Database) throws(StoreFailure) -> T,
        in transaction: @escaping (_ change: TransactionBody<Void>) throws(StoreFailure) -> Void
    ) throws(StoreFailure) -> T {
        var result: Result<T, StoreFailure>?
        do {
            try transaction { connection throws(StoreFailure) in
                let rehearsal = RehearsalDatabase(dialect: dialect, connection: connection)
                result = Result { () throws(StoreFailure) in try body(rehearsal) }
                // Whatever its result: only what throws is rolled back.
                throw .permanent(.rehearsed, "a rehearsal has ended")
            }
        } catch  where error.code == .permanent(.rehearsed) {}
        guard let result else { throw .permanent(.statement, "a rehearsal gave no result") }
        return try result.get()
    }
}

private struct RehearsedLock: DatabaseLock {
    var isHeld: Bool { true }
    func release() {}
}

/// Every transaction becomes part of the one that will be rolled back. Used on the thread of that transaction only.
private final class RehearsalDatabase: Database, @unchecked Sendable {
    let dialect: Dialect
    private let connection: any DatabaseConnection

    init(dialect: Dialect, connection: any DatabaseConnection) {
        self.dialect = dialect
        self.connection = connection
    }

    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T { try body(connection) }

    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try connection.run("SAVEPOINT rehearsal")
        do {
            let result = try body(connection)
            try connection.run("RELEASE SAVEPOINT rehearsal")
            return result
        } catch {
            try connection.run("ROLLBACK TO SAVEPOINT rehearsal")
            try connection.run("RELEASE SAVEPOINT rehearsal")
            throw error
        }
    }

    /// No one else sees a rehearsal.
    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? { RehearsedLock() }

    func close() throws(StoreFailure) {}
}
