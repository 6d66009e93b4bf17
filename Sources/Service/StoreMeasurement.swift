// What the store and its standby say about themselves, as metrics, every two seconds.

import Accounts
import Database
import PosternConfiguration
import PosternMetrics
import PosternPostgres

/// Counts that were added to the metrics before.
struct StoreMeasurement: Sendable {
    private var waits: [WriterWait: Int] = [:]
    private var uses = ReplicaDatabase.Uses()

    /// Adds what is new, and sets what is measured. Blocks for some round trips.
    /// - Returns: the reason why listings are read at the primary, although a standby is
    ///   configured; nil if they are not.
    mutating func take(
        _ installation: Installation, _ metrics: ServiceMetrics
    ) throws(StoreFailure) -> String? {
        let database = installation.store.database
        if let all = database.writerWaits?.all {
            for (wait, count) in all where count > waits[wait, default: 0] {
                metrics.storeWriterWaits(wait.rawValue).add(count - waits[wait, default: 0])
            }
            waits = all
        }
        if let server = try database.serverWaits() {
            metrics.storeLockWaiters.set(Double(server.waiting))
            metrics.storeLockSeconds.set(server.longest)
            metrics.storeDeadlocks.set(Double(server.deadlocks))
        }
        guard let replica = installation.replica else { return nil }
        let now = replica.uses
        metrics.listingReads("standby").add(now.standby - uses.standby)
        metrics.listingReads("primary").add(now.primary - uses.primary)
        uses = now
        let state = try replica.measure()
        metrics.replicaLag.set(state.lag ?? -1)
        return state.trouble
    }
}
