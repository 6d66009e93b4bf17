// The times at which an event is tried again: the schedule in docs/EVENTS.md.

/// Exponential, with jitter: 5 s after the first failure, twice as long after each further failure
/// in a row, at most 15 minutes. Each interval is up to a fifth longer or shorter at random, so
/// that events that failed together are not retried together. An event is given up three days after
/// it was written.
package enum RetrySchedule {
    /// In seconds.
    package static let first: Int64 = 5
    package static let longest: Int64 = 900
    /// Fraction of an interval.
    package static let jitter = 0.2
    /// Maximum wait that an endpoint may request with Retry-After, in seconds.
    package static let longestAsked: Int64 = 3600

    /// Maximum result of `delay`, in seconds.
    package static let longestWait = Int64((Double(longest) * (1 + jitter)).rounded(.up))

    /// Seconds to wait.
    /// - Parameters:
    ///   - failures: in a row, including the last one; 1 …
    ///   - random: 0 ..< 1.
    package static func delay(failures: Int, random: Double) -> Int64 {
        let doublings = min(max(failures, 1) - 1, 10)
        let interval = Double(min(first << Int64(doublings), longest))
        return max(1, Int64((interval * (1 - jitter + 2 * jitter * random)).rounded()))
    }
}
