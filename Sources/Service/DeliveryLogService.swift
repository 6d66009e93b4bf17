// Reads the log that `delivery.log` names while the relay runs.

import Accounts
import Concurrency
import Database
import Logging
import PosternConfiguration
import Relay
import ServiceLifecycle
import Synchronization

/// Each host reads its own log. A log that cannot be read is reported, and mail flows.
struct DeliveryLogService: Service {
    /// The pause after the end of the log was reached.
    private static let interval: Duration = .seconds(2)

    let path: String
    let installation: Installation
    /// The keys that the mail path uses: return paths of new messages are made with them.
    let keysInUse: ValueHolder<KeyRing>
    let pool: BlockingPool
    /// The reason why the log cannot be read, for `postern status`; nil if it can.
    let trouble: ValueHolder<String?>
    let now: @Sendable () -> Int64
    let logger: Logger

    /// The follower, for one caller at a time. Not copied for a step, as it knows all messages that
    /// are in the queue.
    private final class Reader: Sendable {
        private struct State {
            var follower: DeliveryLogFollower
            var keys: KeyRing
        }

        private let state: Mutex<State>

        init(_ follower: sending DeliveryLogFollower, keys: KeyRing) {
            state = Mutex(State(follower: follower, keys: keys))
        }

        func step(keys: KeyRing) -> DeliveryLogFollower.Outcome {
            state.withLock { state in
                if state.keys != keys, state.follower.use(keys) { state.keys = keys }
                return state.follower.step()
            }
        }
    }

    func run() async throws {
        let keys = keysInUse.current
        guard let log = DeliveryLog(installation, keys: keys, now: now) else {
            report("the token keys cannot be used")
            return try await gracefulShutdown()
        }
        let reader = Reader(DeliveryLogFollower(path: path, log: log), keys: keys)
        await PeriodicTask.untilShutdown(keeping: ()) { _ in
            let keys = keysInUse.current
            // Ends only when the service does.
            guard let outcome = try? await pool.run({ reader.step(keys: keys) }) else {
                return Self.interval
            }
            switch outcome {
            case .read(_, let isAtEnd):
                report(nil)
                return isAtEnd ? Self.interval : .zero
            case .failed(let failure):
                report("\(path): \(failure)")
            case .waiting(let error):
                // `postern status` reports the store itself.
                logger.debug(
                    "results of forwards cannot be written yet", metadata: ["detail": "\(error)"])
            }
            return Self.interval
        }
    }

    private func report(_ reason: String?) {
        guard trouble.current != reason else { return }
        if let reason {
            logger.warning("Postfix's log cannot be read", metadata: ["reason": "\(reason)"])
        } else {
            logger.notice("Postfix's log can be read again", metadata: ["path": "\(path)"])
        }
        trouble.exchange(reason)
    }
}
