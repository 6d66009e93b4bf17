// Queue ids of recent messages. A message that comes again under the same id passes this filter
// twice within one cleanup.

import Synchronization

/// Thread-safe. A queue id is unique only within one Postfix. If several use one filter, a
/// collision only makes a reply more detailed.
final class RecentMessages: Sendable {
    /// A second pass follows at once, with only concurrent messages in between. Beyond this number,
    /// the oldest half is dropped.
    private static let capacity = 2_000

    private let state = Mutex<(older: Set<String>, newer: Set<String>)>(([], []))

    func insert(_ queueID: String) {
        guard !queueID.isEmpty else { return }
        state.withLock { state in
            if state.newer.count >= Self.capacity / 2 { state = (state.newer, []) }
            state.newer.insert(queueID)
        }
    }

    func contains(_ queueID: String) -> Bool {
        state.withLock { $0.newer.contains(queueID) || $0.older.contains(queueID) }
    }
}
