// When an event is tried again: the schedule that docs/EVENTS.md states.

/// Exponential, with jitter: 5 s after the first failure, twice as long after each further one in a row, 15 minutes at most; each
/// interval a fifth longer or shorter at random, so that those who failed together do not come back together. Three days after it
/// was written an event is parked.
package enum RetrySchedule {
    /// Seconds.
    package static let first: Int64 = 5
    package static let longest: Int64 = 900
    /// Parts of an interval.
    package static let jitter = 0.2
    /// What an endpoint may ask for with Retry-After, in seconds.
    package static let longestAsked: Int64 = 3600

    /// What `delay` gives at most, in seconds.
    package static let longestWait = Int64((Double(longest) * (1 + jitter)).rounded(.up))

    /// Seconds to wait.
    /// - Parameters:
    ///   - failures: in a row, the last one counted; 1 …
    ///   - random: 0 ..< 1.
    package static func delay(failures: Int, random: Double) -> Int64 {
        let doublings = min(max(failures, 1) - 1, 10)
        let interval = Double(min(first << Int64(doublings), longest))
        return max(1, Int64((interval * (1 - jitter + 2 * jitter * random)).rounded()))
    }
}
