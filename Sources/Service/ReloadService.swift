// SIGHUP: the configuration is read again, and takes effect with the next transaction.

import Logging
import PosternAPI
import ServiceLifecycle
import UnixSignals

package struct ReloadService: Service {
    private let logger: Logger
    private let pool: BlockingPool
    private let reload: @Sendable () throws -> Reload

    /// - Parameter reload: reads the configuration and puts it in force; where it throws, the old one stays.
    package init(pool: BlockingPool, logger: Logger, reload: @escaping @Sendable () throws -> Reload) {
        self.pool = pool
        self.logger = logger
        self.reload = reload
    }

    package func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            do {
                try await pool.run(reload).log(to: logger)
            } catch {
                logger.error("configuration not reloaded, the old one stays in force", metadata: ["detail": "\(error)"])
            }
        }
    }
}
