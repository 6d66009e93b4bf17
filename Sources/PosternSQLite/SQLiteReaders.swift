// Connections for reading, each lent to one caller at a time.

import Concurrency
import Database

/// Read-only connections to one file, opened when needed.
final class SQLiteReaders: @unchecked Sendable {
    private let maximum: Int
    private let open: @Sendable () throws(StoreFailure) -> SQLiteConnection
    private let condition = MonotonicCondition()
    /// The most recently used one is lent first, because its cache is the freshest.
    private var idle: [SQLiteConnection] = []
    /// Open connections, including those that are being opened.
    private var count = 0
    private var isClosed = false

    /// - Parameters:
    ///   - maximum: the maximum number of connections; later callers wait for one.
    ///   - open: opens a further connection.
    init(maximum: Int, open: @escaping @Sendable () throws(StoreFailure) -> SQLiteConnection) {
        self.maximum = maximum
        self.open = open
    }

    /// Runs `body` on a connection that no other thread uses.
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
        // Until it is closed, all waiting threads wait for the same, and only one of them can
        // continue.
        if isClosed { condition.broadcast() } else { condition.signal() }
        condition.unlock()
    }

    /// Closes every connection; those in use when their reads end. Later reads fail.
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
