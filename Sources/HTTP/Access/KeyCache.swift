// API keys in memory: a request costs no read of the store, and keys are still checked while the store is away.

import Accounts
import MailCrypto
import Synchronization

/// The keys that are not revoked. `refresh` is called every second, so that a revocation takes effect within two. A key that is
/// not known is looked for at once, so that a new one opens as soon as it was issued.
package final class KeyCache: Sendable {
    private struct State {
        var revision: APIKeyRepository.Revision?
        var credentials: [String: APIKeyRepository.Credential] = [:]
        /// Ids used since they were last written down.
        var used: Set<String> = []
    }

    /// Why a key is not taken. The asker is told only that it is not, except where it was valid once.
    package enum Refusal: Error, Sendable { case unknown, expired }

    /// Looks into the store for keys that are not known, in a second. Beyond it: they are not known until the next refresh.
    private static let missesPerSecond = 20.0

    private let repository: APIKeyRepository?
    private let pool: BlockingPool?
    private let misses = RateLimiter(perSecond: KeyCache.missesPerSecond, burst: KeyCache.missesPerSecond)
    private let state = Mutex(State())
    /// For access tokens, which are not kept.
    let tokens = TokenGuard()

    /// - Parameter pool: where the store is asked for keys that are not known; nil where it is not.
    package init(_ repository: APIKeyRepository, pool: BlockingPool? = nil) {
        self.repository = repository
        self.pool = pool
    }

    /// Without any key: for a service whose routes are all open.
    package init() { (repository, pool) = (nil, nil) }

    /// Reads the keys where they changed; whether they did.
    @discardableResult
    package func refresh() throws -> Bool {
        guard let repository else { return false }
        let revision = try repository.revision()
        guard state.withLock({ $0.revision }) != revision else { return false }
        let (read, credentials) = try repository.credentials()
        let byID = Dictionary(credentials.map { ($0.key.id, $0) }, uniquingKeysWith: { first, _ in first })
        state.withLock { state in
            state.revision = read
            state.credentials = byID
        }
        return true
    }

    /// Who holds this key.
    /// - Parameter now: seconds since 1970.
    package func principal(_ text: String, now: Int64) throws(Refusal) -> Principal {
        guard let key = APIKeyText(text) else { throw .unknown }
        let credential = state.withLock { $0.credentials[key.id] }
        // As long for an unknown id as for a known one.
        let hash = key.hash
        guard constantTimeEqual(hash, credential?.hash ?? [UInt8](repeating: 0, count: hash.count)), let credential else {
            throw .unknown
        }
        guard credential.key.state(now: now) == .active else { throw .expired }
        state.withLock { _ = $0.used.insert(key.id) }
        return Principal(keyID: key.id, scopes: credential.key.scopes, team: credential.key.team)
    }

    /// The same, as the store has it now.
    package func principal(_ text: String, clock: APIClock) async throws(Refusal) -> Principal {
        do throws(Refusal) { return try principal(text, now: clock.now()) } catch {
            guard error == .unknown else { throw error }
        }
        guard let pool, APIKeyText(text) != nil, misses.take("", now: clock.monotonic()) == nil else { throw .unknown }
        _ = try? await pool.run { [self] in try refresh() }
        return try principal(text, now: clock.now())
    }

    /// Runs `body` where it may block: others' requests are answered on Swift's few threads.
    func blocking<Value: Sendable>(_ body: @escaping @Sendable (KeyCache) throws -> Value) async throws -> Value {
        guard let pool else { return try body(self) }
        return try await pool.run { [self] in try body(self) }
    }

    /// Writes down which keys were used today. Kept for the next time where the store is away.
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
