// Checks each minute for mail in Postfix's queue to addresses at a relay domain. Such mail is never
// delivered: it passed no milter, or was not rewritten. Without this check, no one would notice it
// until it is returned days later.

import Concurrency
import Database
import Doctor
import HTTP
import Logging
import PosternMetrics
import ServiceLifecycle

struct QueueWatchService: Service {
    /// Seconds between two checks: such mail stays in the queue for days.
    private static let interval: Int64 = 60
    /// The maximum number of characters of a reason.
    private static let reasonLength = 200

    let directory: String
    let relayDomains: [String]
    let pool: BlockingPool
    let metrics: ServiceMetrics
    /// The reason why the queue cannot be read, for `postern status`; nil if it can.
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
                // Tools may print several lines, and the same ones each minute.
                let reason = String("\(error)".prefix { $0 != "\n" }.prefix(Self.reasonLength))
                if trouble.current != reason {
                    logger.notice(
                        "Postfix's queue cannot be checked", metadata: ["reason": "\(reason)"])
                }
                trouble.exchange(reason)
            }
            metrics.parkedMessages.set(Double(count ?? -1))
            if let count, count > known {
                logger.error(
                    "messages in Postfix's queue are for addresses at a relay domain",
                    metadata: ["count": "\(count)"])
            }
            known = count ?? known
        }
    }
}
