// SIGHUP: the service reads the configuration again, which takes effect with the next transaction.

import Database
import Logging
import PosternMetrics
import ServiceLifecycle
import UnixSignals

struct ReloadService: Service {
    let logger: Logger
    let pool: BlockingPool
    let metrics: ServiceMetrics
    /// Reads the configuration and applies it; if it throws, the old one stays in force.
    let reload: @Sendable () throws -> Reload

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            do {
                try await pool.run(reload).log(to: logger)
                metrics.reloads("done").add()
            } catch {
                metrics.reloads("refused").add()
                logger.error(
                    "configuration not reloaded, the old one stays in force",
                    metadata: ["detail": "\(error)"])
            }
        }
    }
}
