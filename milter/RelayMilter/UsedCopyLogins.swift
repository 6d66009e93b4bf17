// The logins of sessions that handed over copies. Postfix logs them, and a reader of its log must
// not be able to submit another message with one.

import RelayCore
import Synchronization

/// Used logins. Kept in memory, as a copy returns to the process that handed it over. Thread-safe.
final class UsedCopyLogins: Sendable {
    /// Beyond this number no login is accepted, so that copies wait (451). It allows a hundred
    /// sessions a second during the lifetime of a login.
    private static let maximum = 65_536

    private struct State {
        /// Logins of the current period and of the one before it.
        var now: Set<String> = []
        var before: Set<String> = []
        /// The start of the period, on a clock that cannot be set.
        var began: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    /// Uses up a login for one session; false if another session has used it.
    func take(_ login: String, at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            // Every login that is dropped here has expired.
            let age = state.began.map { now - $0 } ?? .seconds(2 * CopyLogin.lifetime + 1)
            if age > .seconds(CopyLogin.lifetime) {
                state.before = age > .seconds(2 * CopyLogin.lifetime) ? [] : state.now
                (state.now, state.began) = ([], now)
            }
            guard !state.before.contains(login), state.now.count < Self.maximum else {
                return false
            }
            return state.now.insert(login).inserted
        }
    }
}
