// The clock of a sandbox, which the whole service uses: the machine's, and what was added to it.

import Synchronization

final class SandboxClock: Sendable {
    private let base: @Sendable () -> Int64
    private let added = Mutex<Int64>(0)
    /// Ten years in seconds: enough for every rule, and far from the end of time.
    static let most: Int64 = 3_650 * 86_400

    /// - Parameter base: seconds since 1970.
    init(_ base: @escaping @Sendable () -> Int64) { self.base = base }

    /// Seconds since 1970.
    var now: Int64 { base() + offset }

    /// Seconds that were added.
    var offset: Int64 { added.withLock { $0 } }

    /// Goes forward until so many seconds are added; false for a smaller number than before and beyond `most`: a store has times
    /// in it, and none of them may be in the future.
    func set(offset new: Int64) -> Bool {
        added.withLock { offset in
            guard (offset...Self.most).contains(new) else { return false }
            offset = new
            return true
        }
    }

    /// Adds seconds; false for less than none, and beyond `most`.
    func advance(_ seconds: Int64) -> Bool {
        added.withLock { offset in
            guard seconds >= 0, seconds <= Self.most - offset else { return false }
            offset += seconds
            return true
        }
    }

    /// Is the machine's clock again: together with the store of the start.
    func reset() { added.withLock { $0 = 0 } }
}
