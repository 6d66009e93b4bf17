// Lets a session wait until there is memory to rewrite its message.

import Concurrency
import RelayCore

/// Waits on the monotonic clock, on the thread that created it.
package final class MilterTurn: RewritingTurn, @unchecked Sendable {
    private let hasBegun = Monitor(false)
    private let interval: Duration
    private let whileWaiting: () -> Void

    /// - Parameters:
    ///   - interval: much shorter than Postfix's timeout for its filter (milter_content_timeout,
    ///     300 s).
    ///   - whileWaiting: called after each interval, so that Postfix does not time out.
    package init(interval: Duration = .seconds(10), whileWaiting: @escaping () -> Void) {
        self.interval = interval
        self.whileWaiting = whileWaiting
    }

    package func begin() { hasBegun.with { $0 = true } }

    package func wait() {
        while !hasBegun.wait(atMost: interval, until: { $0 }) { whileWaiting() }
    }
}
