// A database that records all its statements.

import Database
import Synchronization

final class RecordingDatabase: Database {
    private struct Statement {
        let sql: String
        let arguments: [SQLValue]
        let isInChange: Bool
    }

    private let inner: any Database
    private let recorded = Mutex<[Statement]>([])

    private let afterWrite: @Sendable () throws(StoreFailure) -> Void

    private let beforeWrite: @Sendable () -> Void

    /// Both are called for each change.
    init(
        _ inner: any Database, afterWrite: @escaping @Sendable () throws(StoreFailure) -> Void = {},
        beforeWrite: @escaping @Sendable () -> Void = {}
    ) {
        (self.inner, self.beforeWrite, self.afterWrite) = (inner, beforeWrite, afterWrite)
    }

    var dialect: Dialect { inner.dialect }

    /// Each text with the arguments of its last use.
    var statements: [String: [SQLValue]] {
        Dictionary(
            recorded.withLock { $0 }.map { ($0.sql, $0.arguments) }, uniquingKeysWith: { $1 })
    }

    /// Arguments of the statements of changes that contain this text, in order.
    func changes(_ text: String) -> [[SQLValue]] {
        recorded.withLock { $0.filter { $0.isInChange && $0.sql.contains(text) }.map(\.arguments) }
    }

    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try inner.read { connection throws(StoreFailure) in
            try body(Connection(inner: connection, database: self, isInChange: false))
        }
    }

    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        beforeWrite()
        let result = try inner.write(durability) { connection throws(StoreFailure) in
            try body(Connection(inner: connection, database: self, isInChange: true))
        }
        try afterWrite()
        return result
    }

    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? { try inner.lock(name) }

    func close() throws(StoreFailure) { try inner.close() }

    private struct Connection: DatabaseConnection {
        let inner: any DatabaseConnection
        let database: RecordingDatabase
        let isInChange: Bool

        private func note(_ sql: String, _ arguments: [SQLValue]) {
            database.recorded.withLock {
                $0.append(Statement(sql: sql, arguments: arguments, isInChange: isInChange))
            }
        }

        func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
            note(sql, arguments)
            return try inner.rows(sql, arguments)
        }

        func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int {
            note(sql, arguments)
            return try inner.run(sql, arguments)
        }

        func runScript(_ sql: String) throws(StoreFailure) { try inner.runScript(sql) }
    }
}
