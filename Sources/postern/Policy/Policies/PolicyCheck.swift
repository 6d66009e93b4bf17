// `postern policy check`: whether a policy would be accepted.

import ArgumentParser
import RiskPolicy
import Support

struct PolicyCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract:
            "Check a policy as activation would: form, names, types, limits, guarantees and tests.",
        discussion:
            "Exits with status 1 if the policy would be refused, and gives the reason with file, line and column."
    )

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var policy: String
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let referred = try ReferredPolicy(self.policy, in: installation)
        let policy = referred.policy
        let suite = try referred.tests()
        let report = suite.map { PolicyTestReport(policy: policy, suite: $0, withCoverage: false) }
        if let report, report.failures > 0 || report.results.isEmpty {
            print(report.results.isEmpty ? "\(report.suite.file): no tests" : report.text)
            throw ExitCode.failure
        }
        if output.json {
            return try printJSON(
                [
                    "policy": policy.name, "version": policy.version, "rules": policy.rules.count,
                    "signals": policy.signals.count,
                    "guarantees": policy.guarantees.count, "tests": report?.results.count,
                ] as Members)
        }
        let tests = report.map { "\($0.results.count) tests passed" } ?? "no tests.yaml"
        print(
            "\(policy.name) \(policy.version): \(Count.text(policy.rules.count, "rule")), \(Count.text(policy.signals.count, "signal")), "
                + "\(Count.text(policy.guarantees.count, "guarantee")), \(tests)")
    }
}
