// What decides, and keeps the log of it: made once for a process, used by routes, services and commands.

import AsyncHTTPClient
import Identity
import Logging
import PosternAPI
import PosternStore
import RiskDecisions

/// The service of decisions with what it is made of.
package struct DecisionParts: Sendable {
    package let service: DecisionService
    package let idempotency: IdempotencyGuard
    package let log: DecisionLogBuffer
    package let commits: GroupCommit
    /// Fetches issuers' keys; shut down by `DecisionLogService`, or `end`.
    let client: HTTPClient

    /// - Parameters:
    ///   - ownIssuer: `iss` of this installation's tokens; nil where it has no public address.
    ///   - executor: where calls of the store block.
    package init(
        store: Store, policies: any PolicySource, ownIssuer: String?, executor: any BlockingExecutor,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        let cache = KeySetCache(
            fetcher: HTTPKeySetFetcher(client: client), storage: StoredKeySets(store.issuers, logger: logger), now: now,
            logger: logger)
        let trust = TokenTrust(
            ownIssuer: ownIssuer, signer: IdentitySigner(store.identityKeys, now: now, logger: logger),
            issuers: StoredIssuers(store.issuers, now: now, logger: logger), cache: cache)
        log = DecisionLogBuffer(store.decisions, store.settlements)
        commits = GroupCommit(store.database)
        let breaker = StoreBreaker()
        service = DecisionService(
            store: store, policies: policies, verifier: TokenVerifier(issuers: trust, keys: trust), log: log, commits: commits,
            executor: executor, breaker: breaker, settings: DecisionService.Settings(ownIssuer: ownIssuer), now: now,
            logger: logger)
        idempotency = IdempotencyGuard(store: store, executor: executor, breaker: breaker, now: now)
    }

    /// Writes what waits, and lets go of everything: for commands.
    package func end() async throws {
        defer { commits.close() }
        try? await client.shutdown()
        try log.flush()
    }
}
