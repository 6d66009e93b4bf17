// Waiting without sleeping, and the error of all functions here.

import Concurrency

/// The fault, with everything that a person needs to find its cause.
package struct HarnessError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A value that several threads share. Every change wakes the threads that wait for one.
package typealias Watched = Monitor

extension Monitor {
    /// Waits until `find` returns a result, for at most `seconds`; nil if it did not.
    package func wait<Found>(seconds: Double, for find: (State) -> Found?) -> Found? {
        wait(atMost: .seconds(seconds), for: find)
    }
}

/// Seconds after which a test stops waiting. The time is generous, as it is used up only by a
/// fault.
package let standardTimeout: Double = 300
