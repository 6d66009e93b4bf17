// `postern policy explain`: how a policy decides a case, and why.

import ArgumentParser
import CEL
import RiskPolicy

struct PolicyExplain: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show how a policy decides a case, rule by rule.",
        discussion: """
            The case is a test of the policy, by its name or section/name, or a request in a file (--input), in the form of a \
            test's input: {"event": "sign_in", "account": {"state": "active"}}.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var policy: String

    @Argument(help: "A test: name or section/name.")
    var test: String?

    @Option(
        help: "A YAML or JSON file with the request; - for standard input.", completion: .file(),
        transform: filePath)
    var input: String?

    @Flag(help: "Show the expression behind each sentence.")
    var source = false

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if (test == nil) == (input == nil) {
            throw ValidationError("Give a test, or a file with --input.")
        }
    }

    func run() throws {
        let referred = try ReferredPolicy(policy, in: installation)
        let policy = referred.policy
        let trace = policy.trace(try question(referred))
        var explanation = PolicyExplanation(policy: policy, trace: trace)
        explanation.showsSource = source
        guard output.json else { return print(shownLines(explanation.text)) }
        let answer = policy.answer(trace.result)
        try printJSON(
            [
                "policy": policy.name, "policy_version": policy.version,
                "event": answer.event.rawValue, "decision": answer.word,
                "challenges": answer.challenges, "reasons": answer.reasons, "waived": answer.waived,
                "degraded": answer.degraded,
                "overridden_by": answer.overriddenBy, "rules": explanation.explained,
            ] as Members)
    }

    private func question(_ referred: ReferredPolicy) throws -> PolicyInput {
        if let input {
            let text = try PolicyFolder.read(input)
            return try reporting { () throws(PolicyRefusal) in
                try PolicyTestSuite.input(text, file: input, policy: referred.policy)
            }
        }
        let tests = try referred.tests()?.tests ?? []
        let found = tests.filter { $0.path == test || $0.name == test }
        guard let first = found.first else {
            throw CommandError.noInput(
                "no test '\(test ?? "")'\(suggestion(for: test ?? "", among: tests.map(\.name)))")
        }
        guard found.count == 1 else {
            throw CommandError.data(
                "several tests have this name: \(found.map(\.path).joined(separator: ", "))")
        }
        return first.input
    }
}
