// Notifies apps that a session of the page ended (OpenID Connect Back-Channel Logout 1.0 section
// 2.5).

import Accounts
import Database
import Logging
import MailAuth
import SignIn
import Synchronization

/// Delivers logout tokens: at least once, for a day, in no order. Every host delivers, but only one
/// host at a time handles a notice.
package final class LogoutDelivery: Sendable {
    /// A notice that an app has not accepted for this many seconds is given up.
    package static let timeout: Int64 = 86_400
    /// Notices that one app gets at the same time.
    private static let concurrency = 8
    /// Apps that are notified at the same time; further ones wait.
    private static let maximumApps = 64

    let logouts: LogoutRepository
    let signer: IdentitySigner
    let issuer: String
    let poster: any EventPosting
    let resolver: any DNSResolver
    let threads: DeliveryThreads
    /// Whether apps may be at addresses that are not globally reachable, and use http.
    let allowsPrivate: Bool
    let now: @Sendable () -> Int64
    let random: @Sendable () -> Double
    let logger: Logger
    /// Apps that are being notified. An app that does not respond does not delay others.
    private let busy = Mutex<Set<Int64>>([])

    /// - Parameters:
    ///   - issuer: our own `iss`.
    ///   - now: seconds since 1970.
    ///   - random: 0 ..< 1, for jitter.
    package init(
        logouts: LogoutRepository, signer: IdentitySigner, issuer: String, poster: any EventPosting,
        resolver: any DNSResolver,
        threads: DeliveryThreads, allowsPrivate: Bool, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }, logger: Logger
    ) {
        (self.logouts, self.signer, self.issuer, self.poster) = (logouts, signer, issuer, poster)
        (self.resolver, self.threads, self.allowsPrivate) = (resolver, threads, allowsPrivate)
        (self.now, self.random, self.logger) = (now, random, logger)
    }

    /// The apps that have due notices and are not being notified yet; the caller must `drain` each
    /// of them.
    package func due() async -> [Int64] {
        do {
            let apps = try await blocking { [now] in try $0.waitingApps(now: now()) }
            return busy.withLock { busy in
                let free = apps.filter { !busy.contains($0) }.prefix(
                    max(0, Self.maximumApps - busy.count))
                busy.formUnion(free)
                return Array(free)
            }
        } catch {
            warn(error)
            return []
        }
    }

    /// Sends one app its due notices, until none is due, or the app did not accept one.
    package func drain(_ app: Int64) async {
        defer { _ = busy.withLock { $0.remove(app) } }
        do {
            while !Task.isCancelled {
                let notices = try await blocking { [now, random] in
                    try $0.take(app: app, limit: Self.concurrency, now: now()) {
                        RetrySchedule.delay(failures: $0, random: random())
                    }
                }
                guard !notices.isEmpty else { return }
                let works = await withTaskGroup(of: Bool.self) { group in
                    for notice in notices { group.addTask { await self.deliver(notice) } }
                    return await group.reduce(true) { $0 && $1 }
                }
                guard works else { return }
            }
        } catch {
            warn(error)
        }
    }

    /// Sends all apps their due notices, once to each that does not respond.
    package func deliverDue() async {
        await withDiscardingTaskGroup { group in
            for app in await due() { group.addTask { await self.drain(app) } }
        }
    }

    private func warn(_ error: any Error) {
        guard !(error is CancellationError) else { return }
        logger.warning(
            "apps could not be notified of ended sessions; trying again later",
            metadata: ["detail": "\(error)"])
    }

    /// Whether the app responded, even with a refusal.
    private func deliver(_ notice: LogoutNotice) async -> Bool {
        var metadata: Logger.Metadata = [
            "aud": "\(notice.clientID)", "attempt": "\(notice.attempts)",
        ]
        do {
            switch try await post(notice) {
            case .delivered:
                try await blocking { try $0.end(notice.number) }
                logger.info("app notified of the end of a session", metadata: metadata)
                return true
            case .failed(let reason, let isEndpoints, _):
                // A notice that the app refuses now would be refused later too.
                let isOver = !isEndpoints || now() - notice.createdAt >= Self.timeout
                if isOver { try await blocking { try $0.end(notice.number) } }
                metadata["reason"] = "\(reason)"
                let words =
                    isOver
                    ? "app not notified of the end of a session"
                    : "app not yet notified of the end of a session"
                logger.warning("\(words)", metadata: metadata)
                return !isEndpoints
            }
        } catch {
            // Another attempt follows by itself.
            guard !(error is CancellationError) else { return false }
            logger.warning(
                "app not yet notified of the end of a session",
                metadata: metadata.merging(["detail": "\(error)"]) { $1 })
            return false
        }
    }

    private func post(_ notice: LogoutNotice) async throws -> PostOutcome {
        func failed(_ reason: String) -> PostOutcome {
            .failed(reason: reason, isEndpoints: true, retryAfter: nil)
        }
        let url = try EndpointURL(notice.uri)
        guard url.isSecure || allowsPrivate else {
            return failed("it is not reached over https, \(PrivateReceivers.reason)")
        }
        let addresses: EndpointAddresses
        do {
            addresses = try await EndpointAddresses.lookUp(
                url, allowsPrivate: allowsPrivate, resolver: resolver)
        } catch let refusal as EndpointAddresses.Refusal {
            return failed(
                refusal.isOfAddress
                    ? "\(refusal.reason), \(PrivateReceivers.reason)" : refusal.reason)
        }
        let token = try await signer.token(notice, issuer: issuer, now: now())
        let outcome = await poster.post(EventMessage(logout: token), to: url, at: addresses)
        if outcome != .delivered { try Task.checkCancellation() }
        return outcome
    }

    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (LogoutRepository) throws -> T
    ) async throws -> T {
        try await threads.store.run { [logouts] in try body(logouts) }
    }
}
