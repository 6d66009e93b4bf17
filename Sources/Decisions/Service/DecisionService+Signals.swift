// Signals that only some policies read: counts, and the class of the inbox's domain.

import RiskPolicy

/// A request and its counts.
struct CountedVelocity: Sendable {
    let tallies: [VelocityTally]
    let event: PolicyEvent
    /// By the counter's index.
    let counts: [Int: Int64]
}

extension DecisionService {
    /// Returns the class of an inbox's domain, for a policy that reads it.
    func domainClass(_ asking: DecisionContext) -> (@Sendable (String) -> DomainClass)? {
        guard
            asking.source.readsDomainClass
                || asking.policy.policy.counters.contains(where: \.readsDomain)
        else { return nil }
        return { [lists] domain in lists?.domainClass(domain) ?? DomainClass.of(domain) }
    }

    /// The counts of the policy for a request; nil if it counts nothing.
    func velocity(_ asking: DecisionContext) -> VelocityQuestion? {
        let counters = asking.policy.policy.counters
        guard !counters.isEmpty else { return nil }
        var question = VelocityQuestion(
            counters: counters, team: asking.app.teamNumber, account: asking.account,
            device: asking.question.device,
            context: Dictionary(
                asking.context.values.map { ($0.name, $0.value.text) },
                uniquingKeysWith: { first, _ in first }),
            marks: store.decisionMarks, now: asking.time.seconds)
        question.used = asking.source.counters
        return question
    }

    /// Counts a request once.
    /// - Parameter turn: the buffer's turn before the store was read.
    func count(
        _ read: QuestionHistory, _ event: PolicyEvent, turn: Int
    ) async throws -> CountedVelocity? {
        guard !read.tallies.isEmpty else { return nil }
        var (stored, turn): (_, Int?) = (read.stored, turn)
        for attempt in 1... {
            if let counts = log.velocity.count(read.tallies, event, stored: stored, turn: turn) {
                let byCounter = zip(read.tallies, counts).map { ($0.counter, $1) }
                return CountedVelocity(
                    tallies: read.tallies, event: event,
                    counts: Dictionary(uniqueKeysWithValues: byCounter))
            }
            // A flush ended during the read, so the read may lack its counts. After several
            // attempts, one batch may be missing.
            turn = attempt < Self.velocityAttempts ? log.velocity.turn : nil
            stored = try await executor.run { [store] in try store.velocity.stored(read.tallies) }
        }
        return nil
    }

    /// How often counters are read again after a flush ended during the read.
    private static let velocityAttempts = 3
}
