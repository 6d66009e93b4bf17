// What one of all processes and hosts on a store does at a time: a lease that only goes on while work does.

import Synchronization

/// Takes and renews a lease, and knows without asking the store whether it may still be ours.
///
/// No one compares clocks: a holder counts from before it asked for a renewal, the others from when they saw the last change, and
/// they wait longer. A process that stood still has lost its lease by its own clock before it does anything else.
package final class LeaderLease: Sendable {
    /// For so long its holder may go on without a renewal.
    package static let duration: Duration = .seconds(5)
    /// Others take it when it has not changed for so long.
    package static let takeOver: Duration = .seconds(6)
    /// How often it should be acquired again. With it, a holder that died is followed within 8 s.
    package static let renewal: Duration = .seconds(1)

    private struct State {
        var held: (lease: Lease, until: ContinuousClock.Instant)?
        /// What the store said last, and since when.
        var seen: (state: LeaseState, since: ContinuousClock.Instant)?
    }

    private let leases: LeaseRepository
    private let name: String
    private let holder = String(UInt64.random(in: .min ... .max), radix: 16)
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())
    /// One asks the store at a time.
    private let asking = Mutex(())

    /// - Parameter now: a clock that goes on while the process stands still.
    package init(
        _ leases: LeaseRepository, name: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        (self.leases, self.name, self.now) = (leases, name, now)
    }

    /// What is held; nil where it was not renewed in time. Costs nothing.
    package var current: Lease? {
        state.withLock { state in state.held.flatMap { now() < $0.until ? $0.lease : nil } }
    }

    /// Renews what is held, or takes what no one renews; nil where another process has it, or the store is away. Blocks.
    ///
    /// A holder that was late gets another fence: what it began before is void.
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
        guard found.isFree || found.holder == holder || asked - since >= Self.takeOver else { return nil }
        guard let lease = try leases.take(name, seen: found, holder: holder) else { return nil }
        hold(lease, from: asked)
        return current
    }

    /// Gives it back, so that another process need not wait. Blocks.
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
