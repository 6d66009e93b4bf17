// The queue ids of what passed of late: a message that comes again under the same one passes this filter twice within one
// cleanup.

import Synchronization

/// Thread-safe. A queue id is Postfix's; with several Postfixes on one filter a chance meeting only makes an answer say more.
final class RecentMessages: Sendable {
    /// A second pass comes at once, with what passes beside it in between; beyond so many the oldest half is forgotten.
    private static let capacity = 2_000

    private let state = Mutex<(older: Set<String>, newer: Set<String>)>(([], []))

    func insert(_ queueID: String) {
        guard !queueID.isEmpty else { return }
        state.withLock { state in
            if state.newer.count >= Self.capacity / 2 { state = (state.newer, []) }
            state.newer.insert(queueID)
        }
    }

    func contains(_ queueID: String) -> Bool { state.withLock { $0.newer.contains(queueID) || $0.older.contains(queueID) } }
}
