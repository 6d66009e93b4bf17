// API keys in memory: a request costs no read of the store, and keys are still checked while the store is away.

import MailCrypto
import PosternStore
import Synchronization

/// The keys that are not revoked. `refresh` is called every second, so that a revocation takes effect within two.
package final class KeyCache: Sendable {
    private struct State {
        var revision: APIKeyRepository.Revision?
        var credentials: [String: APIKeyRepository.Credential] = [:]
        /// Ids used since they were last written down.
        var used: Set<String> = []
    }

    /// Why a key is not taken. The asker is told only that it is not, except where it was valid once.
    package enum Refusal: Error, Sendable { case unknown, expired }

    private let repository: APIKeyRepository
    private let state = Mutex(State())

    package init(_ repository: APIKeyRepository) { self.repository = repository }

    /// Reads the keys where they changed; whether they did.
    @discardableResult
    package func refresh() throws -> Bool {
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
        guard constantTimeEqual(hash, credential?.hash ?? [UInt8](repeating: 0, count: hash.count)), let credential else { throw .unknown }
        guard credential.key.state(now: now) == .active else { throw .expired }
        state.withLock { _ = $0.used.insert(key.id) }
        if let team = credential.key.team {
            return .team(id: team.id, number: team.number, keyID: key.id, scopes: credential.key.scopes)
        }
        return .operator(keyID: key.id, scopes: credential.key.scopes)
    }

    /// Writes down which keys were used today. Kept for the next time where the store is away.
    package func flushUse(now: Int64) throws {
        let used = state.withLock { state in
            defer { state.used = [] }
            return state.used
        }
        do { try repository.used(used.sorted(), day: now / 86_400) } catch {
            state.withLock { $0.used.formUnion(used) }
            throw error
        }
    }
}
