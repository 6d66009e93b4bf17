// What has to be done now and then: counters written, what has expired deleted.

import Logging
import PosternStore
import ServiceLifecycle

/// Writes counters every second, deletes what has expired every hour, and writes what is left when the service ends.
package struct HousekeepingService: Service {
    private let store: Store
    private let counters: CounterBuffer
    private let now: @Sendable () -> Int64
    private let logger: Logger

    /// Seconds between two deletions of what has expired.
    private static let deletionInterval: Int64 = 3600
    /// Days for which daily counters are kept.
    private static let counterDays: Int64 = 400

    package init(store: Store, counters: CounterBuffer, now: @escaping @Sendable () -> Int64, logger: Logger) {
        self.store = store
        self.counters = counters
        self.now = now
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var nextDeletion = now()
            while !Task.isCancelled {
                write()
                if now() >= nextDeletion {
                    deleteExpired()
                    nextDeletion = now() + Self.deletionInterval
                }
                try? await Task.sleep(for: .seconds(1))
            }
        }
        write()
    }

    private func write() {
        do { try counters.flush() } catch { logger.warning("counters cannot be written yet", metadata: ["detail": "\(error)"]) }
    }

    private func deleteExpired() {
        do {
            while try store.tokens.deleteExpired(now: now()) == 1000 {}
            while try store.verifications.deleteExpired(now: now()) == 1000 {}
            while try store.counters.deleteExpired(countersBefore: now() / 86_400 - Self.counterDays, now: now()) == 1000 {}
        } catch {
            logger.warning("expired rows cannot be deleted yet", metadata: ["detail": "\(error)"])
        }
    }
}
