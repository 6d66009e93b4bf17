// Refreshes the keys of other issuers before they are too old, so that no
// request waits for a fetch.

import Concurrency
import ServiceLifecycle

struct IssuerKeysService: Service {
    private static let interval: Duration = .seconds(60)
    let parts: ServiceParts

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) { await parts.trust.refreshKeys() }
        await parts.trust.stop()
    }
}
