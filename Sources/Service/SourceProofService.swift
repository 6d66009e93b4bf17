// Looks for the records of domains that teams added: of new ones often, of proved ones each month.

import Accounts
import Concurrency
import Database
import HTTP
import Logging
import ServiceLifecycle
import Web

/// One of several hosts looks: whoever has the lock of the store.
struct SourceProofService: Service {
    /// Between two looks for what is due.
    private static let interval: Duration = .seconds(10)
    /// Claims of one round; what is left has its turn in the next, the longest overdue first.
    static let perRound = 100

    let store: Store
    let prover: SourceProver
    let now: @Sendable () -> Int64
    let logger: Logger

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) {
            do {
                try await prover.pool.run { try round() }
            } catch is CancellationError {
            } catch {
                logger.warning("records of sources cannot be looked for yet", metadata: ["detail": "\(error)"])
            }
        }
        await prover.stop()
    }

    private func round() throws {
        guard try !store.sourceClaims.due(now: now(), limit: 1).isEmpty,
            let lock = try store.database.lock("source-proofs")
        else { return }
        defer { lock.release() }
        for (claim, state) in try prover.round(store, now: now, limit: Self.perRound) {
            logger.notice(
                "the state of a source changed", metadata: ["domain": "\(claim.domain)", "state": "\(state.rawValue)"])
        }
    }
}
