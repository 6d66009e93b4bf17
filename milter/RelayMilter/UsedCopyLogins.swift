// Logins of sessions that handed copies over: Postfix logs them, and anyone who reads its log must not hand in another message by
// one.

import RelayCore
import Synchronization

/// Which logins had their session. Kept in memory: a copy comes back to the process that handed it over. Thread-safe.
final class UsedCopyLogins: Sendable {
    /// Beyond it none is taken, so that copies wait (451): a hundred sessions a second for as long as one is good.
    private static let maximum = 65_536

    private struct State {
        /// Those of the last period and of the one before it.
        var now: Set<String> = []
        var before: Set<String> = []
        /// When the period began, by a clock that no one sets.
        var began: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    /// Takes a login for one session; false where another one had it.
    func take(_ login: String, at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            // Whatever is forgotten has ended.
            let age = state.began.map { now - $0 } ?? .seconds(2 * CopyLogin.lifetime + 1)
            if age > .seconds(CopyLogin.lifetime) {
                state.before = age > .seconds(2 * CopyLogin.lifetime) ? [] : state.now
                (state.now, state.began) = ([], now)
            }
            guard !state.before.contains(login), state.now.count < Self.maximum else { return false }
            return state.now.insert(login).inserted
        }
    }
}
