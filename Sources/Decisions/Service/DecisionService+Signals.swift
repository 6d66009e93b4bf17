// What only some policies ask for: counts, and where an inbox is.

import RiskPolicy

/// A question as it was counted.
struct CountedVelocity: Sendable {
    let tallies: [VelocityTally]
    let event: PolicyEvent
    /// By the counter's place.
    let counts: [Int: Int64]
}

extension DecisionService {
    /// Says where an inbox is, for a policy that asks.
    func domainClass(_ asking: DecisionContext) -> (@Sendable (String) -> DomainClass)? {
        guard asking.source.readsDomainClass || asking.policy.policy.counters.contains(where: \.readsDomain) else { return nil }
        return { [lists] domain in lists?.domainClass(domain) ?? DomainClass.of(domain) }
    }

    /// What the policy counts of a question; nil where it counts nothing.
    func velocity(_ asking: DecisionContext) -> VelocityQuestion? {
        let counters = asking.policy.policy.counters
        guard !counters.isEmpty else { return nil }
        var question = VelocityQuestion(
            counters: counters, team: asking.app.teamNumber, account: asking.account, device: asking.question.device,
            context: Dictionary(asking.context.map { ($0.name, $0.value.text) }, uniquingKeysWith: { first, _ in first }),
            marks: store.decisionMarks, now: asking.time.seconds)
        question.used = asking.source.counters
        return question
    }

    /// Counts a question, once.
    /// - Parameter turn: that of the buffer before the store was read.
    func count(_ read: QuestionHistory, _ event: PolicyEvent, turn: Int) async throws -> CountedVelocity? {
        guard !read.tallies.isEmpty else { return nil }
        var (stored, turn): (_, Int?) = (read.stored, turn)
        for attempt in 1... {
            if let counts = log.velocity.count(read.tallies, event, stored: stored, turn: turn) {
                let byCounter = zip(read.tallies, counts).map { ($0.counter, $1) }
                return CountedVelocity(
                    tallies: read.tallies, event: event, counts: Dictionary(uniqueKeysWithValues: byCounter))
            }
            // Written meanwhile: what was read may lack it. Where that happens again and again, one batch of it may be missing.
            turn = attempt < Self.velocityAttempts ? log.velocity.turn : nil
            stored = try await executor.run { [store] in try store.velocity.stored(read.tallies) }
        }
        return nil
    }

    /// How often counters are read again because some were written meanwhile.
    private static let velocityAttempts = 3
}
