// Decisions that a change of a policy concerns, by the status that the people had. In some of them,
// another rule gives the same answer because of their status.

import CEL
import RiskPolicy
import Support

/// Counts decisions in which other rules match than before.
package struct StatusTally: Sendable {
    package struct Concerned: Sendable, Equatable {
        /// Decisions in which other rules match.
        package var concerned = 0
        /// Those of them that get the same answer.
        package var unchanged = 0
    }

    /// Nil: the person had no status.
    package private(set) var counts: [PolicyStatus?: Concerned] = [:]
    /// Rules that require a check before and after, in decisions with the same answer, and the
    /// number of these decisions.
    package private(set) var holders: [String: Int] = [:]
    /// Decisions that were compared.
    package private(set) var read = 0

    package init() {}

    package var total: Concerned {
        counts.values.reduce(into: Concerned()) { sum, count in
            sum.concerned += count.concerned
            sum.unchanged += count.unchanged
        }
    }

    /// - Parameters:
    ///   - before: ids of the rules that required a check or were waived; `after` likewise.
    ///   - answers: the answers before and after.
    ///   - status: the code of the status, as in tokens.
    mutating func add(
        before: Set<String>, after: Set<String>,
        _ answers: (before: ComparedDecision, after: ComparedDecision), status code: Int?
    ) {
        read += 1
        guard before != after else { return }
        let status = code.flatMap { code in PolicyStatus.allCases.first { $0.code == code } }
        counts[status, default: Concerned()].concerned += 1
        let (old, new) = answers
        guard old.asks == new.asks, old.challenges == new.challenges else { return }
        counts[status, default: Concerned()].unchanged += 1
        for rule in Set(old.rules).intersection(new.rules) { holders[rule, default: 0] += 1 }
    }

    /// Compares two policies on logged decisions. Decisions whose answer depends on values that the
    /// log lacks are left out.
    package init(_ old: Policy, _ new: Policy, on decisions: [LoggedDecision]) {
        for decision in decisions {
            guard let one = LoggedSignals(decision.record, for: old),
                let other = LoggedSignals(decision.record, for: new),
                one.hashed.isEmpty, other.hashed.isEmpty
            else { continue }
            let (first, second) = (old.decide(one.input), new.decide(other.input))
            add(
                before: Self.rules(first, old), after: Self.rules(second, new),
                (ComparedDecision(first, by: old), ComparedDecision(second, by: new)),
                status: one.status(decision.record, old))
        }
    }

    static func rules(_ result: PolicyResult, _ policy: Policy) -> Set<String> {
        Set((Array(result.asked) + Array(result.waived)).map { policy.rules[$0].id })
    }

    /// Sentences for a report.
    /// - Parameter place: for example `the last 10,000 logged decisions`.
    package func sentences(of place: String) -> [String] {
        let total = total
        guard read > 0 else {
            return ["No logged decision shows how many people have each status."]
        }
        guard total.concerned > 0 else {
            return ["In all of \(place), the same rules match as before."]
        }
        var lines = [
            "Other rules match than before in \(Count.text(total.concerned)) of \(place), by the user's status:"
        ]
        let order: [PolicyStatus?] = [.unknown, .unsupported, .likelyReal, nil]
        for status in order {
            guard let count = counts[status] else { continue }
            let name = status.map { "\"\($0.words)\"" } ?? "none given"
            let same =
                count.unchanged == 0
                ? "" : ", of which \(Count.text(count.unchanged)) are answered the same"
            lines.append("  \(name): \(Count.text(count.concerned))\(same)")
        }
        if total.unchanged > 0, !holders.isEmpty {
            let rules = holders.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(5).map {
                "\($0.key) \(Count.text($0.value))"
            }
            lines.append(
                "Of those answered the same, other rules ask some as before: \(rules.joined(separator: ", "))."
            )
        }
        return lines
    }
}

extension LoggedSignals {
    /// The code of the status with which the decision was made; otherwise the first one of the
    /// account.
    func status(_ record: DecisionRecord, _ policy: Policy) -> Int? {
        guard let slot = policy.slot(named: StandardSignal.realUserStatus.rawValue),
            case .int(let code) = policy.value(slot: slot, of: input)
        else { return record.realUserStatus }
        return Int(exactly: code)
    }
}
