// The store's issuers and their cached keys, for all code that verifies their signatures.

import Accounts
import AsyncHTTPClient
import Dispatch
import Logging

/// One instance serves for the whole life of a process.
package final class IssuerTrust: Sendable {
    package let issuers: StoredIssuers
    package let keys: KeySetCache
    private let client: HTTPClient

    package init(_ store: Store, now: @escaping @Sendable () -> Int64, logger: Logger) {
        client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        issuers = StoredIssuers(store.issuers, now: now, logger: logger)
        keys = KeySetCache(
            fetcher: HTTPKeySetFetcher(client: client),
            storage: StoredKeySets(store.issuers, logger: logger), now: now,
            logger: logger)
    }

    /// A client must be shut down, even if the service never started.
    deinit { client.shutdown(queue: .global()) { _ in } }

    /// Fetches keys that are no longer fresh; if the store cannot list the
    /// issuers, the known keys stay.
    package func refreshKeys() async {
        if let issuers = try? await issuers.all() { await keys.refresh(issuers) }
    }

    /// Shuts down the client that fetches keys.
    package func stop() async { try? await client.shutdown() }
}
