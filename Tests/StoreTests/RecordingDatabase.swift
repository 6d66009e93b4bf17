// A database that remembers every statement it is asked for.

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

    private let afterWrite: @Sendable () throws -> Void

    /// - Parameter afterWrite: called behind each change.
    init(_ inner: any Database, afterWrite: @escaping @Sendable () throws -> Void = {}) {
        (self.inner, self.afterWrite) = (inner, afterWrite)
    }

    var dialect: Dialect { inner.dialect }

    /// Each text with the arguments of its last use.
    var statements: [String: [SQLValue]] {
        Dictionary(recorded.withLock { $0 }.map { ($0.sql, $0.arguments) }, uniquingKeysWith: { $1 })
    }

    /// Arguments of the statements with this text in them that were part of a change, in order.
    func changes(_ text: String) -> [[SQLValue]] {
        recorded.withLock { $0.filter { $0.isInChange && $0.sql.contains(text) }.map(\.arguments) }
    }

    func read<T>(_ body: (any DatabaseConnection) throws -> T) throws -> T {
        try inner.read { try body(Connection(inner: $0, database: self, isInChange: false)) }
    }

    func write<T>(_ durability: Durability, _ body: (any DatabaseConnection) throws -> T) throws -> T {
        let result = try inner.write(durability) { try body(Connection(inner: $0, database: self, isInChange: true)) }
        try afterWrite()
        return result
    }

    func lock(_ name: String) throws -> (any DatabaseLock)? { try inner.lock(name) }

    func close() throws { try inner.close() }

    private struct Connection: DatabaseConnection {
        let inner: any DatabaseConnection
        let database: RecordingDatabase
        let isInChange: Bool

        private func note(_ sql: String, _ arguments: [SQLValue]) {
            database.recorded.withLock { $0.append(Statement(sql: sql, arguments: arguments, isInChange: isInChange)) }
        }

        func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
            note(sql, arguments)
            return try inner.rows(sql, arguments)
        }

        func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
            note(sql, arguments)
            return try inner.run(sql, arguments)
        }

        func runScript(_ sql: String) throws { try inner.runScript(sql) }
    }
}
