// Waiting without sleeping: a locked value with a condition, and the error that everything here throws.

import Foundation

/// What went wrong, with everything a person needs to find out why.
package struct HarnessError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A value that several threads share; every change wakes those who wait for one.
package final class Watched<Value>: @unchecked Sendable {
    private var value: Value
    private let condition = NSCondition()

    package init(_ value: sending Value) { self.value = value }

    /// Runs `body` alone on the value, then wakes all waiting threads.
    @discardableResult
    package func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&value)
    }

    /// Waits until `find` gives something, for at most `seconds`; nil where it did not.
    package func wait<Result>(seconds: Double, for find: (Value) -> Result?) -> Result? {
        let deadline = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let found = find(value) { return found }
            guard condition.wait(until: deadline) else { return find(value) }
        }
    }
}

/// Time in seconds after which a test gives up waiting; generous, since it is only spent where something is wrong.
package let patience: Double = 60
