// Counts of decisions, for metrics.

import Synchronization

/// Counts since the process started.
package final class DecisionStatistics: Sendable {
    /// The kinds of counts, with few values each.
    package struct Kind: Hashable, Sendable {
        package let event: String
        package let decision: String
        package let isDegraded: Bool
    }

    /// All counts at one moment.
    package struct Snapshot: Sendable {
        package var decisions: [Kind: Int] = [:]
        /// Guarantees that had to override the rules.
        package var overrides = 0
        /// Nonces that were used before.
        package var repeatedNonces = 0
        /// Tokens that were refused.
        package var rejectedTokens = 0
    }

    private let state = Mutex(Snapshot())

    package init() {}

    package var snapshot: Snapshot { state.withLock { $0 } }

    func count(_ record: DecisionRecord) {
        let kind = Kind(
            event: record.event, decision: record.decision, isDegraded: record.isDegraded)
        state.withLock { state in
            state.decisions[kind, default: 0] += 1
            if record.overriddenBy != nil { state.overrides += 1 }
        }
    }

    func countRepeatedNonce() { state.withLock { $0.repeatedNonces += 1 } }
    func countRejectedToken() { state.withLock { $0.rejectedTokens += 1 } }
}
