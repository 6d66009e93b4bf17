// Inputs generated from the conditions: every number and string that a rule compares
// with, neighbouring values, and missing values. Deterministic, for guarantees at load
// and for property tests.

import CEL
import Yams

/// Generates inputs for one policy from a seed; the same seed gives the same inputs.
package struct InputGenerator {
    private let policy: Policy
    private var state: UInt64
    /// The numbers that each signal is compared with, and their neighbours.
    private let near: [Int: [Int64]]
    private let ints: [Int64]
    private let doubles: [Double]
    private let strings: [String]
    private let now: CELTimestamp

    /// Collects the values that the policy compares with. `now` is the time of every input.
    package init(policy: Policy, seed: UInt64, now: CELTimestamp) {
        var ints: Set<Int64> = [0, 1, -1, 2, 100, Int64.max, Int64.min]
        var doubles: Set<Double> = [0, 1, -1, 0.5, 1e300]
        var strings: Set<String> = ["", "other"]
        var near: [Int: Set<Int64>] = [:]
        let expressions =
            policy.rules.map(\.condition) + policy.guarantees.map(\.condition)
            + policy.challenges.compactMap(\.unavailableWhen)
        for expression in expressions {
            for part in expression.resolved.conditionParts {
                part.visit { node in
                    guard case .constant(.int(let int)) = node.kind else { return }
                    for slot in part.variables {
                        near[slot, default: []].formUnion([int &- 1, int, int &+ 1])
                    }
                }
            }
            expression.resolved.visit { node in
                guard case .constant(let value) = node.kind else { return }
                for value in Self.scalars(value) {
                    switch value {
                    case .int(let int): ints.formUnion([int &- 1, int, int &+ 1])
                    case .double(let double):
                        doubles.formUnion([double - 0.5, double, double + 0.5])
                    case .string(let text): strings.insert(text)
                    default: break
                    }
                }
            }
        }
        self.near = near.mapValues { $0.sorted() }
        self.policy = policy
        self.state = seed
        self.now = now
        self.ints = ints.sorted()
        self.doubles = doubles.sorted()
        self.strings = strings.sorted(by: precedesByCodePoint)
    }

    private static func scalars(_ value: CELValue) -> [CELValue] {
        if case .list(let elements) = value { elements } else { [value] }
    }

    private mutating func next(below bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        return Int(mixed % UInt64(max(1, bound)))
    }

    /// The next input. A signal is missing in one of six, history is unavailable in one of 16.
    package mutating func next(event: PolicyEvent) -> PolicyInput {
        var input = policy.makeInput(event: event, now: now)
        for (slot, signal) in policy.signals.enumerated() where signal.name != "event" {
            if next(below: 6) == 0 { continue }
            // A value out of a declared bound stays missing.
            if signal.type == .int, let near = near[slot], next(below: 4) > 0 {
                try? policy.set(slot: slot, to: .int(near[next(below: near.count)]), in: &input)
            } else {
                try? policy.set(slot: slot, to: value(of: signal.type), in: &input)
            }
        }
        input.isHistoryUnavailable = next(below: 16) == 0
        // Policies without live lists draw no number here, so that the seed always gives them the
        // same inputs.
        if !policy.scope.liveLists.isEmpty, next(below: 8) > 0 {
            input.lists = GeneratedLiveLists(seed: UInt64(next(below: 1 << 32)))
        }
        return input
    }

    private mutating func value(of type: CELType) -> CELValue {
        switch type {
        case .bool: .bool(next(below: 2) == 0)
        case .int: .int(ints[next(below: ints.count)])
        case .uint: .uint(UInt64(ints[next(below: ints.count)].magnitude))
        case .double: .double(doubles[next(below: doubles.count)])
        case .string: .string(strings[next(below: strings.count)])
        case .timestamp:
            CELTimestamp(seconds: Int64(next(below: 4_000_000_000))).map(CELValue.timestamp)
                ?? .missing
        case .duration:
            CELDuration(total: Int128(next(below: 1_000_000)) * 1_000_000_000).map(
                CELValue.duration) ?? .missing
        case .list(let element): .list((0..<next(below: 4)).map { _ in value(of: element) })
        default: .missing
        }
    }
}

extension Policy {
    /// Refuses a policy whose rules break a guarantee on generated inputs.
    func checkGuarantees(_ reader: YAMLReader, _ nodes: [Node], inputs: Int) {
        guard !guarantees.isEmpty, let now = CELTimestamp(seconds: 1_767_225_600) else { return }
        var generator = InputGenerator(policy: self, seed: 1, now: now)
        var broken: Set<Int> = []
        for number in 0..<inputs {
            let input = generator.next(event: askedEvents[number % askedEvents.count])
            let overriding = Int(decide(input).overridingGuarantee)
            guard overriding >= 0, overriding < nodes.count, broken.insert(overriding).inserted
            else { continue }
            let guarantee = guarantees[overriding]
            let reads = guarantee.condition.resolved.variables.filter {
                signals.indices.contains($0)
            }
            let shown = reads.map { "\(signals[$0].name) = \(value(slot: $0, of: input).text)" }
                .joined(separator: ", ")
            reader.report(
                nodes[overriding],
                "guarantee broken: the rules do not give '\(word(guarantee))' for \(shown)")
        }
    }
}

extension PolicyRefusal {
    /// A guarantee, by its condition's text, that the rules broke on an
    /// input that was not generated.
    package init(
        brokenGuarantee condition: String, of policy: Policy, file: String, where place: String
    ) {
        let guarantee = policy.guarantees.first { $0.condition.text == condition }
        self.init(diagnostics: [
            PolicyDiagnostic(
                file: file,
                position: guarantee?.condition.position ?? SourcePosition(line: 1, column: 1),
                message:
                    "guarantee broken: the rules do not give '\(guarantee.map(policy.word) ?? "")' for \(place)",
                excerpt: "")
        ])
    }
}
