// Periodic work: writes counters and deletes expired data.

import Accounts
import Concurrency
import Database
import Foundation
import HTTP
import Logging
import Monitoring
import PersonalData
import ServiceLifecycle

/// Every second, writes counters and deletes rows of removed items. Every hour, deletes expired
/// data and releases unused code. Writes the remaining counters when the service ends.
struct HousekeepingService: Service {
    let store: Store
    let counters: CounterBuffer
    let rejections: RejectionBuffer
    let lastMail: LastMailBuffer
    /// Sends users their due notices by mail; blocks.
    let tellUsers: @Sendable () throws -> Void
    /// Ends suspensions that a provider's block caused.
    let reviewSuspensions: @Sendable () throws -> [ReturnedInboxes]
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger

    /// The pause between two deletions of expired data, on a monotonic clock.
    let deletionInterval: Duration
    /// The pause between two releases of unused code.
    private static let releaseInterval: Duration = .seconds(3600)
    /// How long the service deletes rows of removed items before it checks whether it must end.
    private static let removalTime: Duration = .seconds(1)
    /// By this time all services have started.
    private static let starting: Duration = .seconds(3)

    func run() async throws {
        // Neither large deletions nor removals must delay the counters.
        async let removals = PeriodicTask.untilShutdown(
            every: .seconds(1), keeping: FailedRemovals()
        ) {
            $0 = await takeAway($0)
        }
        async let deletions: Void = PeriodicTask.untilShutdown(every: deletionInterval) {
            await deleteExpired()
        }
        let start = (isInPlace: true, release: ContinuousClock.now + Self.starting)
        await PeriodicTask.untilShutdown(every: .seconds(1), keeping: start) { known in
            let wasInPlace = known.isInPlace
            known.isInPlace =
                (try? await pool.run {
                    defer { write() }
                    return look(was: wasInPlace)
                }) ?? wasInPlace
            if ContinuousClock.now >= known.release {
                ProgramPages.release()
                known.release = ContinuousClock.now + Self.releaseInterval
            }
        }
        _ = await removals
        await deletions
        try? await pool.finish { write() }
    }

    /// Whether the database file is still at the path at which it was opened; logs a change. While
    /// it is not, nothing is read or written.
    private func look(was isInPlace: Bool) -> Bool {
        do {
            try store.database.requireInPlace()
            if !isInPlace { logger.notice("the database file is in place again") }
            return true
        } catch {
            if isInPlace {
                logger.critical(
                    "the database file is not in place: nothing is read from it or written to it",
                    metadata: ["detail": "\(error)"])
            }
            return false
        }
    }

    /// Deletes some of the remaining rows of removed items, step by step.
    private func takeAway(_ failed: FailedRemovals) async -> FailedRemovals {
        let result = try? await pool.run { () -> FailedRemovals in
            var failed = failed
            do {
                // Half of the time is left to other writers.
                let failures = try store.removals.run(
                    now: now(), within: Self.removalTime, passing: failed.passing(at: .now)
                ) {
                    Thread.sleep(forTimeInterval: $0 / .seconds(1))
                }
                failed.endTrouble()
                if !failed.isEmpty { failed.forget(besides: try store.removals.items()) }
                for failure in failures where failed.isNew(failure, at: .now) {
                    logger.warning(
                        "deleted records could not be purged; trying again each minute",
                        metadata: ["of": "\(failure.item)", "detail": "\(failure.error)"])
                }
            } catch {
                if failed.isNew("\(error)", at: .now) {
                    logger.warning(
                        "deleted records could not be purged; trying again later",
                        metadata: ["detail": "\(error)"])
                }
            }
            return failed
        }
        return result ?? failed
    }

    private func write() {
        do {
            try counters.flush()
            try rejections.flush()
            try lastMail.flush()
            try store.addresses.switchDue(now: now())
            let accounts = counters.takeForwarded()
            do { try store.addresses.endCounted(accounts: accounts, now: now()) } catch {
                counters.putBack(forwarded: accounts)
                throw error
            }
        } catch {
            logger.warning("counters cannot be written yet", metadata: ["detail": "\(error)"])
        }
    }

