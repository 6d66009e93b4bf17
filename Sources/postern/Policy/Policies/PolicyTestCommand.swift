// `postern policy test`: runs a policy's tests.

import ArgumentParser
import Database
import Foundation
import RiskPolicy

struct PolicyTestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Run the tests of a policy.",
        discussion: """
            For each failed test, the keys that differ are shown, expected (-) above actual (+). A tests.yaml without tests \
            is a failure; a folder without tests.yaml is a failure only with --fail-on-empty.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var policy: String

    @Flag(help: "Fail if there are no tests at all.")
    var failOnEmpty = false

    @Flag(help: "Report which rules and which sides of their conditions no test exercises.")
    var coverage = false

    @Flag(help: "Print the results as JSON.")
    var json = false

    @Option(
        help: "Also write the results to a file as JUnit XML.", completion: .file(),
        transform: filePath)
    var junit: String?

    @OptionGroup var installation: InstallationOptions

    func run() throws {
        let referred = try ReferredPolicy(policy, in: installation)
        let found = try referred.tests()
        let suite = found ?? PolicyTestSuite(description: "", tests: [], file: referred.testsFile)
        let report = PolicyTestReport(policy: referred.policy, suite: suite, withCoverage: coverage)
        print(json ? String(decoding: try report.json, as: UTF8.self) : shownLines(report.text))
        try installation.refuse(output: junit)
        if let junit { try OwnedFile.write(report.junit.utf8, to: junit) }
        let isEmpty = report.results.isEmpty && (found != nil || failOnEmpty)
        if isEmpty { ErrorOutput.write("\(suite.file): no tests\n") }
        if report.failures > 0 || isEmpty { throw ExitCode.failure }
    }
}
