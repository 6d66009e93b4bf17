// API keys in memory: a request needs no read of the store, and keys are still checked while the
// store is unavailable.

import Accounts
import Database
import MailCrypto
import Synchronization

/// The keys that are not revoked. `refresh` is called every second, so that a revocation takes
/// effect within two seconds. An unknown key is looked up at once, so that a new key works as soon
/// as it is issued.
package final class KeyCache: Sendable {
    private struct State {
        var revision: APIKeyRepository.Revision?
        var credentials: [String: APIKeyRepository.Credential] = [:]
        /// Ids used since they were last written to the store.
        var used: Set<String> = []
    }

    /// Why a key is refused. The caller learns only that it is refused, unless the key was valid
    /// before.
    package enum Refusal: Error, Sendable { case unknown, expired }

    /// Lookups of unknown keys in the store per second. Beyond this rate, a key stays
    /// unknown until the next refresh.
    private static let missesPerSecond = 20.0

    private let repository: APIKeyRepository?
    private let pool: BlockingPool?
    private let misses = RateLimiter(
        perSecond: KeyCache.missesPerSecond, burst: KeyCache.missesPerSecond)
    private let state = Mutex(State())
    /// For access tokens, which are not cached.
    let tokens = TokenGuard()

    /// - Parameter pool: the pool for lookups of unknown keys; nil for no lookups.
    package init(_ repository: APIKeyRepository, pool: BlockingPool? = nil) {
        self.repository = repository
        self.pool = pool
    }

    /// Without any keys: for a service whose routes are all open.
    package init() { (repository, pool) = (nil, nil) }

    /// Reads the keys if they changed; returns whether they did.
    @discardableResult
    package func refresh() throws -> Bool {
        guard let repository else { return false }
        let revision = try repository.revision()
        guard state.withLock({ $0.revision }) != revision else { return false }
        let (read, credentials) = try repository.credentials()
        let byID = Dictionary(
            credentials.map { ($0.key.id, $0) }, uniquingKeysWith: { first, _ in first })
        state.withLock { state in
            state.revision = read
            state.credentials = byID
        }
        return true
    }

    /// The holder of this key.
    /// - Parameter now: seconds since 1970.
    package func principal(_ text: String, now: Int64) throws(Refusal) -> Principal {
        guard let key = APIKeyText(text) else { throw .unknown }
        let credential = state.withLock { $0.credentials[key.id] }
        // An unknown id takes as long as a known one.
        let hash = key.hash
        guard constantTimeEqual(hash, credential?.hash ?? [UInt8](repeating: 0, count: hash.count)),
            let credential
        else {
            throw .unknown
        }
        guard credential.key.state(now: now) == .active else { throw .expired }
        state.withLock { _ = $0.used.insert(key.id) }
        return Principal(keyID: key.id, scopes: credential.key.scopes, team: credential.key.team)
    }

    /// The same, but an unknown key is looked up in the store.
    package func principal(_ text: String, clock: APIClock) async throws(Refusal) -> Principal {
        do throws(Refusal) { return try principal(text, now: clock.now()) } catch {
            guard error == .unknown else { throw error }
        }
        guard let pool, APIKeyText(text) != nil, misses.take("", now: clock.monotonic()) == nil
        else { throw .unknown }
        _ = try? await pool.run { [self] in try refresh() }
        return try principal(text, now: clock.now())
    }

    /// Runs `body` on a thread that may block, because Swift's few threads answer other requests.
    func blocking<Value: Sendable>(
        _ body: @escaping @Sendable (KeyCache) throws -> Value
    ) async throws -> Value {
        guard let pool else { return try body(self) }
        return try await pool.run { [self] in try body(self) }
    }

    /// Writes the ids of the keys used today. If the store is unavailable, the ids wait for the
    /// next attempt.
    func flushUse(now: Int64) throws {
        let used = state.withLock { state in
            defer { state.used = [] }
            return state.used
        }
        do { try repository?.used(used.sorted(), day: now / 86_400) } catch {
            state.withLock { $0.used.formUnion(used) }
            throw error
        }
    }
}
