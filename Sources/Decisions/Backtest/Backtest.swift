// Runs a candidate policy on past decisions, and compares its answers with the answers of that
// time.

import CEL
import RiskPolicy

/// Counts over logged decisions. Decisions are added one by one, in any order.
package struct Backtest: Sendable {
    /// Decisions of one period of time.
    package struct Slice: Sendable, Equatable {
        package var questions = 0
        package var askedBefore = 0
        package var askedAfter = 0
    }

    /// Outcomes of the decisions that the candidate flips.
    package struct Flips: Sendable, Equatable {
        /// The decision allowed; the candidate requires a check.
        package var newlyAsked = OutcomeCounts()
        /// The decision required a check; the candidate allows.
        package var noLongerAsked = OutcomeCounts()
    }

    /// A decision in which a guarantee of the candidate would have to
    /// override the candidate's rules.
    package struct BrokenGuarantee: Sendable, Equatable {
        /// `rd_…`.
        package let decision: String
        /// The guarantee's condition.
        package let condition: String
    }

    /// An upgrade that failed for a reason outside the policy: it requires a check under every
    /// policy.
    package static let failedUpgrade = "(failed upgrade)"
    /// At most this many broken guarantees are named; the rest are only counted.
    private static let namedFaults = 5

    package let candidate: Policy
    /// Length of a slice in seconds.
    package let sliceSeconds: Int64
    private let now: Int64
    /// By event, the slots that the candidate reads.
    private let readers: [PolicyEvent: Set<Int>]
    /// By event, the rules of the candidate, with what they read.
    private let conditions: [PolicyEvent: [ReadingCondition]]
    /// Slots of the candidate whose meaning is unknown under a past policy that is no longer
    /// stored.
    private let definable: Set<Int>
    /// By challenge: 1 for the weakest.
    private let ranks: [String: Int]

    package private(set) var comparison = PolicyComparison()
    package private(set) var flips = Flips()
    /// By rule: the flips that the rule causes or caused.
    package private(set) var ruleFlips: [String: Flips] = [:]
    /// By the start of the slice, seconds since 1970.
    package private(set) var slices: [Int64: Slice] = [:]
    /// Of all decisions, with or without a required check.
    package private(set) var outcomes = OutcomeCounts()
    /// Of decisions that allowed; only their labels count.
    package private(set) var allowed = OutcomeCounts()
    /// Labelled decisions, scored by the past answer and by the candidate's answer.
    package private(set) var rocBefore = ROC()
    package private(set) var rocAfter = ROC()
    /// Decisions for which the candidate's answer is unknown, because the log lacks the values that
    /// its conditions read. The other figures do not count them. By rule: how many of them depend
    /// on it.
    package private(set) var untold = 0
    package private(set) var untoldRules: [String: Int] = [:]
    /// By signal: how many of them lack it.
    package private(set) var untoldSignals: [String: Int] = [:]
    /// Decisions that lack a signal that the candidate's conditions read: their policy did not
    /// declare it, or the log has only its hash. Also how many decisions lack each signal.
    package private(set) var lackingRows = 0
    package private(set) var lacking: [String: Int] = [:]
    /// Logged decisions that cannot be read.
    package private(set) var unreadable = 0
    /// By the status that the people had: decisions in which other rules match than did then.
    package private(set) var statuses = StatusTally()
    package private(set) var brokenGuarantees: [BrokenGuarantee] = []
    package private(set) var brokenGuaranteeCount = 0
    /// Times of the first and the last decision, seconds since 1970.
    package private(set) var first: Int64?
    package private(set) var last: Int64?

    /// - Parameters:
    ///   - sliceSeconds: length of a slice of the curves.
    ///   - now: a check without a report one hour after its request counts as abandoned.
    package init(_ candidate: Policy, sliceSeconds: Int64 = 86_400, now: Int64) {
        self.candidate = candidate
        self.sliceSeconds = max(1, sliceSeconds)
        self.now = now
        readers = Dictionary(
            uniqueKeysWithValues: PolicyEvent.allCases.map { ($0, candidate.slotsRead(at: $0)) })
        conditions = Dictionary(
            uniqueKeysWithValues: PolicyEvent.allCases.map {
                ($0, ReadingCondition.all(of: candidate, at: $0))
            })
        definable = PastPolicy.definable(candidate)
        ranks = ROC.ranks(candidate)
    }

    /// - Parameter past: the policy of that time at that event; nil if it is no longer stored.
    package mutating func add(_ decision: LoggedDecision, past: PastPolicy?) {
        let record = decision.record
        let redefined = past?.redefined ?? definable
        guard let logged = LoggedSignals(record, for: candidate, besides: redefined) else {
            unreadable += 1
            return
        }
        let hidden = note(logged, past?.signals, redefined)
        guard let result = decide(logged, record, hidden, past) else {
            untold += 1
            return
        }
        if candidate.guarantees.indices.contains(Int(result.overridingGuarantee)) {
            brokenGuaranteeCount += 1
            if brokenGuarantees.count < Self.namedFaults {
                let condition = candidate.guarantees[Int(result.overridingGuarantee)].condition.text
                brokenGuarantees.append(BrokenGuarantee(decision: record.id, condition: condition))
            }
        }
        let before = ComparedDecision(record, event: result.event)
        var after = ComparedDecision(result, by: candidate)
        if record.upgradeResult == UpgradeResult.failure {
            after = ComparedDecision(
                event: after.event, asks: true, rules: after.rules + [Self.failedUpgrade],
                challenges: after.asks ? after.challenges : before.challenges)
        }
        comparison.add(before, after)
        statuses.add(
            before: Set(record.asked + record.waived), after: StatusTally.rules(result, candidate),
            (before, after),
            status: logged.status(record, candidate))
        if let label = decision.label {
            let isFraud = label == .fraudulent
            rocBefore.add(ROC.score(before, ranks: ranks), isFraud: isFraud)
            rocAfter.add(ROC.score(after, ranks: ranks), isFraud: isFraud)
        }
        outcomes.add(decision, now: now)
        if !before.asks { allowed.add(decision, now: now) }
        if after.asks, !before.asks {
            flips.newlyAsked.add(decision, now: now)
            for rule in after.rules {
                ruleFlips[rule, default: Flips()].newlyAsked.add(decision, now: now)
            }
        } else if before.asks, !after.asks {
            flips.noLongerAsked.add(decision, now: now)
            for rule in before.rules {
                ruleFlips[rule, default: Flips()].noLongerAsked.add(decision, now: now)
            }
        }
        let start = record.evaluatedAt / sliceSeconds * sliceSeconds
        slices[start, default: Slice()].questions += 1
        if before.asks { slices[start, default: Slice()].askedBefore += 1 }
        if after.asks { slices[start, default: Slice()].askedAfter += 1 }
        first = min(first ?? record.evaluatedAt, record.evaluatedAt)
        last = max(last ?? record.evaluatedAt, record.evaluatedAt)
    }

    /// The candidate's decision; nil if it depends on values that the log lacks.
    private mutating func decide(
        _ logged: LoggedSignals, _ record: DecisionRecord, _ hidden: Set<Int>, _ past: PastPolicy?
    ) -> PolicyResult? {
        var input = logged.input
        var unknown: [(condition: ReadingCondition, outcomes: [ConditionOutcome])] = []
        for condition in conditions[input.event] ?? []
        where condition.depends(on: hidden, unusable: logged.leftOut, input, candidate) {
            if let rule = past?.rules[condition.rule] {
                input.known.set(record.outcome(rule), rule: condition.rule)
            } else {
                // A value that was given under another declaration may be unusable under this one.
                let isPlain = condition.slots.isDisjoint(with: logged.leftOut)
                unknown.append((condition, isPlain ? [.holds, .fails] : [.holds, .fails, .error]))
            }
        }
        guard !unknown.isEmpty else { return candidate.decide(input) }
        // More conditions would take too long, and they rarely leave the answer unchanged.
        var results: [PolicyResult] = []
        if unknown.count <= 4 {
            for number in 0..<unknown.reduce(1, { $0 * $1.outcomes.count }) {
                var rest = number
                for (condition, outcomes) in unknown {
                    input.known.set(outcomes[rest % outcomes.count], rule: condition.rule)
                    rest /= outcomes.count
                }
                results.append(candidate.decide(input))
            }
        }
        let isTold = results.dropFirst().allSatisfy {
            $0.decision == results[0].decision && $0.challenges == results[0].challenges
        }
        if !results.isEmpty, isTold { return results[0] }
        for (condition, _) in unknown {
            untoldRules[candidate.rules[condition.rule].id, default: 0] += 1
        }
        let slots = unknown.reduce(into: Set<Int>()) {
            $0.formUnion($1.condition.slots.intersection(hidden))
        }
        for slot in slots { untoldSignals[candidate.signals[slot].name, default: 0] += 1 }
        return nil
    }

    /// Counts the signals that the decision lacks; returns their slots.
    private mutating func note(
        _ logged: LoggedSignals, _ declared: Set<String>?, _ redefined: Set<Int>
    ) -> Set<Int> {
        var hidden: Set<Int> = []
        let read = readers[logged.input.event] ?? []
        for (slot, signal) in candidate.signals.enumerated()
        where read.contains(slot) && signal.name != "event" {
            let isHashed = logged.hashed.contains(signal.name)
            // A declared signal that is absent had no value at that time, so the decision does not
            // lack it.
            let isUnknown =
                !logged.present.contains(signal.name)
                && declared.map { !$0.contains(signal.name) } ?? false
            // A count under another definition has another meaning, even if it is absent. Any other
            // signal without a value still has none.
            let isRedefined =
                logged.leftOut.contains(slot) || redefined.contains(slot) && signal.isCount
            guard isHashed || isUnknown || isRedefined else { continue }
            lacking[signal.name, default: 0] += 1
            hidden.insert(slot)
        }
        if !hidden.isEmpty { lackingRows += 1 }
        return hidden
    }
}

extension SignalDeclaration {
    fileprivate var isCount: Bool {
        if case .counter = source { true } else { false }
    }
}

extension ComparedDecision {
    /// The decision of that time.
    init(_ record: DecisionRecord, event: PolicyEvent) {
        let asks = record.decision == PolicyDecision.requireVerification.rawValue
        var rules = record.asked
        if record.overriddenBy != nil { rules = [Self.guarantee] }
        if record.reasons.contains(BuiltInReason.historyUnavailable) { rules.append(Self.history) }
        if record.upgradeResult == UpgradeResult.failure { rules.append(Backtest.failedUpgrade) }
        self.init(event: event, asks: asks, rules: asks ? rules : [], challenges: record.challenges)
    }
}
