// Waiting without sleeping, and the error that everything here throws.

import Concurrency

/// What went wrong, with everything a person needs to find out why.
package struct HarnessError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A value that several threads share; every change wakes those who wait for one.
package typealias Watched = Monitor

extension Monitor {
    /// Waits until `find` gives something, for at most `seconds`; nil where it did not.
    package func wait<Found>(seconds: Double, for find: (State) -> Found?) -> Found? {
        wait(atMost: .seconds(seconds), for: find)
    }
}

/// Time in seconds after which a test gives up waiting; generous, since it is only spent where something is wrong.
package let standardTimeout: Double = 300
