// Applies changes of the key file while the service runs, and converts values sealed with older
// keys.

import Accounts
import Administration
import Concurrency
import Database
import HTTP
import Logging
import PosternConfiguration
import ServiceLifecycle

/// Checks every second whether the key file changed, and applies its keys. Seals the values of old
/// keys again, on one host at a time, in small batches.
struct KeyFileService: Service {
    /// Seconds between two batches: mail has the database for longer than a batch took.
    private static let pause = 0.01
    /// Seconds after which a pass is repeated while old keys are in the file: another host may have
    /// used one until then.
    private static let repetition: Int64 = 300

    let installation: Installation
    let pool: BlockingPool
    let now: @Sendable () -> Int64
    let logger: Logger
    /// The keys that the mail path uses.
    let inUse: ValueHolder<KeyRing>
    /// Switches the mail path to the keys in force; tried each second until it succeeds.
    let changed: @Sendable () throws -> Void

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(1), keeping: Known()) { known in
            do {
                try await refresh(&known.refused)
                let ring = installation.keys
                let isOld = !ring.seal.old.isEmpty || !ring.index.old.isEmpty
                let isDone =
                    known.done.map { $0.ring == ring && now() - $0.at < Self.repetition } ?? false
                if isOld, !isDone, try await reencrypt() { known.done = (ring, now()) }
                known.trouble = nil
            } catch is CancellationError {
                return
            } catch {
                let trouble = "\(error)"
                if trouble != known.trouble {
                    logger.warning(
                        "keys cannot be maintained yet", metadata: ["detail": "\(trouble)"])
                }
                known.trouble = trouble
            }
        }
    }

    /// State passed from one check to the next.
    private struct Known: Sendable {
        var refused: KeyRing?
        var done: (ring: KeyRing, at: Int64)?
        /// The trouble that is already logged.
        var trouble: String?
    }

    func refresh(_ refused: inout KeyRing?) async throws {
        let installation = installation
        switch try await pool.run({ [refused] in try installation.changedKeys(refused: refused) }) {
        case nil: break
        case .usable(let keys): installation.store.keys.exchange(keys)
        case .refused(let keys, let reason):
            // Logged once. The keys in force stay, and mail flows.
            refused = keys
            return logger.error(
                "the changed key file is not loaded", metadata: ["detail": "\(reason)"])
        }
        guard installation.keys != inUse.current else { return }
        let ring = installation.keys
        try await pool.run { try changed() }
        inUse.exchange(ring)
        let keys = ring.summary.sorted { $0.key < $1.key }.map {
            "\($0.key) \($0.value.prefix { $0 != " " })"
        }
        logger.notice("keys changed", metadata: ["keys": "\(keys.joined(separator: ", "))"])
    }

    /// Returns whether this host has completed a pass.
    private func reencrypt() async throws -> Bool {
        let (installation, now) = (installation, now)
        let isCancelled = ValueHolder(false)
        return try await withTaskCancellationHandler {
            let count = try await pool.run { () -> Int? in
                guard let lock = try installation.store.database.lock("key-rotation") else {
                    return nil
                }
                defer { lock.release() }
                return try KeyRotation(installation, now: now).reencrypt(pause: Self.pause) {
                    _, _ in !isCancelled.current
                }
            }
            guard let count else { return false }
            if count > 0 {
                logger.notice(
                    "values converted to the active keys", metadata: ["count": "\(count)"])
            }
            return !isCancelled.current
        } onCancel: {
            isCancelled.exchange(true)
        }
    }
}
