// Applies changes of signing keys (generated, activated, retired) while the relay runs.

import Concurrency
import Database
import HTTP
import Logging
import Relay
import ServiceLifecycle

/// Checks every two seconds whether the signing keys changed, on this host or another one
/// with the same database.
struct SigningKeyService: Service {
    let signer: RelaySigner
    let pool: BlockingPool
    let logger: Logger

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(2)) {
            do {
                if try await pool.run(signer.refresh) {
                    logger.notice("signing keys changed", metadata: ["keys": "\(summary)"])
                }
            } catch is CancellationError {
                // The service is ending.
            } catch {
                logger.error(
                    "signing keys cannot be read, the old ones stay in use",
                    metadata: ["detail": "\(error)"])
            }
        }
    }

    private var summary: String {
        let counts = signer.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return counts.isEmpty ? "none, mail leaves unsigned" : counts.joined(separator: ", ")
    }
}
