// Policies that are activated, rolled back and bound while the service runs, and those that nothing needs any more.

import Accounts
import Decisions
import Concurrency
import Logging
import HTTP
import ServiceLifecycle

/// Looks every two seconds whether other policies are to decide, by this host's administrator or another one's; deletes once an
/// hour policies that nothing needs any more.
struct PolicyService: Service {
    let policies: ActivePolicies
    let store: Store
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger

    /// Seconds between two deletions.
    private static let deletionInterval: Duration = .seconds(3_600)
    /// Seconds for which a policy is kept whatever refers to it: someone may just be comparing.
    static let leastAge: Int64 = 30 * 86_400

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(2), keeping: ContinuousClock.now) { nextDeletion in
            let isTurn = ContinuousClock.now >= nextDeletion
            try? await pool.run {
                policies.refresh(now: now())
                if isTurn { deleteUnneeded() }
            }
            if isTurn { nextDeletion = ContinuousClock.now + Self.deletionInterval }
        }
    }

    private func deleteUnneeded() {
        do {
            guard let lock = try store.database.lock("policies") else { return }
            defer { lock.release() }
            let count = try store.policies.deleteUnneeded(addedBefore: now() - Self.leastAge)
            if count > 0 { logger.info("unneeded policies deleted", metadata: ["count": "\(count)"]) }
        } catch {
            logger.warning("unneeded policies cannot be deleted yet", metadata: ["detail": "\(error)"])
        }
    }
}
