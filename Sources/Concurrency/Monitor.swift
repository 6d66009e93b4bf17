// A value under a lock, with a condition: for threads outside Swift concurrency, and for
// calls that must block.

/// A value that several threads share. Every change wakes the threads that wait for one.
///
/// `@inlinable`, so that the compiler specialises the methods for the value at each use.
package final class Monitor<State>: @unchecked Sendable {
    @usableFromInline var state: State
    @usableFromInline let condition = MonotonicCondition()

    /// The longest limited wait: a day, far from overflow.
    @usableFromInline static var longest: Duration { .seconds(86_400) }

    package init(_ state: sending State) { self.state = state }

    /// Runs `body` on the value, while no other thread uses it, then wakes all waiting threads.
    @discardableResult
    @inlinable package func with<Result>(_ body: (inout State) throws -> Result) rethrows -> Result
    {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&state)
    }

    /// Waits until `find` returns a value, for at most `duration` (nil: forever; otherwise at most
    /// a day). Nil if it returned none.
    @inlinable package func wait<Found>(
        atMost duration: Duration?, for find: (State) -> Found?
    ) -> Found? {
        let deadline = duration.map { ContinuousClock.now + min($0, Self.longest) }
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let found = find(state) { return found }
            guard let deadline else {
                condition.wait()
                continue
            }
            guard condition.wait(until: deadline) else { return find(state) }
        }
    }

    /// Waits until `holds` is true, for at most `duration` (nil: forever; otherwise at most a day).
    /// Returns whether it is true.
    @inlinable package func wait(atMost duration: Duration?, until holds: (State) -> Bool) -> Bool {
        wait(atMost: duration, for: { holds($0) ? true : nil }) ?? false
    }
}