    private func deleteExpired() async {
        do {
            // It is enough if one of several hosts does this. If this one cannot finish, another
            // one continues within the hour.
            let held = try await pool.run { [store] in try store.database.lock("housekeeping") }
            guard let lock = held else { return }
            defer { lock.release() }
            let (steps, store, now, time) = (DeletionSteps(pool: pool), store, now, now())
            try await goOn { try await steps.run { try store.tokens.deleteExpired(now: time) } }
            try await goOn { try await steps.run { try store.provider.deleteExpired(now: time) } }
            try await goOn { try await steps.run { try store.tombstones.deleteExpired(now: time) } }
            try await goOn { try await steps.run { try store.transfers.endExpired(now: time) } }
            try await goOn {
                try await steps.run { try store.externalEvents.deleteExpired(now: time) }
            }
            try await goOn {
                try await steps.run { try store.verifications.deleteExpired(now: time) }
            }
            try await goOn {
                try await steps.run { try store.sourceClaims.deleteExpiredCodes(now: time) }
            }
            try await goOn { try await steps.run { try store.persons.deleteRefusals(now: time) } }
            try await goOn { try await steps.run { try store.persons.deleteLastMail(now: time) } }
            try await goOn { [pool] in
                try await pool.run { try store.addresses.endCounted(accounts: nil, now: time) }
            }
            try await goOn { try await steps.run { try store.users.removeDue(now: time) } }
            try await goOn { try await steps.run { try store.persons.deleteTold(now: time) } }
            try await goOn { try await steps.run { try store.persons.tellTeamsOfUses(now: time) } }
            try await goOn { [pool, logger, reviewSuspensions] in
                for returned in try await pool.run(reviewSuspensions) {
                    logger.notice(
                        "suspensions of one provider's inboxes have ended",
                        metadata: [
                            "provider": "\(returned.provider)", "inboxes": "\(returned.count)",
                        ])
                }
            }
            // First, so that what a hold kept until now is deleted in this run.
            try await goOn {
                try await steps.run { try store.holds.endDue(now: time) }
                try await steps.run { try store.holds.deleteEnded() }
            }
            try await goOn { try await steps.run { try store.freezes.endDue(now: time) } }
            for retention in try await pool.run({ try store.retention.all() }) {
                try await goOn { try await delete(retention, steps, now: time) }
            }
            try await pool.run { [tellUsers] in
                try store.identityKeys.retireExpired(Change(actor: "serve", now: now()))
                try store.serviceStatus.deleteExpired(
                    before: time - 86_400, minutes: time - 2 * StatusReport.hour)
                // Last, because only this step waits for the mail server.
                try tellUsers()
            }
        } catch is CancellationError {
            // The service is ending: the next start continues.
        } catch {
            complain(error)
        }
    }

    /// Deletes one kind of row. If that fails, the other kinds are still deleted.
    private func goOn(_ delete: () async throws -> Void) async throws {
        do { try await delete() } catch let end as CancellationError { throw end } catch {
            complain(error)
        }
    }

    private func complain(_ error: any Error) {
        logger.warning("expired rows cannot be deleted yet", metadata: ["detail": "\(error)"])
    }

    /// Deletes rows older than their retention time.
    private func delete(_ retention: Retention, _ steps: DeletionSteps, now: Int64) async throws {
        let (before, store) = (now - Int64(retention.days) * 86_400, store)
        switch retention.dataClass {
        case .counters:
            try await steps.run {
                try store.counters.deleteExpired(countersBefore: before / 86_400, now: now)
            }
        case .decisions: try await steps.run { try store.decisions.deleteExpired(before: before) }
        case .checks: try await steps.run { try store.checks.deleteExpired(before: before) }
        case .rejections: try await steps.run { try store.rejections.deleteExpired(before: before) }
        case .deliveries:
            try await steps.run { try store.deliveries.deleteExpired(before: before) }
        case .dmarcReports:
            try await steps.run { try store.aggregateReports.deleteExpired(before: before) }
        case .audit: try await steps.run { try store.audit.deleteExpired(before: before) }
        case .usesByOthers:
            try await steps.run { try store.persons.deleteUses(before: before / 86_400) }
        default: break
        }
    }
}

/// Removals that failed. Each is reported once an hour, not every second, and does not stop other
/// removals.
package struct FailedRemovals: Sendable {
    /// The pause before a failed removal is tried again.
    private static let pause: Duration = .seconds(60)
    /// The pause before the same failure is reported again.
    private static let silence: Duration = .seconds(3600)

    private struct Report {
        let reason: String
        let at: ContinuousClock.Instant

        func covers(_ reason: String, at time: ContinuousClock.Instant) -> Bool {
            reason == self.reason && time - at < FailedRemovals.silence
        }
    }

    private var failed:
        [RemovalRepository.Item: (reported: Report, since: ContinuousClock.Instant)] = [:]
    private var trouble: Report?

    package init() {}

    /// The items that are not tried at this time.
    package func passing(at time: ContinuousClock.Instant) -> Set<RemovalRepository.Item> {
        Set(failed.filter { time - $0.value.since < Self.pause }.keys)
    }

    /// Whether nothing failed.
    package var isEmpty: Bool { failed.isEmpty }

    /// Deletes the records of items that no longer wait for removal.
    package mutating func forget(besides waiting: Set<RemovalRepository.Item>) {
        failed = failed.filter { waiting.contains($0.key) }
    }

    /// Records a failure; returns whether it has not been reported within the hour.
    package mutating func isNew(
        _ failure: RemovalRepository.Failure, at time: ContinuousClock.Instant
    ) -> Bool {
        if let reported = failed[failure.item]?.reported,
            reported.covers("\(failure.error)", at: time)
        {
            failed[failure.item] = (reported, time)
            return false
        }
        failed[failure.item] = (Report(reason: "\(failure.error)", at: time), time)
        return true
    }

    /// Called when the store answers: if the same trouble returns, it counts as new.
    package mutating func endTrouble() { trouble = nil }

    /// Records trouble that concerns no single item; returns whether it has not been reported
    /// within the hour.
    package mutating func isNew(_ trouble: String, at time: ContinuousClock.Instant) -> Bool {
        guard self.trouble?.covers(trouble, at: time) != true else { return false }
        self.trouble = Report(reason: trouble, at: time)
        return true
    }
}
