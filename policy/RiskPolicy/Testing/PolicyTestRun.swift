// Runs a policy's tests.

/// The result of a test.
package struct PolicyTestResult: Sendable {
    /// The test.
    package let test: PolicyTest
    /// The decision in compact form.
    package let result: PolicyResult
    /// The decision with names and codes.
    package let answer: PolicyVerdict
    /// Keys whose value is not the expected one.
    package let differences: [Difference]

    /// A key whose value is not the expected one.
    package struct Difference: Sendable, Equatable {
        /// The key under `output`.
        package let key: String
        /// The values in the test.
        package let expected: [String]
        /// The values from the policy.
        package let actual: [String]
    }

    /// Whether every expected key has its value.
    package var passed: Bool { differences.isEmpty }

    /// The differences as text for people; empty if there are none.
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
            var differences = test.expected.compactMap {
                expectation -> PolicyTestResult.Difference? in
                let actual = answer.values(of: expectation.key)
                let isSame =
                    expectation.isOrdered
                    ? actual == expectation.values : actual.sorted() == expectation.values.sorted()
                return isSame
                    ? nil
                    : .init(key: expectation.key, expected: expectation.values, actual: actual)
            }
            // A condition that ends in an error is a mistake unless the test names it.
            if !answer.errors.isEmpty, !test.expected.contains(where: { $0.key == "errors" }) {
                differences.append(.init(key: "errors", expected: [], actual: answer.errors))
            }
            // A guarantee that had to override the rules counts as broken, for any expectation of
            // the test.
            if let guarantee = answer.overriddenBy {
                differences.append(
                    .init(key: "guarantee", expected: [guarantee], actual: ["broken by the rules"]))
            }
            return PolicyTestResult(
                test: test, result: result, answer: answer, differences: differences)
        }
    }

    /// For activation: refuses a policy that fails a test or breaks a guarantee in one, and a file
    /// without tests.
    package func hold(_ policy: Policy) throws(PolicyRefusal) {
        func diagnostic(_ position: SourcePosition, _ message: String) -> PolicyDiagnostic {
            PolicyDiagnostic(file: file, position: position, message: message, excerpt: "")
        }
        var diagnostics = run(policy).filter { !$0.passed }.map { result in
            let keys = result.differences.map { difference in
                "\(difference.key) is \(difference.actual), not \(difference.expected)"
            }
            return diagnostic(
                result.test.position,
                "test '\(result.test.path)' fails: \(keys.joined(separator: "; "))")
        }
        if tests.isEmpty {
            diagnostics.append(diagnostic(SourcePosition(line: 1, column: 1), "no tests"))
        }
        if !diagnostics.isEmpty { throw PolicyRefusal(diagnostics: diagnostics) }
    }
}

extension PolicyVerdict {
    /// A field by its name in tests.yaml.
    package func values(of key: String) -> [String] {
        switch key {
        case "decision": [decision.rawValue]
        case "status": [word]
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
