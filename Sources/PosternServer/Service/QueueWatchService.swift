// Looks each minute whether mail lies in Postfix's queue for an address at a relay domain. Nothing there is delivered: what lies there
// came past the filter, or was not rewritten, and nobody would hear of it until it is returned days later.

import Logging
import PosternAPI
import PosternMetrics
import PostfixSetup
import ServiceLifecycle

struct QueueWatchService: Service {
    /// Seconds between two looks: what lies there has days.
    private static let interval: Int64 = 60

    let directory: String
    let relayDomains: [String]
    let pool: BlockingPool
    let metrics: ServiceMetrics
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var known = 0
            while !Task.isCancelled {
                // Where the queue may not be looked at, nothing is said: doctor tells.
                let count = try? await pool.run { [directory, relayDomains] in
                    try PostfixQueue.parked(at: relayDomains, directory: directory)
                }
                metrics.parkedMessages.set(Double(count ?? -1))
                if let count, count > known {
                    logger.error("messages lie in Postfix's queue for addresses at a relay domain", metadata: ["count": "\(count)"])
                }
                known = count ?? known
                try? await Task.sleep(for: .seconds(Self.interval))
            }
        }
    }
}
