// The issuers of the store with their keys, fetched and kept, for whoever verifies what they sign.

import Accounts
import SignIn
import Concurrency
import AsyncHTTPClient
import Dispatch
import Logging
import ServiceLifecycle

/// One for the life of a process.
package final class IssuerTrust: Sendable {
    package let issuers: StoredIssuers
    package let keys: KeySetCache
    private let client: HTTPClient

    package init(_ store: Store, now: @escaping @Sendable () -> Int64, logger: Logger) {
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        issuers = StoredIssuers(store.issuers, now: now, logger: logger)
        keys = KeySetCache(
            fetcher: HTTPKeySetFetcher(client: client), storage: StoredKeySets(store.issuers, logger: logger), now: now,
            logger: logger)
    }

    /// A client must be shut down, also where the service never came to run.
    deinit { client.shutdown(queue: .global()) { _ in } }

    package func stop() async { try? await client.shutdown() }
}

/// Fetches keys before they grow old, so that no one waits for it.
struct IssuerKeysService: Service {
    private static let interval: Duration = .seconds(60)
    let trust: IssuerTrust

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) {
            if let issuers = try? await trust.issuers.all() { await trust.keys.refresh(issuers) }
        }
        await trust.stop()
    }
}
