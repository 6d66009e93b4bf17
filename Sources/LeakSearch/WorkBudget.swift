// The cost limit for rewriting one reply: counted and not timed, so that every machine gives the
// same answer.

/// Units of work that one message may use, for all its parts, levels and searches together. A unit
/// is the work of reading one octet once, below a nanosecond; `RelayBench --check` enforces this. A
/// message that needs more is refused (`Refusal.tooMuchWork`). Not thread-safe.
package final class WorkBudget {
    /// Units for a small message: enough for an office file that unpacks to 5 MB.
    private static let least = 50_000_000
    /// Units for each octet of a larger message. The most costly message without compressed parts
    /// needs fewer.
    private static let perOctet = 150

    /// Units that may be spent.
    package let limit: Int
    /// Units spent so far; exceeds the limit by at most one step.
    package private(set) var spent = 0

    /// Units by which one step may exceed the limit: for the octets passed on at a time, with all
    /// their readings.
    package static let step = 20_000_000

    /// - Parameter octets: of header section and body.
    package init(octets: Int) { limit = max(Self.least, Self.perOctet * min(octets, 1 << 40)) }

    /// A budget of this many units.
    package init(limit: Int) { self.limit = limit }

    /// Whether more was charged than the limit. All work then stops.
    package var isSpent: Bool { spent > limit }

    @inline(__always)
    package func charge(_ units: Int) { spent += units }

    /// Begins again, for the second and last rewriting of a message. Its cost must not depend on
    /// the first one, as that would reveal the content of removed text.
    package func restart() { spent = 0 }

    /// Exhausts the budget, if it cannot pay for the next step.
    package func exhaust() { spent = max(spent, limit + 1) }
}
