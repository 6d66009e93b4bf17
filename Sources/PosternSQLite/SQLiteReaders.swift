// Connections for reading, lent to the next caller.

import Concurrency
import Database

/// Read-only connections to one file, opened as they are needed.
final class SQLiteReaders: @unchecked Sendable {
    private let maximum: Int
    private let open: @Sendable () throws(StoreFailure) -> SQLiteConnection
    private let condition = MonotonicCondition()
    /// The one that was used last is lent first: its cache is the freshest.
    private var idle: [SQLiteConnection] = []
    /// Open connections, and those that are being opened.
    private var count = 0
    private var isClosed = false

    /// - Parameters:
    ///   - maximum: connections at most; later callers wait for one.
    ///   - open: opens another one.
    init(maximum: Int, open: @escaping @Sendable () throws(StoreFailure) -> SQLiteConnection) {
        self.maximum = maximum
        self.open = open
    }

    /// Runs `body` on its own connection.
    func read<T>(_ body: (SQLiteConnection) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        let connection = try take()
        defer { giveBack(connection) }
        return try body(connection)
    }

    private func take() throws(StoreFailure) -> SQLiteConnection {
        condition.lock()
        defer { condition.unlock() }
        while true {
            guard !isClosed else { throw SQLiteConnection.closed }
            if let connection = idle.popLast() { return connection }
            if count < maximum { break }
            condition.wait()
        }
        count += 1
        condition.unlock()
        defer { condition.lock() }
        do { return try open() } catch {
            giveBack(nil)
            throw error
        }
    }

    /// - Parameter connection: nil for one that could not be opened.
    private func giveBack(_ connection: SQLiteConnection?) {
        condition.lock()
        if let connection { idle.append(connection) } else { count -= 1 }
        // Before it is closed all waiting threads want the same, and one of them can continue.
        if isClosed { condition.broadcast() } else { condition.signal() }
        condition.unlock()
    }

    /// Closes every connection, those in use once their reads are over. Later reads fail.
    func close() {
        condition.lock()
        defer { condition.unlock() }
        isClosed = true
        condition.broadcast()
        while true {
            for connection in idle { connection.close() }
            count -= idle.count
            idle = []
            if count == 0 { return }
            condition.wait()
        }
    }
}
