// Connections for reading, handed to anyone who asks next.

import Concurrency
import GRDB
import PosternStore
import Synchronization

/// Read-only connections to one file, opened as they are needed. GRDB's own pool asks three queues and a semaphore for each read,
/// which on the path of mail took longer than the read.
final class SQLiteReaders: Sendable {
    fileprivate struct State: Sendable {
        /// The one that was used last is handed out first: what it has cached is the freshest.
        var idle: [DatabaseQueue] = []
        var open = 0
        var waiting = 0
        var isClosed = false
    }

    private let path: String
    private let configuration: Configuration
    private let maximum: Int
    private let files: OpenedFiles
    private let state = Mutex(State())
    private let returned = SystemSemaphore()

    /// - Parameters:
    ///   - maximum: connections at most; who comes later waits for one.
    ///   - files: those that each connection has to read.
    init(path: String, configuration: Configuration, maximum: Int, files: OpenedFiles) {
        self.files = files
        self.path = path
        var configuration = configuration
        configuration.readonly = true
        self.configuration = configuration
        self.maximum = maximum
    }

    /// Runs `body` on its own connection. Throws as GRDB does.
    func read<T>(_ body: (GRDB.Database) throws -> T) throws -> T {
        let connection = try take()
        defer { giveBack(connection) }
        return try connection.unsafeRead(body)
    }

    private enum Place {
        case connection(DatabaseQueue)
        case open, wait, closed
    }

    private func take() throws -> DatabaseQueue {
        while true {
            let place: Place = state.withLock { state in
                if state.isClosed { return .closed }
                if let connection = state.idle.popLast() { return .connection(connection) }
                guard state.open < maximum else {
                    state.waiting += 1
                    return .wait
                }
                state.open += 1
                return .open
            }
            switch place {
            case .connection(let connection): return connection
            case .closed:
                // The one that woke us may have been meant for whoever closes.
                if state.withLock({ $0.takeWaiting() }) { returned.signal() }
                throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "the database is closed")
            case .wait: returned.wait()
            case .open:
                do {
                    let connection = try DatabaseQueue(path: path, configuration: configuration)
                    // Under the name there may be another file by now.
                    try files.requireInPlace()
                    return connection
                } catch {
                    let wakes = state.withLock { state in
                        state.open -= 1
                        return state.takeWaiting()
                    }
                    if wakes { returned.signal() }
                    throw error
                }
            }
        }
    }

    private func giveBack(_ connection: DatabaseQueue) {
        let wakes = state.withLock { state in
            state.idle.append(connection)
            return state.takeWaiting()
        }
        if wakes { returned.signal() }
    }

    /// Closes every connection, those in use once their reads are over. Later reads fail.
    func close() throws {
        while true {
            let (idle, isLast) = state.withLock { state in
                state.isClosed = true
                let idle = state.idle
                state.idle = []
                state.open -= idle.count
                if state.open > 0 { state.waiting += 1 }
                return (idle, state.open == 0)
            }
            for connection in idle { try connection.close() }
            if isLast { break }
            returned.wait()
        }
        // Anyone who waits for a connection learns that there will be none.
        while state.withLock({ $0.takeWaiting() }) { returned.signal() }
    }
}

extension SQLiteReaders.State {
    /// Whether someone waits, who is then to be woken.
    fileprivate mutating func takeWaiting() -> Bool {
        guard waiting > 0 else { return false }
        waiting -= 1
        return true
    }
}
