// A bounded number of connections, shared by threads.

import Foundation
import PosternStore

/// Hands out connections one thread at a time. A connection that broke is replaced; one that was idle for long is looked at
/// before it is used, so that a restart of the server is not noticed by whoever comes next.
final class PostgresPool: @unchecked Sendable {
    private let limit: Int
    private let patience: TimeInterval
    private let connect: @Sendable () throws -> PostgresLink
    private let condition = NSCondition()
    private var idle: [PostgresLink] = []
    private var open = 0
    private var isClosed = false

    /// - Parameters:
    ///   - limit: connections at most.
    ///   - patience: seconds to wait for one to come back before the store counts as busy.
    init(limit: Int, patience: TimeInterval, connect: @escaping @Sendable () throws -> PostgresLink) {
        self.limit = limit
        self.patience = patience
        self.connect = connect
    }

    /// Runs `body` with a connection of its own. Throws `PostgresFailure`, `TemporaryStoreError`, and what `body` throws.
    func with<T>(_ body: (PostgresLink) throws -> T) throws -> T {
        let link = try take()
        defer { give(link) }
        return try body(link)
    }

    private func take() throws -> PostgresLink {
        let deadline = Date(timeIntervalSinceNow: patience)
        condition.lock()
        while true {
            guard !isClosed else {
                condition.unlock()
                throw TemporaryStoreError(.unreachable, "the store is closed")
            }
            if let link = idle.popLast() {
                condition.unlock()
                if link.isAlive { return link }
                link.close()
                condition.lock()
                open -= 1
                continue
            }
            if open < limit {
                open += 1
                condition.unlock()
                do {
                    return try connect()
                } catch {
                    forget()
                    throw error
                }
            }
            guard condition.wait(until: deadline) else {
                condition.unlock()
                throw TemporaryStoreError(.busy, "all \(limit) connections to the database are in use")
            }
        }
    }

    private func give(_ link: PostgresLink) {
        // One in the middle of a transaction is not one to give to somebody else.
        guard link.isReusable else {
            link.close()
            return forget()
        }
        condition.lock()
        idle.append(link)
        condition.signal()
        condition.unlock()
    }

    private func forget() {
        condition.lock()
        open -= 1
        condition.broadcast()
        condition.unlock()
    }

    /// Closes idle connections: after a failover the others of the pool are as bad as the one that noticed it.
    func discardIdle() {
        condition.lock()
        let links = idle
        idle = []
        open -= links.count
        condition.broadcast()
        condition.unlock()
        links.forEach { $0.close() }
    }

    /// Refuses further use, and returns when the last connection is closed.
    func close() {
        condition.lock()
        isClosed = true
        condition.unlock()
        discardIdle()
        condition.lock()
        while open > 0 {
            for link in idle {
                link.close()
                open -= 1
            }
            idle = []
            if open > 0 { condition.wait() }
        }
        condition.unlock()
    }
}
