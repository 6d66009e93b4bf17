// Applies changes of live lists while the service runs, and deletes rows of lists that are not in
// use.

import Accounts
import Concurrency
import Database
import Decisions
import HTTP
import Logging
import ServiceLifecycle

/// Checks every second whether lists changed, and whether the lists that policies name exist. Once
/// an hour, deletes the rows that removed lists and imports left.
struct ListService: Service {
    let lists: ListsInForce
    let policies: ActivePolicies
    let store: Store
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger
    private let reported = ValueHolder<[String]>([])

    init(
        lists: ListsInForce, policies: ActivePolicies, store: Store, pool: BlockingPool,
        now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) {
        self.lists = lists
        self.policies = policies
        self.store = store
        self.pool = pool
        self.now = now
        self.logger = logger
    }

    /// Seconds between two deletions.
    private static let deletionInterval: Duration = .seconds(3_600)

    func run() async throws {
        // Large deletions must not delay lists.
        async let deletions: Void = PeriodicTask.untilShutdown(every: Self.deletionInterval) {
            await deleteUnneeded()
        }
        await PeriodicTask.untilShutdown(every: .seconds(1)) {
            try? await pool.run {
                lists.refresh(now: now())
                reportMissing()
            }
        }
        await deletions
    }

    /// Reports each missing list once, when it is first found missing.
    private func reportMissing() {
        let missing = lists.missing(policies.liveLists).map(\.name)
        for list in missing where !reported.current.contains(list) {
            logger.warning(
                "a policy names a list that does not exist or is of another kind: it counts as empty",
                metadata: ["list": "\(list)"])
        }
        reported.exchange(missing)
    }

    private func deleteUnneeded() async {
        do {
            let held = try await pool.run { [store] in try store.database.lock("lists") }
            guard let lock = held else { return }
            defer { lock.release() }
            let (store, now) = (store, now)
            try await DeletionSteps(pool: pool).run { try store.liveLists.step(now: now()) ? 1 : 0 }
        } catch is CancellationError {
            // The service is ending: the next start continues.
        } catch {
            logger.warning(
                "rows of removed lists could not be deleted; trying again later",
                metadata: ["detail": "\(error)"])
        }
    }
}
