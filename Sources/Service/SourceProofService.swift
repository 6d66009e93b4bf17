// Looks up the records of domains that teams added: often for new domains, once a month for proved
// ones.

import Accounts
import Concurrency
import Database
import HTTP
import Logging
import ServiceLifecycle

/// Of several hosts, only the one that has the store's lock does this.
struct SourceProofService: Service {
    /// The pause between two checks for due claims.
    private static let interval: Duration = .seconds(10)
    /// Claims in one round. The rest follow in the next round, the longest overdue first.
    static let perRound = 100

    let store: Store
    let prover: SourceProver
    let now: @Sendable () -> Int64
    let logger: Logger

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) {
            do {
                try await round()
            } catch is CancellationError {
            } catch {
                logger.warning(
                    "DNS records of sources could not be looked up; trying again later",
                    metadata: ["detail": "\(error)"])
            }
        }
        await prover.stop()
    }

    private func round() async throws {
        let (store, prover, now) = (store, prover, now)
        let held = try await prover.pool.run { () -> (any DatabaseLock)? in
            try store.sourceClaims.due(now: now(), limit: 1).isEmpty
                ? nil : store.database.lock("source-proofs")
        }
        guard let lock = held else { return }
        defer { lock.release() }
        // If a team's name servers do not answer, other teams and the end of the service must not
        // wait for them.
        var silent: Set<Int64> = []
        for claim in try await prover.pool.run({
            try store.sourceClaims.due(now: now(), limit: Self.perRound)
        })
        where !silent.contains(claim.teamNumber) {
            let found = try await prover.pool.run { try prover.look(at: claim, store, now: now()) }
            if !found.isAnswered { silent.insert(claim.teamNumber) }
            guard let state = found.state else { continue }
            logger.notice(
                "the state of a source changed",
                metadata: ["source": "\(claim.value)", "state": "\(state.rawValue)"])
        }
    }
}
