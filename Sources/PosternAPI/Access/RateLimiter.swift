// How often a key, or a client without one, may ask: a token bucket each.

import Synchronization

/// Token buckets by name: a key's id, a client's network. Forgets full ones.
package final class RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Double
    }

    private let perSecond: Double
    private let burst: Double
    private let buckets = Mutex<[String: Bucket]>([:])

    /// - Parameters:
    ///   - perSecond: requests a second that may go on for ever.
    ///   - burst: requests that may come at once after a pause.
    package init(perSecond: Double, burst: Double) {
        self.perSecond = max(0.001, perSecond)
        self.burst = max(1, burst)
    }

    /// Takes a token. Nil when there was one; else the whole seconds until there will be.
    /// - Parameter now: seconds on a clock that never goes back.
    package func take(_ key: String, now: Double) -> Int? {
        buckets.withLock { buckets in
            if buckets.count > 10_000 { buckets = buckets.filter { $0.value.tokens + (now - $0.value.at) * perSecond < burst } }
            var bucket = buckets[key] ?? Bucket(tokens: burst, at: now)
            bucket.tokens = min(burst, bucket.tokens + max(0, now - bucket.at) * perSecond)
            bucket.at = now
            defer { buckets[key] = bucket }
            guard bucket.tokens >= 1 else { return Int(min(3600, ((1 - bucket.tokens) / perSecond).rounded(.up))) }
            bucket.tokens -= 1
            return nil
        }
    }
}
