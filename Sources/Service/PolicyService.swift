// Applies policies that are activated, rolled back or bound while the service runs, and deletes
// unused ones.

import Accounts
import Concurrency
import Database
import Decisions
import HTTP
import Logging
import ServiceLifecycle

/// Checks every two seconds whether an administrator, on this host or another, changed the policies
/// in force. Once an hour, deletes policies that nothing refers to.
struct PolicyService: Service {
    let policies: ActivePolicies
    let store: Store
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger

    /// Seconds between two deletions.
    private static let deletionInterval: Duration = .seconds(3_600)
    /// Seconds for which a policy is kept even if nothing refers to it: an administrator may be
    /// comparing it.
    static let leastAge: Int64 = 30 * 86_400

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(2), keeping: ContinuousClock.now) {
            nextDeletion in
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
            if count > 0 {
                logger.info("unneeded policies deleted", metadata: ["count": "\(count)"])
            }
        } catch {
            logger.warning(
                "unused policies could not be deleted; trying again later",
                metadata: ["detail": "\(error)"])
        }
    }
}
