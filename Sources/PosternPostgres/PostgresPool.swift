// A bounded number of connections, shared by threads.

import Concurrency
import Database
import Foundation

/// Lends each connection to one thread at a time. Replaces a broken connection, and checks an idle
/// one before its use, so that the next caller does not notice a restart of the server.
///
/// If a connection cannot be opened while others exist, that is not a failure: callers wait until
/// one is returned, and a thread keeps trying. Some connections may be reserved for callers with
/// priority.
final class PostgresPool: @unchecked Sendable {
    /// The kind of caller: callers with priority (decisions), others (mail, services), and requests
    /// over HTTP, which may come in any number.
    private enum Claim: Int { case first, other, request }

    /// A thread that waits for a connection.
    private final class Waiter {
        let claim: Claim
        let turn: MonotonicCondition
        /// The connection that it got.
        var link: PostgresLink?

        init(_ claim: Claim, _ lock: MonotonicCondition) {
            (self.claim, turn) = (claim, MonotonicCondition(sharing: lock))
        }
    }

    /// Connections that requests must leave for mail.
    private static let leftToMail = 2
    /// Seconds between two attempts of that thread: doubled each time, from the first value to the
    /// last.
    private static let pauses = (first: 0.05, last: 1.0)

    private let limit: Int
    private let timeout: Duration
    private let connect: @Sendable () throws(PostgresFailure) -> PostgresLink
    private let condition = MonotonicCondition()
    /// The waiting threads in the order of their arrival. Each is woken separately. If all were
    /// woken for each returned connection, they would wait for the lock while connections are idle.
    private var waiters: [Waiter] = []
    private var idle: [PostgresLink] = []
    /// Open connections, including those that are being opened.
    private var open = 0
    private var opening = 0
    /// Connections in use, by `Claim`.
    private var inUse = [0, 0, 0]
    private var reserved = 0
    /// Callers that have no connection yet, waiting or not.
    private var wanting = 0
    private var isGrowing = false
    private var isClosed = false

    /// - Parameters:
    ///   - limit: maximum number of connections.
    ///   - timeout: seconds to wait until one is returned; then the store counts as busy.
    init(
        limit: Int, timeout: TimeInterval,
        connect: @escaping @Sendable () throws(PostgresFailure) -> PostgresLink
    ) {
        self.limit = limit
        self.timeout = .seconds(timeout)
        self.connect = connect
    }

    /// Reserves connections for callers with priority, at most half, and starts to open them now:
    /// later the server may have none left.
    func reserve(_ count: Int) {
        condition.lock()
        defer { condition.unlock() }
        reserved = max(reserved, min(count, limit / 2))
        grow()
    }

    /// Runs `body` with a connection that no other thread uses.
    /// - Parameter isFirst: whether it may use the reserved connections.
    func with<T>(
        isFirst: Bool = false, _ body: (PostgresLink) throws(PostgresFailure) -> T
    ) throws(PostgresFailure) -> T {
        let claim: Claim = isFirst ? .first : WriteQueue.isOnSharedThread ? .request : .other
        let link = try take(claim)
        defer { give(link, claim) }
        return try body(link)
    }

    private func take(_ claim: Claim) throws(PostgresFailure) -> PostgresLink {
        let deadline = ContinuousClock.now + timeout
        condition.lock()
        wanting += 1
        defer {
            wanting -= 1
            condition.unlock()
        }
        let waiter = Waiter(claim, condition)
        waiters.append(waiter)
        defer { waiters.removeAll { $0 === waiter } }
        serve()
        var (failure, isInTime) = (nil as PostgresFailure?, true)
        while true {
            if let link = waiter.link {
                waiter.link = nil
                if isUsable(link, claim) { return link }
                waiters.insert(waiter, at: 0)
                // One connection less is open: a waiting caller may open another one, or `close`
                // may wait for the last one.
                if failure != nil { grow() }
                wakeAll()
                continue
            }
            guard !isClosed else {
                throw PostgresFailure(.temporary(.unreachable, "the store is closed"))
            }
            // If no connection exists, each caller tries itself, because the server may just have
            // come back.
            if failure == nil, mayHaveNew(claim), !isGrowing || open == 0 {
                opening += 1
                count(claim, 1)
                waiters.removeAll { $0 === waiter }
                let made = Result { () throws(PostgresFailure) in try outside(connect) }
                opening -= 1
                switch made {
                case .success(let link):
                    open += 1
                    return link
                case .failure(let error):
                    count(claim, -1)
                    waiters.insert(waiter, at: 0)
                    wakeAll()
                    guard open > 0 || error.isServerFull else { throw error }
                    failure = error
                    grow()
                    continue
                }
            }
            if let failure, open == 0, !failure.isServerFull { throw failure }
            guard isInTime else {
                throw failure
                    ?? PostgresFailure(
                        .temporary(.busy, "all \(limit) connections to the database are in use"))
            }
            isInTime = waiter.turn.wait(until: deadline)
        }
    }

