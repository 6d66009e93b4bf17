// Keys of other issuers, fetched before they grow old, so that no one waits for it.

import Concurrency
import ServiceLifecycle
import Web

struct IssuerKeysService: Service {
    private static let interval: Duration = .seconds(60)
    let parts: ServiceParts

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) { await parts.trust.refreshKeys() }
        await parts.trust.stop()
    }
}
