// Idempotency keys in front of the service: in memory first, in the store for a
// restart and for other hosts.

import Accounts
import Database
import MailCrypto
import Synchronization

/// Not for speed: while the store is unavailable, a repeated request gets the same answer from
/// here.
///
/// Remembers answers by key, per team and endpoint. While the store is unavailable only memory is
/// used, so that answers continue.
package final class IdempotencyGuard: Sendable {
    fileprivate struct Key: Hashable, Sendable {
        let team: Int64
        let endpoint: String
        let mark: [UInt8]
    }

    private struct Entry {
        let body: [UInt8]
        let begunAt: Int64
        var answer: String?
    }

    /// A claimed key: finish or abandon it.
    package struct Claim: Sendable {
        fileprivate let key: Key
        fileprivate let isStored: Bool
        /// Identifies the claim: a later claim of the same key begins later.
        fileprivate let begunAt: Int64
    }

    /// The action for a request.
    package enum Verdict: Sendable {
        case proceed(Claim)
        case answered(String)
        case inFlight
        case otherBody
    }

    /// Answers in memory: some 700 octets each.
    private static let capacity = 20_000

    private let store: Store
    private let executor: any BlockingExecutor
    private let breaker: StoreBreaker
    private let now: @Sendable () -> Int64
    private let entries: Mutex<BoundedMemory<Key, Entry>>

    package init(
        store: Store, executor: any BlockingExecutor, breaker: StoreBreaker,
        now: @escaping @Sendable () -> Int64
    ) {
        self.store = store
        self.executor = executor
        self.breaker = breaker
        self.now = now
        entries = Mutex(BoundedMemory(capacity: Self.capacity))
    }

    /// Claims a key for a request.
    /// - Parameters:
    ///   - endpoint: different for each path, including ids of decisions.
    ///   - body: the octets of the request's body.
    package func claim(
        team: Int64, endpoint: String, key text: String, body: [UInt8]
    ) async throws -> Verdict {
        let key = Key(
            team: team, endpoint: endpoint, mark: store.decisionMarks.idempotencyKey(text))
        let hash = SHA256.hash(body)
        let time = now()
        if let verdict = remembered(key, hash, time) { return verdict }
        guard breaker.isClosed else {
            return .proceed(Claim(key: key, isStored: false, begunAt: time))
        }
        do {
            let claim = try await executor.run { [store] in
                try store.idempotency.claim(
                    team: key.team, endpoint: key.endpoint, key: key.mark, body: hash, now: time)
            }
            switch claim {
            case .new: return .proceed(Claim(key: key, isStored: true, begunAt: time))
            case .answered(let answer):
                entries.withLock { $0.set(key, Entry(body: hash, begunAt: time, answer: answer)) }
                return .answered(answer)
            case .inFlight:
                forget(key)
                return .inFlight
            case .otherBody:
                forget(key)
                return .otherBody
            }
        } catch let failure as StoreFailure where !failure.isRefusal {
            breaker.failed()
            return .proceed(Claim(key: key, isStored: false, begunAt: time))
        } catch {
            forget(key)
            throw error
        }
    }

    /// The verdict from memory; nil if the key is new. A new key then counts as in progress.
    private func remembered(_ key: Key, _ hash: [UInt8], _ time: Int64) -> Verdict? {
        entries.withLock { entries in
            if let entry = entries[key], time - entry.begunAt < IdempotencyRepository.retention {
                guard constantTimeEqual(entry.body, hash) else { return .otherBody }
                if let answer = entry.answer { return .answered(answer) }
                if time - entry.begunAt < IdempotencyRepository.flightTime { return .inFlight }
            }
            entries.set(key, Entry(body: hash, begunAt: time, answer: nil))
            return nil
        }
    }

    /// Stores the answer.
    package func finish(_ claim: Claim, _ answer: String) async {
        entries.withLock { entries in
            guard var entry = entries[claim.key], entry.begunAt == claim.begunAt else { return }
            entry.answer = answer
            entries.set(claim.key, entry)
        }
        guard claim.isStored else { return }
        // The answer is ready: it is sent even if the store cannot keep it.
        try? await executor.run { [store] in
            try store.idempotency.finish(
                team: claim.key.team, endpoint: claim.key.endpoint, key: claim.key.mark,
                begunAt: claim.begunAt,
                answer: answer)
        }
    }

    /// Frees the key of a request without an answer to store.
    package func abandon(_ claim: Claim) async {
        entries.withLock { entries in
            if entries[claim.key]?.begunAt == claim.begunAt { entries.remove(claim.key) }
        }
        guard claim.isStored else { return }
        try? await executor.run { [store] in
            try store.idempotency.abandon(
                team: claim.key.team, endpoint: claim.key.endpoint, key: claim.key.mark,
                begunAt: claim.begunAt)
        }
    }

    private func forget(_ key: Key) { entries.withLock { $0.remove(key) } }
}