    /// Returns an idle connection, if callers with this claim may have one.
    private func idle(for claim: Claim) -> PostgresLink? {
        guard mayHaveIdle(claim), let link = idle.popLast() else { return nil }
        count(claim, 1)
        return link
    }

    /// Whether the server still has this connection open. If not, closes it.
    private func isUsable(_ link: PostgresLink, _ claim: Claim) -> Bool {
        if outside({ link.isAlive }) { return true }
        count(claim, -1)
        open -= 1
        outside { link.close() }
        return false
    }

    /// Lends idle connections to the callers that have waited longest and may have one. Callers
    /// with priority do not overtake: on a full server they would leave none for others. Call it
    /// with the lock held, whenever more connections may be available.
    private func serve() {
        guard !isClosed else { return }
        var next = 0
        while !idle.isEmpty, next < waiters.count {
            let waiter = waiters[next]
            if let link = idle(for: waiter.claim) {
                waiters.remove(at: next)
                waiter.link = link
                waiter.turn.signal()
            } else {
                next += 1
            }
        }
    }

    /// Wakes all waiting threads, because of a change other than an idle connection. Call it with
    /// the lock held.
    private func wakeAll() {
        serve()
        for waiter in waiters { waiter.turn.signal() }
        condition.broadcast()
    }

    private func outside<T, Failure>(_ body: () throws(Failure) -> T) throws(Failure) -> T {
        condition.unlock()
        defer { condition.lock() }
        return try body()
    }

    private func count(_ claim: Claim, _ change: Int) { inUse[claim.rawValue] += change }

    /// Whether callers with this claim use fewer connections than they may.
    private func isBelowLimit(_ claim: Claim) -> Bool {
        let others = inUse[Claim.other.rawValue] + inUse[Claim.request.rawValue]
        return switch claim {
        case .first: true
        case .other: others < limit - reserved
        case .request:
            others < limit - reserved
                && inUse[Claim.request.rawValue] < max(1, limit - reserved - Self.leftToMail)
        }
    }

    /// Other callers must leave unused reserved connections idle. If the pool has few connections,
    /// they leave fewer, because otherwise they could have none.
    private func mayHaveIdle(_ claim: Claim) -> Bool {
        guard claim != .first else { return true }
        return isBelowLimit(claim)
            && idle.count > max(0, min(reserved, open - 1) - inUse[Claim.first.rawValue])
    }

    private func mayHaveNew(_ claim: Claim) -> Bool {
        open + opening < limit && isBelowLimit(claim)
    }

    private func give(_ link: PostgresLink, _ claim: Claim) {
        // A connection in the middle of a transaction must not go to another caller.
        let isReusable = link.isReusable
        if !isReusable { link.close() }
        condition.lock()
        count(claim, -1)
        if isReusable { idle.append(link) } else { open -= 1 }
        grow()
        if isReusable, !isClosed { serve() } else { wakeAll() }
        condition.unlock()
    }

    // MARK: Growing

    /// Opens connections in the background while a caller waits for one, or while reserved ones are
    /// missing. Call it with the lock held.
    private func grow() {
        guard !isGrowing, isWanting else { return }
        isGrowing = true
        SystemThread.detach { [self] in work() }
    }

    private var isWanting: Bool {
        !isClosed && open + opening < limit
            && (wanting > 0 || (reserved > 0 && open + opening < reserved + 1))
    }

    private func work() {
        var pause = Self.pauses.first
        condition.lock()
        while isWanting {
            opening += 1
            let made = outside { try? connect() }
            opening -= 1
            if let made {
                open += 1
                idle.append(made)
                pause = Self.pauses.first
            }
            wakeAll()
            guard made == nil else { continue }
            // A random factor, so that several hosts do not try at the same time.
            outside { Thread.sleep(forTimeInterval: pause * Double.random(in: 0.8...1.2)) }
            pause = min(2 * pause, Self.pauses.last)
        }
        isGrowing = false
        wakeAll()
        condition.unlock()
    }

    // MARK: Ending

    /// Closes idle connections: after a failover they are as useless as the one that noticed it.
    func discardIdle() {
        condition.lock()
        let links = takeIdle()
        grow()
        wakeAll()
        condition.unlock()
        links.forEach { $0.close() }
    }

    private func takeIdle() -> [PostgresLink] {
        defer { idle = [] }
        open -= idle.count
        return idle
    }

    /// Refuses further use, and returns when the last connection is closed.
    func close() {
        condition.lock()
        isClosed = true
        wakeAll()
        while true {
            takeIdle().forEach { $0.close() }
            guard open + opening > 0 else { break }
            condition.wait()
        }
        condition.unlock()
    }
}
