// Access tokens before the store is asked for them: whoever makes some up asks it no more often than for API keys.

import Accounts
import MailCrypto
import Synchronization

/// Lets tokens through that could be good. What was good lately is not held back by what others make up.
final class TokenGuard: Sendable {
    /// Tokens that were not good lately, of one client in a second: as for keys that are not known.
    private static let missesPerSecond = 20.0
    /// Seconds for which one that was good is known: as long as one lasts.
    private static let memory = 3600.0
    /// Tokens that are known. Beyond it those are forgotten that have expired; where that makes no room, all are, and looked for
    /// as new ones are.
    private static let kept = 10_000

    private let misses = RateLimiter(perSecond: TokenGuard.missesPerSecond, burst: TokenGuard.missesPerSecond)
    /// Hashes of good ones, and until when they are known.
    private let good = Mutex<[[UInt8]: Double]>([:])

    /// Whether the store may be asked for it: seconds to wait where not; nil where it may.
    /// - Parameter networks: of the client: what one makes up holds no other back.
    func wait(for token: String, from networks: [ClientNetwork], now: Double) -> Int? {
        let hash = SHA256.hash(Array(token.utf8))
        if good.withLock({ $0[hash].map { $0 > now } ?? false }) { return nil }
        return misses.take(networks, now: now)
    }

    /// Notes what the store said of one.
    func note(_ token: String, isGood: Bool, now: Double) {
        let hash = SHA256.hash(Array(token.utf8))
        good.withLock { good in
            guard isGood else { return good[hash] = nil }
            if good.count >= Self.kept, good[hash] == nil {
                good = good.filter { $0.value > now }
                if good.count >= Self.kept { good = [:] }
            }
            good[hash] = now + Self.memory
        }
    }
}
