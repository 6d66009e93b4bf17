// Looks each minute whether mail is in Postfix's queue for an address at a relay domain. Nothing there is delivered: what is
// there came past the filter, or was not rewritten, and no one would hear of it until it is returned days later.

import Concurrency
import Doctor
import HTTP
import Logging
import PosternMetrics
import ServiceLifecycle

struct QueueWatchService: Service {
    /// Seconds between two looks: what is there has days.
    private static let interval: Int64 = 60
    /// Characters of a reason that are kept.
    private static let reasonLength = 200

    let directory: String
    let relayDomains: [String]
    let pool: BlockingPool
    let metrics: ServiceMetrics
    /// Why the queue cannot be looked at, for `postern status`; nil where it can.
    let trouble: ValueHolder<String?>
    let logger: Logger

    func run() async throws {
        await PeriodicTask.untilShutdown(every: .seconds(Self.interval), keeping: 0) { known in
            var count: Int?
            do {
                count = try await pool.run { [directory, relayDomains] in
                    try PostfixProbe.parked(at: relayDomains, directory: directory)
                }
                trouble.exchange(nil)
            } catch is CancellationError {
                return
            } catch {
                // Tools may say more than the first line, and again each minute.
                let reason = String("\(error)".prefix { $0 != "\n" }.prefix(Self.reasonLength))
                if trouble.current != reason {
                    logger.notice("Postfix's queue cannot be checked", metadata: ["reason": "\(reason)"])
                }
                trouble.exchange(reason)
            }
            metrics.parkedMessages.set(Double(count ?? -1))
            if let count, count > known {
                logger.error("messages in Postfix's queue are for addresses at a relay domain", metadata: ["count": "\(count)"])
            }
            known = count ?? known
        }
    }
}
