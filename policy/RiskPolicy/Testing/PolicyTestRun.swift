// Runs a policy's tests, and says what they never exercised.

/// What a test came to.
package struct PolicyTestResult: Sendable {
    /// The test.
    package let test: PolicyTest
    /// The decision, compact.
    package let result: PolicyResult
    /// The decision in words.
    package let answer: PolicyAnswer
    /// Keys whose value is not the expected one.
    package let differences: [Difference]

    /// A key whose value is not the expected one.
    package struct Difference: Sendable, Equatable {
        /// As under `output`.
        package let key: String
        /// What the test names.
        package let expected: [String]
        /// What the policy gave.
        package let actual: [String]
    }

    /// Whether every expected key has its value.
    package var passed: Bool { differences.isEmpty }

    /// The differences as a person reads them; empty where there are none.
    package var diff: String {
        differences.map { difference in
            let width = String(repeating: " ", count: max(0, 10 - difference.key.utf8.count))
            func shown(_ values: [String]) -> String {
                values.isEmpty ? "(none)" : values.joined(separator: ", ")
            }
            return "    \(difference.key)\(width) - \(shown(difference.expected))\n"
                + "    \(String(repeating: " ", count: 10)) + \(shown(difference.actual))"
        }.joined(separator: "\n")
    }
}

extension PolicyTestSuite {
    /// Runs every test.
    package func run(_ policy: Policy) -> [PolicyTestResult] {
        tests.map { test in
            let result = policy.decide(test.input)
            let answer = policy.answer(result)
            var differences = test.expected.compactMap { expectation -> PolicyTestResult.Difference? in
                let actual = answer.values(of: expectation.key)
                let isSame =
                    expectation.isOrdered ? actual == expectation.values : actual.sorted() == expectation.values.sorted()
                return isSame ? nil : .init(key: expectation.key, expected: expectation.values, actual: actual)
            }
            // A guarantee that had to override the rules is broken, whatever the test expects.
            if let guarantee = answer.overriddenBy {
                differences.append(.init(key: "guarantee", expected: [guarantee], actual: ["broken by the rules"]))
            }
            return PolicyTestResult(test: test, result: result, answer: answer, differences: differences)
        }
    }

    /// For activation: refuses a policy that fails a test or breaks a guarantee on one, and a file without tests.
    package func hold(_ policy: Policy) throws(PolicyRefusal) {
        func diagnostic(_ position: SourcePosition, _ message: String) -> PolicyDiagnostic {
            PolicyDiagnostic(file: file, position: position, message: message, excerpt: "")
        }
        var diagnostics = run(policy).filter { !$0.passed }.map { result in
            let keys = result.differences.map { difference in
                "\(difference.key) is \(difference.actual), not \(difference.expected)"
            }
            return diagnostic(result.test.position, "test '\(result.test.path)' fails: \(keys.joined(separator: "; "))")
        }
        if tests.isEmpty { diagnostics.append(diagnostic(SourcePosition(line: 1, column: 1), "no tests")) }
        if !diagnostics.isEmpty { throw PolicyRefusal(diagnostics: diagnostics) }
    }
}

extension PolicyAnswer {
    /// A field by its name in tests.yaml.
    package func values(of key: String) -> [String] {
        switch key {
        case "decision": [decision.rawValue]
        case "event": [event.rawValue]
        case "degraded": [degraded ? "true" : "false"]
        case "challenges": challenges
        case "reasons": reasons
        case "waived": waived
        case "missing": missing
        case "errors": errors
        case "shadow": shadow
        default: []
        }
    }
}

/// What the tests exercised of each rule.
package struct PolicyCoverage: Sendable {
    /// What the tests of a rule's events exercised of it.
    package struct Rule: Sendable {
        /// The rule.
        package let id: String
        /// Tests in which its condition held.
        package var matched = 0
        /// Tests in which it did not, was missing or an error.
        package var notMatched = 0
        /// The parts of its condition, in the order written.
        package var parts: [Part]

        /// Whether it was seen both ways, and every part of its condition too.
        package var isComplete: Bool { matched > 0 && notMatched > 0 && parts.allSatisfy { $0.wasTrue && $0.wasFalse } }
    }

    /// A side of a condition: what stands between `&&`, `||`, `!` and `?:`.
    package struct Part: Sendable {
        /// As written.
        package let text: String
        /// Whether a test made it true.
        package var wasTrue = false
        /// Whether a test made it false.
        package var wasFalse = false
    }

    /// Every rule that is not disabled, in the policy's order.
    package var rules: [Rule]

    /// Counts over the tests of a suite. Each part is evaluated for itself, whatever stands before it.
    package init(policy: Policy, suite: PolicyTestSuite) {
        rules = []
        for (position, rule) in policy.rules.enumerated() where rule.mode != .disabled {
            let nodes = rule.condition.resolved.conditionParts
            var covered = Rule(
                id: rule.id, parts: nodes.map { Part(text: rule.condition.text(of: $0)) })
            for test in suite.tests where rule.events.contains(test.input.event) {
                let outcome = policy.outcome(of: position, test.input)
                if outcome == .matched { covered.matched += 1 } else { covered.notMatched += 1 }
                for (index, node) in nodes.enumerated() {
                    switch policy.evaluate(node, test.input) {
                    case .success(.bool(true)): covered.parts[index].wasTrue = true
                    case .success(.bool(false)): covered.parts[index].wasFalse = true
                    default: break
                    }
                }
            }
            rules.append(covered)
        }
    }

    /// Lines that name what was never exercised; empty where everything was.
    package var gaps: [String] {
        rules.flatMap { rule -> [String] in
            var lines: [String] = []
            if rule.matched == 0 { lines.append("\(rule.id): never matched") }
            if rule.notMatched == 0 { lines.append("\(rule.id): never failed to match") }
            for part in rule.parts {
                if !part.wasTrue { lines.append("\(rule.id): never true: \(part.text)") }
                if !part.wasFalse { lines.append("\(rule.id): never false: \(part.text)") }
            }
            return lines
        }
    }
}

extension ResolvedExpression {
    /// The parts of a condition that are true or false for themselves.
    package var conditionParts: [ResolvedExpression] {
        switch kind {
        case .binary(.and, let left, let right), .binary(.or, let left, let right): left.conditionParts + right.conditionParts
        case .not(let operand): operand.conditionParts
        case .conditional(let condition, let yes, let no) where type == .bool:
            condition.conditionParts + yes.conditionParts + no.conditionParts
        default: [self]
        }
    }
}

extension PolicyExpression {
    /// The text of a part.
    package func text(of node: ResolvedExpression) -> String {
        let bytes = Array(text.utf8)
        let range = node.span.clamped(to: 0..<bytes.count)
        return String(decoding: bytes[range], as: UTF8.self)
    }
}
