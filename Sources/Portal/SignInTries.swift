// Tries of codes and passkeys by network. Only wrong ones count, even if several come at once.

import HTTP
import Synchronization

/// A try takes its place before it is checked, so that simultaneous tries cannot exceed the limit.
/// A correct try gives its place back. If the places are full while other tries are being checked,
/// a new try waits for their results.
final class SignInTries: Sendable {
    private enum Answer {
        case begun
        /// Other tries are being checked, and may give their places back.
        case busy
        /// The whole seconds until there is a place.
        case full(Int)
    }

    private struct State {
        var underWay: [ClientNetwork: Int] = [:]
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let places: RateLimiter
    private let state = Mutex(State())

    init(_ places: RateLimiter) { self.places = places }

    /// Begins a try, which `end` must end. Returns nil on success, otherwise the whole
    /// seconds until there is a place.
    /// - Parameter now: seconds on a clock that never goes back.
    func begin(_ networks: [ClientNetwork], now: () -> Double) async -> Int? {
        while true {
            switch attempt(networks, now()) {
            case .begun: return nil
            case .full(let seconds): return seconds
            case .busy: await anotherEnds(networks)
            }
        }
    }

    func end(_ networks: [ClientNetwork], isWrong: Bool) {
        let waiting = state.withLock { state in
            if !isWrong { places.giveBack(networks) }
            for network in networks {
                let others = (state.underWay[network] ?? 1) - 1
                state.underWay[network] = others > 0 ? others : nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
        for next in waiting { next.resume() }
    }

    private func attempt(_ networks: [ClientNetwork], _ now: Double) -> Answer {
        state.withLock { state in
            if let seconds = places.take(networks, now: now) {
                return networks.contains { state.underWay[$0] != nil } ? .busy : .full(seconds)
            }
            for network in networks { state.underWay[network, default: 0] += 1 }
            return .begun
        }
    }

    private func anotherEnds(_ networks: [ClientNetwork]) async {
        await withCheckedContinuation { next in
            let isBusy = state.withLock { state in
                guard networks.contains(where: { state.underWay[$0] != nil }) else { return false }
                state.waiting.append(next)
                return true
            }
            if !isBusy { next.resume() }
        }
    }
}
