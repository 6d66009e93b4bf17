// The service that delivers events while Postern runs.

import NIOPosix
import ServiceLifecycle

/// Looks for events at once when this process wrote one, and twice a second for those of other processes. Of several processes on
/// one store one delivers; another takes over as soon as its lock is free.
package struct EventDeliveryService: Service {
    /// Another process's change is found within this time.
    private static let interval: Duration = .milliseconds(500)
    /// How often the holder of the lock sees whether it has it still, and others whether it is free.
    private static let renewal: Duration = .seconds(1)
    private static let tidying: Duration = .seconds(60)

    private let delivery: EventDelivery
    private let poster: HTTPEventPoster
    private let pool: NIOThreadPool

    /// `poster` and `pool` end with the service.
    package init(delivery: EventDelivery, poster: HTTPEventPoster, pool: NIOThreadPool) {
        self.delivery = delivery
        self.poster = poster
        self.pool = pool
    }

    package func run() async throws {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        delivery.onChange { wake.yield() }
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    while !Task.isCancelled {
                        wake.yield()
                        try? await Task.sleep(for: Self.interval)
                    }
                    wake.finish()
                }
                let clock = ContinuousClock()
                var (nextRenewal, nextTidying) = (clock.now, clock.now)
                var isHolder = false
                for await _ in wakes {
                    if clock.now >= nextRenewal {
                        isHolder = await delivery.takeTurn()
                        nextRenewal = clock.now + Self.renewal
                        await delivery.measure()
                    }
                    guard isHolder else { continue }
                    if clock.now >= nextTidying {
                        await delivery.tidy()
                        nextTidying = clock.now + Self.tidying
                    }
                    for endpoint in await delivery.waiting() { group.addTask { await delivery.drain(endpoint) } }
                }
            }
        }
        await poster.stop()
        await delivery.endTurn()
        try? await pool.shutdownGracefully()
    }
}
