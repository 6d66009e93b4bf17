// What rewriting one reply may cost: counted and not timed, so that every machine gives the same answer.

/// Units of work that one message may take, all its parts, levels and searches together. A unit is the work of looking at one
/// octet once, below a nanosecond; `RelayBench --check` enforces this. A message that takes more is refused
/// (`Refusal.tooMuchWork`). Not thread-safe.
package final class WorkBudget {
    /// Units for a small message: enough for an office file that unpacks to 5 MB.
    private static let least = 50_000_000
    /// Units for each octet of a larger one. The most costly message without compressed parts takes fewer.
    private static let perOctet = 150

    /// Units that may be spent.
    package let limit: Int
    /// Units spent so far; exceeds the limit by one step at most.
    package private(set) var spent = 0

    /// Units by which one step may exceed the limit: for the octets passed on at once, with all their readings.
    package static let step = 20_000_000

    /// - Parameter octets: of header section and body.
    package init(octets: Int) { limit = max(Self.least, Self.perOctet * min(octets, 1 << 40)) }

    /// A budget of this many units.
    package init(limit: Int) { self.limit = limit }

    /// Whether more was charged than there is: then all work stops.
    package var isSpent: Bool { spent > limit }

    @inline(__always)
    package func charge(_ units: Int) { spent += units }

    /// Begins again, for the second and last rewriting of a message: what the first one took says what a text holds that goes.
    package func restart() { spent = 0 }

    /// Exhausts the budget, where the next step cannot be afforded.
    package func exhaust() { spent = max(spent, limit + 1) }
}
