// Checks access tokens before the store does: invented tokens cause no more lookups than invented
// API keys.

import Accounts
import MailCrypto
import Synchronization

/// Passes tokens that could be valid. Recently valid tokens are not delayed by invented ones.
final class TokenGuard: Sendable {
    /// Tokens per second from one client that were not valid recently; the same
    /// rate as for unknown keys.
    private static let missesPerSecond = 20.0
    /// Seconds for which a valid token is remembered: as long as a token lasts.
    private static let memory = 3600.0
    /// The most tokens that are remembered. Beyond this, expired ones are removed. If that makes no
    /// room, all are removed and count as new.
    private static let kept = 10_000

    private let misses = RateLimiter(
        perSecond: TokenGuard.missesPerSecond, burst: TokenGuard.missesPerSecond)
    /// Hashes of valid tokens, and until when they are remembered.
    private let good = Mutex<[[UInt8]: Double]>([:])

    /// Whether the store may look up the token: nil if it may, otherwise the seconds to wait.
    /// - Parameter networks: the client's networks. Invented tokens of one client delay no other
    ///   client.
    func wait(for token: String, from networks: [ClientNetwork], now: Double) -> Int? {
        let hash = SHA256.hash(Array(token.utf8))
        if good.withLock({ $0[hash].map { $0 > now } ?? false }) { return nil }
        return misses.take(networks, now: now)
    }

    /// Records whether the store knows a token.
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
