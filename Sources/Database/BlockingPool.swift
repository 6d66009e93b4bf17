// Threads for blocking calls, such as the store and name lookups. These never run on an event loop
// or on Swift's own few threads.

import NIOPosix

/// The kinds of blocking work. Each has separate threads, so that none waits for another one that
/// is slow.
package enum BlockingWork: CaseIterable, Sendable {
    case requests, service, policies, issuers, deliveries, lease, domains, claims, claimRounds,
        mail, codes, trials

    package struct Facts: Sendable {
        package let name: String
        /// The maximum number of concurrent blocking calls; further ones wait.
        package let threads: Int
        /// Whether requests in any number wait for these threads: their writes come after those of
        /// the service itself.
        package let isShared: Bool
        /// A description of the work, and the reason why it has separate threads.
        package let reason: String

        fileprivate init(_ name: String, _ threads: Int, isShared: Bool = false, _ reason: String) {
            (self.name, self.threads, self.isShared, self.reason) = (
                name, threads, isShared, reason
            )
        }
    }

    /// Threads that stay available for reads, even if many calls wait to write.
    private static let readers = 8

    package var facts: Facts {
        switch self {
        case .requests:
            Facts(
                "requests", Self.readers + WriteQueue.sharedThreads, isShared: true,
                "HTTP requests that use the store: as many threads as may wait to write, and eight for reads"
            )
        case .service:
            Facts(
                "service", 8,
                "counters, status and due work, independent of requests: one thread for each of its services, three for "
                    + "housekeeping")
        case .policies:
            Facts(
                "policies", 2, isShared: true,
                "slow policies: one decision runs and one waits; other decisions do not wait for them"
            )
        case .issuers:
            Facts("issuers", 4, "issuers, signing keys and their signals: sign-ins wait for them")
        case .deliveries: Facts("deliveries", 4, "events and their results")
        case .lease:
            Facts("lease", 1, "the lease on delivery, renewed even while many results are written")
        case .domains:
            Facts(
                "domains", 4, isShared: true,
                "checks of domains that teams request: the DNS may be slow")
        case .claims:
            Facts("claims", 2, isShared: true, "proofs of domains that teams request, likewise")
        case .claimRounds:
            Facts("claim rounds", 1, "due proofs of domains, independent of teams' requests")
        case .mail:
            Facts(
                "mail", 2, isShared: true,
                "messages to inboxes that the operator adds: mail servers may be slow")
        case .codes:
            Facts("codes", 2, isShared: true, "messages to addresses that teams claim, likewise")
        case .trials:
            Facts("trials", 4, isShared: true, "`postern sandbox` and `postern policy bench`")
        }
    }
}

/// The threads of one kind of work.
package final class BlockingPool: Sendable {
    private let pool: NIOThreadPool
    private let isShared: Bool

    /// - Parameter threads: the number of threads, if it differs from the work's: for tests and
    ///   measurements.
    package init(_ work: BlockingWork, threads: Int? = nil) {
        isShared = work.facts.isShared
        pool = NIOThreadPool(numberOfThreads: threads ?? work.facts.threads)
        pool.start()
    }

    /// For issuers and keys, of which a process has one set for all callers. These threads do not
    /// end.
    package static let issuers = BlockingPool(.issuers)

    /// Runs `body` on one of the threads. Throws its errors, and `CancellationError` if the task is
    /// cancelled or the threads have ended.
    package func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        do {
            return try await pool.runIfActive {
                try WriteQueue.$isOnSharedThread.withValue(self.isShared) { try body() }
            }
        } catch is NIOThreadPoolError.ThreadPoolInactive {
            throw CancellationError()
        }
    }

    /// Runs `body` even if the task is cancelled: at the end of the service the remaining data must
    /// still be written.
    package func finish<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await Task { try await run(body) }.value
    }

    /// Ends the threads after the waiting calls. Later calls throw `CancellationError`.
    package func stop() async { try? await pool.shutdownGracefully() }
}
