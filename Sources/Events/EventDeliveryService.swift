// The service that delivers events while Postern runs.

import Concurrency
import Logging
import ServiceLifecycle

/// Looks for events at once when this process wrote one, and twice a second for those of other
/// processes. Of several processes on one store, one delivers as long as it renews its lease;
/// otherwise another one continues.
package struct EventDeliveryService: Service {
    /// Maximum time until a change of another process is found.
    private static let interval: Duration = .milliseconds(500)
    private static let tidying: Duration = .seconds(60)
    private static let measuring: Duration = .seconds(5)

    private let delivery: EventDelivery
    private let logouts: LogoutDelivery
    private let poster: HTTPEventPoster
    private let threads: DeliveryThreads
    private let logger: Logger

    /// The service stops `poster` and `threads` when it ends.
    package init(
        delivery: EventDelivery, logouts: LogoutDelivery, poster: HTTPEventPoster,
        threads: DeliveryThreads, logger: Logger
    ) {
        self.logger = logger
        self.delivery = delivery
        self.logouts = logouts
        self.poster = poster
        self.threads = threads
    }

    package func run() async throws {
        let (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        delivery.onChange { wake.yield() }
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await PeriodicTask.run(every: Self.interval) { wake.yield() }
                    wake.finish()
                }
                group.addTask { await lead() }
                group.addTask { await PeriodicTask.run(every: Self.measuring, delivery.measure) }
                group.addTask { await tellLogouts() }
                var nextTidying = ContinuousClock.now
                for await _ in wakes {
                    guard let lease = delivery.lease else { continue }
                    if ContinuousClock.now >= nextTidying {
                        nextTidying = .now + Self.tidying
                        group.addTask { await delivery.tidy() }
                    }
                    for endpoint in await delivery.waiting() {
                        group.addTask {
                            // Events that came while the endpoint was busy are found at once.
                            if await delivery.drain(endpoint, under: lease) { wake.yield() }
                        }
                    }
                }
            }
        }
        await poster.stop()
        await delivery.resign()
        await threads.stop()
    }

    /// Notifies apps of sessions that ended. No app delays another one.
    private func tellLogouts() async {
        await withDiscardingTaskGroup { group in
            let (rounds, round) = AsyncStream.makeStream(
                of: Void.self, bufferingPolicy: .bufferingNewest(1))
            group.addTask {
                await PeriodicTask.run(every: Self.interval) { round.yield() }
                round.finish()
            }
            for await _ in rounds {
                for app in await logouts.due() { group.addTask { await logouts.drain(app) } }
            }
        }
    }

    /// Renews the lease while this process has it, and waits for it while another one does.
    private func lead() async {
        await PeriodicTask.run(keeping: Lease?.none) { before in
            let lease = await delivery.lead()
            if lease != before {
                let words =
                    lease != nil
                    ? "this process delivers events"
                    : "another process delivers events, or the store is unavailable"
                logger.info("\(words)")
            }
            before = lease
            return LeaderLease.renewal
        }
    }
}
