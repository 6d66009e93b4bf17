// Test results as text with a diff for people, and as JSON and JUnit XML for machines.

import Foundation
import Support

/// The results of a run of a policy's tests.
package struct PolicyTestReport {
    /// The policy that was tested.
    package let policy: Policy
    /// Its tests.
    package let suite: PolicyTestSuite
    /// One for each test, in the order of the file.
    package let results: [PolicyTestResult]
    /// Only if requested.
    package let coverage: PolicyCoverage?

    /// Runs the suite.
    package init(policy: Policy, suite: PolicyTestSuite, withCoverage: Bool) {
        self.policy = policy
        self.suite = suite
        results = suite.run(policy)
        coverage = withCoverage ? PolicyCoverage(policy: policy, suite: suite) : nil
    }

    /// Number of failed tests.
    package var failures: Int { results.count { !$0.passed } }

    /// Failures with their differences, coverage if requested, and a last line with the counts.
    package var text: String {
        var lines: [String] = []
        for result in results where !result.passed {
            lines.append(
                "FAIL \(PersonText.lines(result.test.path).joined(separator: " "))  (\(suite.file):\(result.test.position.line))"
            )
            lines.append(result.diff)
        }
        if let coverage {
            let complete = coverage.rules.count { $0.isComplete }
            lines.append(
                "coverage: \(complete) of \(coverage.rules.count) conditions both ways on every event and in every part"
            )
            lines += coverage.gaps.map { "  " + $0 }
        }
        let verdict = failures == 0 ? "passed" : "\(failures) failed"
        let counts =
            results.isEmpty ? "no tests" : "\(Count.text(results.count, "test")), \(verdict)"
        lines.append("\(policy.name) \(policy.version): \(counts)")
        return lines.joined(separator: "\n")
    }

    /// One JSON object.
    package var json: Data {
        get throws {
            var object: [String: Any] = [
                "policy": policy.name, "version": policy.version, "tests": results.count,
                "failures": failures,
                "results": results.map { result -> [String: Any] in
                    [
                        "section": result.test.section, "name": result.test.name,
                        "line": result.test.position.line,
                        "passed": result.passed,
                        "differences": result.differences.map {
                            ["key": $0.key, "expected": $0.expected, "actual": $0.actual]
                                as [String: Any]
                        },
                    ]
                },
            ]
            if let coverage {
                object["gaps"] = coverage.gaps
                object["coverage"] = coverage.rules.map { rule -> [String: Any] in
                    [
                        "rule": rule.id, "matched": rule.matched, "not_matched": rule.notMatched,
                        "events": rule.events.map {
                            [
                                "event": $0.event.rawValue, "matched": $0.matched,
                                "not_matched": $0.notMatched,
                            ] as [String: Any]
                        },
                        "parts": rule.parts.map { part -> [String: Any] in
                            var sides: [String: Any] = [
                                "text": part.text, "true": part.wasTrue, "false": part.wasFalse,
                            ]
                            if part.canBeMissing { sides["missing"] = part.wasMissing }
                            return sides
                        },
                    ]
                }
            }
            return try JSONSerialization.data(
                withJSONObject: object,
                options: [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes])
        }
    }

    /// JUnit XML, with a test suite for each section.
    package var junit: String {
        var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
        lines.append(
            "<testsuites name=\"\(Self.escaped(policy.name))\" tests=\"\(results.count)\" failures=\"\(failures)\">"
        )
        var sections: [String] = []
        for result in results where !sections.contains(result.test.section) {
            sections.append(result.test.section)
        }
        for section in sections {
            let own = results.filter { $0.test.section == section }
            let failed = own.count { !$0.passed }
            lines.append(
                "  <testsuite name=\"\(Self.escaped(section))\" tests=\"\(own.count)\" failures=\"\(failed)\">"
            )
            for result in own {
                let open =
                    "    <testcase classname=\"\(Self.escaped(policy.name)).\(Self.escaped(section))\" "
                    + "name=\"\(Self.escaped(result.test.name))\" "
                    + "file=\"\(Self.escaped(suite.file))\" line=\"\(result.test.position.line)\""
                if result.passed {
                    lines.append(open + "/>")
                } else {
                    let message =
                        "differs in " + result.differences.map(\.key).joined(separator: ", ")
                    lines.append(open + ">")
                    lines.append(
                        "      <failure message=\"\(Self.escaped(message))\">\(Self.escaped(result.diff))</failure>"
                    )
                    lines.append("    </testcase>")
                }
            }
            lines.append("  </testsuite>")
        }
        lines.append("</testsuites>")
        return lines.joined(separator: "\n") + "\n"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            // XML 1.0 cannot represent the other control characters.
            case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t":
                result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
