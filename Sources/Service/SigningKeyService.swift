// Keys that are generated, activated and retired while the relay runs.

import Logging
import PosternAPI
import Relay
import ServiceLifecycle

/// Looks every two seconds whether the signing keys changed, on this host or another one of the same database.
package struct SigningKeyService: Service {
    private let signer: RelaySigner
    private let pool: BlockingPool
    private let logger: Logger

    package init(signer: RelaySigner, pool: BlockingPool, logger: Logger) {
        self.signer = signer
        self.pool = pool
        self.logger = logger
    }

    package func run() async throws {
        await PeriodicTask.run(every: .seconds(2)) {
            do {
                if try await pool.run(signer.refresh) { logger.notice("signing keys changed", metadata: ["keys": "\(summary)"]) }
            } catch is CancellationError {
                // The end.
            } catch {
                logger.error("signing keys cannot be read, the old ones stay in use", metadata: ["detail": "\(error)"])
            }
        }
    }

    private var summary: String {
        let counts = signer.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return counts.isEmpty ? "none, mail leaves unsigned" : counts.joined(separator: ", ")
    }
}
