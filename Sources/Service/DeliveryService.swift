// The limit by consequence while the relay runs: reviews the figures, and keeps the mail path up to
// date.

import Accounts
import Concurrency
import Database
import HTTP
import Logging
import RelayCore
import ServiceLifecycle

/// Reads the standings every two seconds, as another host or a command may have changed them. Once
/// a minute, compares the figures with the thresholds.
struct DeliveryService: Service {
    /// Seconds between two reviews.
    private static let interval: Int64 = 60

    let store: Store
    let counters: CounterBuffer
    /// The thresholds in force; nil for no limit.
    let rules: @Sendable () -> DeliveryRules?
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(2), keeping: Int64.min) { reviewedAt in
            let now = now()
            let isDue = reviewedAt > now || reviewedAt < now - Self.interval
            do {
                let rules = rules()
                let steps = try await pool.run { [store, counters] in
                    let steps =
                        isDue ? try rules.map { try store.deliveries.review($0, now: now) } : nil
                    try counters.deliveries.gate.refresh(store.deliveries, now: now)
                    return steps ?? []
                }
                if isDue { reviewedAt = now }
                for step in steps {
                    logger.warning(
                        "mail of a team to a provider is \(step.standing.rawValue) now",
                        metadata: [
                            "team": "\(step.team)", "provider": "\(step.provider)",
                            "cause": "\(step.cause?.rawValue ?? "")",
                            "messages": "\(step.messages)", "events": "\(step.events)",
                            "users": "\(step.users)",
                        ])
                }
            } catch is CancellationError {
                // The service is ending.
            } catch {
                logger.warning(
                    "limits of teams cannot be reviewed yet", metadata: ["detail": "\(error)"])
            }
        }
    }
}
