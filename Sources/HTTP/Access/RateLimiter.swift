// How often a key, or a client without one, may send requests: one token bucket each.

import Synchronization

/// Token buckets by name: a key's id, or a client's network. Removes full ones.
package final class RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Double
        /// A factor for rate and burst.
        let share: Double
    }

    private struct State {
        var buckets: [String: Bucket] = [:]
        /// Number of buckets at which full ones are removed: twice the number after the last
        /// removal, to keep the cost low.
        var sweepsAt = RateLimiter.kept
    }

    /// The number of buckets that are kept without checking whether they are full.
    private static let kept = 10_000

    private let perSecond: Double
    private let burst: Double
    private let state = Mutex(State())

    /// - Parameters:
    ///   - perSecond: the lasting rate, in requests per second.
    ///   - burst: requests that may come at once after a pause.
    package init(perSecond: Double, burst: Double) {
        self.perSecond = max(0.001, perSecond)
        self.burst = max(1, burst)
    }

    /// Takes a token. Returns nil on success, otherwise the whole seconds
    /// until a token is available.
    /// - Parameter now: seconds on a clock that never goes back.
    package func take(_ key: String, now: Double) -> Int? {
        take([ClientNetwork(name: key, share: 1)], now: now)
    }

    /// Takes a token from each network of a client, or from none. A refused client takes no tokens
    /// from its neighbours.
    package func take(_ networks: [ClientNetwork], now: Double) -> Int? {
        state.withLock { state in
            if state.buckets.count >= state.sweepsAt {
                state.buckets = state.buckets.filter {
                    level($0.value, now) < burst * $0.value.share
                }
                state.sweepsAt = max(Self.kept, 2 * state.buckets.count)
            }
            var wait = 0.0
            var taken: [(String, Bucket)] = []
            for network in networks {
                let share = Double(network.share)
                let tokens = state.buckets[network.name].map { level($0, now) } ?? burst * share
                if tokens < 1 { wait = max(wait, (1 - tokens) / (perSecond * share)) }
                taken.append((network.name, Bucket(tokens: tokens - 1, at: now, share: share)))
            }
            guard wait == 0 else { return Int(min(3600, wait.rounded(.up))) }
            for (name, bucket) in taken { state.buckets[name] = bucket }
            return nil
        }
    }

    /// Gives back what `take` took, for a request that turned out not to count.
    package func giveBack(_ networks: [ClientNetwork]) {
        state.withLock { state in
            for network in networks {
                guard let bucket = state.buckets[network.name] else { continue }
                state.buckets[network.name]?.tokens = min(burst * bucket.share, bucket.tokens + 1)
            }
        }
    }

    /// Checks for a token without taking it: the whole seconds to wait; nil if there is a token.
    package func wait(_ networks: [ClientNetwork], now: Double) -> Int? {
        state.withLock { state in
            let waits = networks.map { network in
                let share = Double(network.share)
                let tokens = state.buckets[network.name].map { level($0, now) } ?? burst * share
                return tokens < 1 ? (1 - tokens) / (perSecond * share) : 0
            }
            let wait = waits.max() ?? 0
            return wait == 0 ? nil : Int(min(3600, wait.rounded(.up)))
        }
    }

    private func level(_ bucket: Bucket, _ now: Double) -> Double {
        min(
            burst * bucket.share, bucket.tokens + max(0, now - bucket.at) * perSecond * bucket.share
        )
    }
}
