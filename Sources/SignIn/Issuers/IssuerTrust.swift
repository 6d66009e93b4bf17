// The issuers of the store with their keys, fetched and kept, for whoever verifies what they sign.

import Accounts
import AsyncHTTPClient
import Dispatch
import Logging

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

    /// Fetches the keys that grow old; where the store does not say whose there are, those that are known stay.
    package func refreshKeys() async {
        if let issuers = try? await issuers.all() { await keys.refresh(issuers) }
    }

    /// Ends the client that fetches.
    package func stop() async { try? await client.shutdown() }
}
