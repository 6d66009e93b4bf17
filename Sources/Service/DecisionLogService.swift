// Writes the decision log several times a second. Housekeeping deletes old records.

import Accounts
import Concurrency
import Database
import Decisions
import HTTP
import Logging
import ServiceLifecycle

/// Writes the records of decisions, and deletes expired nonces, keys and slices. At its end it
/// writes all waiting records.
package struct DecisionLogService: Service {
    private let parts: DecisionParts
    private let store: Store
    private let pool: BlockingPool
    private let now: @Sendable () -> Int64
    private let logger: Logger

    /// The pause after a write of less than a batch: far less than the second of records that a
    /// kill may lose.
    private static let interval: Duration = .milliseconds(200)
    /// The pause between two deletions.
    private static let deletionInterval: Duration = .seconds(3600)

    package init(
        parts: DecisionParts, store: Store, pool: BlockingPool,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.parts = parts
        self.store = store
        self.pool = pool
        self.now = now
        self.logger = logger
    }

    package func run() async throws {
        do {
            try await pool.run { try parts.service.warmUp() }
        } catch {
            logger.warning(
                "apps cannot be preloaded yet: each is read when it is first used",
                metadata: ["detail": "\(error)"])
        }
        let batches = Task { await parts.log.writeBatches() }
        defer { batches.cancel() }
        // Large deletions must not delay decisions.
        async let deletions: Void = PeriodicTask.untilShutdown(every: Self.deletionInterval) {
            await deleteExpired()
        }
        await PeriodicTask.untilShutdown(every: Self.interval, keeping: (isWritten: true, lost: 0))
        { known in
            await write(&known.isWritten)
            if parts.log.dropped > known.lost {
                known.lost = parts.log.dropped
                logger.error(
                    "decisions were lost for the log: the store was unavailable for too long",
                    metadata: ["lost": "\(known.lost)"]
                )
            }
        }
        await deletions
        do {
            try await pool.finish { try parts.log.flush() }
        } catch {
            logger.error(
                "decisions were lost for the log: the store was unavailable at the end",
                metadata: ["detail": "\(error)", "lost": "\(parts.log.count)"])
        }
        parts.close()
    }

    private func write(_ isWritten: inout Bool) async {
        do {
            try await pool.run { try parts.log.flush() }
            if !isWritten { logger.notice("the decision log can be written again") }
            isWritten = true
        } catch is CancellationError {
            // The service is ending: the waiting records are written afterwards.
        } catch {
            // Logged once, not five times a second.
            if isWritten {
                logger.warning(
                    "the decision log cannot be written yet",
                    metadata: ["detail": "\(error)", "waiting": "\(parts.log.count)"])
            }
            isWritten = false
        }
    }

    private func deleteExpired() async {
        do {
            // It is enough if one of several hosts does this, and two would both delete the excess.
            let held = try await pool.run { [store] in try store.database.lock("decision-deletions")
            }
            guard let lock = held else { return }
            defer { lock.release() }
            let (steps, store, time) = (DeletionSteps(pool: pool), store, now())
            try await steps.run { try store.decisionWrites.deleteExpiredNonces(now: time) }
            try await steps.run { try store.idempotency.deleteExpired(now: time) }
            try await steps.run { try store.appRates.deleteExpired(now: time) }
            try await steps.run { try store.velocity.deleteExpired(now: time) }
            try await steps.run(try await pool.run { try store.velocity.excess() }) {
                try store.velocity.trim($0)
            }
            try await steps.run { try store.devices.deleteExpired(now: time) }
        } catch is CancellationError {
            // The service is ending: the next start continues.
        } catch {
            logger.warning(
                "expired nonces and keys cannot be deleted yet", metadata: ["detail": "\(error)"])
        }
    }
}
