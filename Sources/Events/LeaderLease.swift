// A lease for work that only one process of all hosts on a store does at a time. It lasts only
// while its holder renews it.

import Synchronization

/// Takes and renews a lease, and knows without a read of the store whether it may still be valid.
///
/// The clocks of two hosts are not compared. A holder counts from before it requested a renewal.
/// The others count from when they saw the last change, and wait longer. A process that was
/// suspended finds its lease expired by its own clock before it does anything else.
package final class LeaderLease: Sendable {
    /// How long a holder may continue without a renewal.
    package static let duration: Duration = .seconds(5)
    /// Other processes take the lease if it has not changed for this long.
    package static let takeOver: Duration = .seconds(6)
    /// How often to call `acquire`. A holder that crashed is then replaced within 8 s.
    package static let renewal: Duration = .seconds(1)

    private struct State {
        var held: (lease: Lease, until: ContinuousClock.Instant)?
        /// The last state seen in the store, and the time since which it has been unchanged.
        var seen: (state: LeaseState, since: ContinuousClock.Instant)?
    }

    private let leases: LeaseRepository
    private let name: String
    private let holder = String(UInt64.random(in: .min ... .max), radix: 16)
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())
    /// One request to the store at a time.
    private let asking = Mutex(())

    /// - Parameter now: a clock that continues while the process is suspended.
    package init(
        _ leases: LeaseRepository, name: String,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        (self.leases, self.name, self.now) = (leases, name, now)
    }

    /// The held lease; nil if it was not renewed in time. Does not use the store.
    package var current: Lease? {
        state.withLock { state in state.held.flatMap { now() < $0.until ? $0.lease : nil } }
    }

    /// Renews the held lease, or takes one that has expired or is free. Nil if another process has
    /// it, or the store is unavailable. Blocks.
    ///
    /// A holder that was late gets a new fence: work that it began before does not count.
    package func acquire() -> Lease? {
        asking.withLock { _ in
            let begun = now()
            if let lease = current {
                do {
                    if try leases.renew(lease) {
                        hold(lease, from: begun)
                        return current
                    }
                } catch {
                    return current
                }
            }
            state.withLock { $0.held = nil }
            return (try? take()) ?? nil
        }
    }

    private func hold(_ lease: Lease, from begun: ContinuousClock.Instant) {
        state.withLock { $0.held = (lease, begun + Self.duration) }
    }

    private func take() throws -> Lease? {
        let found = try leases.state(name)
        let asked = now()
        let since = state.withLock { state in
            if state.seen?.state != found { state.seen = (found, asked) }
            return state.seen?.since ?? asked
        }
        guard found.isFree || found.holder == holder || asked - since >= Self.takeOver else {
            return nil
        }
        guard let lease = try leases.take(name, seen: found, holder: holder) else { return nil }
        hold(lease, from: asked)
        return current
    }

    /// Releases the lease, so that another process need not wait. Blocks.
    package func release() {
        asking.withLock { _ in
            let lease = state.withLock { state in
                defer { state.held = nil }
                return state.held?.lease
            }
            if let lease { try? leases.release(lease) }
        }
    }
}
