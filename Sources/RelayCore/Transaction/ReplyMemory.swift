// The budget that held bodies of replies share.

import Synchronization

/// Octets of message bodies held at one time, over all sessions.
package final class ReplyMemory: Sendable {
    package let limit: Int
    private let used = Mutex(0)

    package init(limit: Int) { self.limit = limit }

    /// Takes octets from the budget; false, and nothing taken, where they are not left.
    package func take(_ octets: Int) -> Bool {
        used.withLock { used in
            guard octets <= limit - used else { return false }
            used += octets
            return true
        }
    }

    package func give(back octets: Int) { used.withLock { $0 -= octets } }

    package var inUse: Int { used.withLock { $0 } }
}
