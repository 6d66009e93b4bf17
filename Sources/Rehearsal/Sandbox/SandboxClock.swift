// The clock of a sandbox, for the whole service: the machine's clock, and the seconds added to it.

import Synchronization

final class SandboxClock: Sendable {
    private let base: @Sendable () -> Int64
    private let added = Mutex<Int64>(0)
    /// Ten years in seconds: enough for every rule.
    static let most: Int64 = 3_650 * 86_400

    /// - Parameter base: seconds since 1970.
    init(_ base: @escaping @Sendable () -> Int64) { self.base = base }

    /// Seconds since 1970.
    var now: Int64 { base() + offset }

    /// Seconds that were added.
    var offset: Int64 { added.withLock { $0 } }

    /// Moves the clock forward to this offset. False for an offset below the present one or beyond
    /// `most`: the store contains times, and none of them may be in the future.
    func set(offset new: Int64) -> Bool {
        added.withLock { offset in
            guard (offset...Self.most).contains(new) else { return false }
            offset = new
            return true
        }
    }

    /// Adds seconds; false for a negative number, and beyond `most`.
    func advance(_ seconds: Int64) -> Bool {
        added.withLock { offset in
            guard seconds >= 0, seconds <= Self.most - offset else { return false }
            offset += seconds
            return true
        }
    }

    /// Returns to the machine's clock. Call it together with the reset of the store.
    func reset() { added.withLock { $0 = 0 } }
}
