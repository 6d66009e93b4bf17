// Several changes as one: all writes through a joined database are part of one transaction.

extension Database {
    /// Runs `body` on this database in one transaction; every transaction of `body` becomes part of
    /// it. Everything is committed when `body` returns, and nothing when it throws. As with
    /// `writeAtLength`, `body` may run again.
    package func writeAsOne<T>(
        _ durability: Durability, _ body: (any Database) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        try writeAtLength(durability) { connection throws(StoreFailure) in
            try body(JoinedDatabase(dialect: dialect, connection: connection))
        }
    }

    /// Runs `body` on one snapshot of this database. It must not write.
    package func readAsOne<T>(
        _ body: (any Database) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        try read { connection throws(StoreFailure) in
            try body(JoinedDatabase(dialect: dialect, connection: connection))
        }
    }
}

/// Always held, because other processes cannot see uncommitted changes.
private struct JoinedLock: DatabaseLock {
    var isHeld: Bool { true }
    func release() {}
}

/// Every transaction becomes part of the connection's current one. Used only on the thread of that
/// transaction.
final class JoinedDatabase: Database, @unchecked Sendable {
    let dialect: Dialect
    private let connection: any DatabaseConnection

    init(dialect: Dialect, connection: any DatabaseConnection) {
        self.dialect = dialect
        self.connection = connection
    }

    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T { try body(connection) }

    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try connection.run("SAVEPOINT joined")
        do {
            let result = try body(connection)
            try connection.run("RELEASE SAVEPOINT joined")
            return result
        } catch {
            try connection.run("ROLLBACK TO SAVEPOINT joined")
            try connection.run("RELEASE SAVEPOINT joined")
            throw error
        }
    }

    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? { JoinedLock() }

    func close() throws(StoreFailure) {}
}
