// `postern policy show`: a policy as the store keeps it.

import ArgumentParser
import Foundation
import RiskPolicy
import Support

struct PolicyShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a policy: its rules in words, or its files.",
        discussion: """
            Without an argument, shows the default policy. --export writes the files of the policy into a new folder, where \
            it can be changed, tested and activated.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var policy: String?

    @Flag(help: "Show the expression behind each sentence.")
    var source = false

    @Flag(help: "Print policy.yaml as it was written.")
    var yaml = false

    @Option(
        help: ArgumentHelp(
            "Write the policy's files into this folder, which must not exist.", valueName: "dir"),
        completion: .directory, transform: filePath)
    var export: String?

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let referred =
            try policy.map { try ReferredPolicy($0, in: installation) }
            ?? installation.withStore { store in
                guard let standard = try store.policies.arrangement().standard else {
                    throw CommandError.noInput("no policy is active")
                }
                return try ReferredPolicy(hash: standard.hash, in: store.policies)
            }
        if let export { return try write(referred.candidate.document, to: export) }
        if yaml {
            return print(
                referred.candidate.document.files[PolicyDocument.policyFile] ?? "", terminator: "")
        }
        if output.json { return try printJSON(Self.members(referred)) }
        print(shownLines(text(referred)))
    }

    private func write(_ document: PolicyDocument, to folder: String) throws {
        try PolicyFolder(path: folder).write(document)
        print("Wrote \(document.files.keys.sorted().joined(separator: ", ")) into \(folder)")
    }

    // MARK: Words

    private func text(_ referred: ReferredPolicy) -> String {
        let policy = referred.policy
        let words = RuleWords(policy)
        var lines = ["\(emphasised("\(policy.name) \(policy.version)"))  \(referred.hash)"]
        for (title, rules) in Self.sections(policy) where !rules.isEmpty {
            lines += ["", emphasised(title)]
            for rule in rules {
                let mode = rule.mode == .active ? "" : "  [\(rule.mode.rawValue)]"
                let reason = policy.kind == .status ? "" : "  \(rule.reason)"
                lines.append(
                    "  \(rule.id)\(reason)\(mode)\(rule.isForReview ? "  [for review]" : "")")
                lines.append("      \(words.sentence(rule))")
                if !policy.isDefault(rule) { lines += behind(rule.condition) }
            }
        }
        if !policy.guarantees.isEmpty {
            lines += ["", emphasised("guaranteed, independent of the rules")]
            lines += policy.guarantees.flatMap {
                ["  \(words.sentence($0))"] + behind($0.condition)
            }
        }
        lines += [""] + facts(referred, words)
        return lines.joined(separator: "\n")
    }

    /// The rules in the order of the output, with titles.
    private static func sections(_ policy: Policy) -> [(String, [PolicyRule])] {
        guard policy.kind == .verification else {
            // The most cautious status first, because it counts if several rules match.
            return [PolicyStatus.unknown, .unsupported, .likelyReal].map { status in
                (status.rawValue, policy.rules.filter { policy.status(of: $0) == status })
            }
        }
        return [
            (RuleEffect.always, "always required, even if a rule waives it"),
            (.skip, "waives what is required"),
            (.require, "required"),
        ].map { effect, title in (title, policy.rules.filter { $0.effect == effect }) }
    }

    /// The expression, if --source was given.
    private func behind(_ condition: PolicyExpression) -> [String] {
        source ? ["      = \(PersonText.withSingleSpaces(condition.text))"] : []
    }

    private func facts(_ referred: ReferredPolicy, _ words: RuleWords) -> [String] {
        let policy = referred.policy
        var lines: [String] = []
        if policy.kind == .verification {
            lines.append(
                "challenges, weakest first: \(policy.challenges.map(\.kind).joined(separator: ", "))"
            )
            for challenge in policy.challenges {
                guard let condition = challenge.unavailableWhen else { continue }
                lines +=
                    ["  \(challenge.kind) is not offered when \(words.text(condition))"]
                    + behind(condition)
            }
        }
        let lists = referred.candidate.document.files.keys.sorted().filter {
            $0 != PolicyDocument.policyFile && $0 != PolicyDocument.testsFile
        }
        lines.append(
            "signals: \(policy.signals.count)\(lists.isEmpty ? "" : "; lists: " + lists.joined(separator: ", "))"
        )
        if !policy.liveLists.isEmpty {
            let names = policy.liveLists.map {
                "\($0.name) (\($0.kind.rawValue)\($0.isTeams ? ", of the team" : ""))"
            }
            lines.append("live lists: \(names.joined(separator: ", "))")
        }
        return lines + policy.counters.map { "counter \($0.name): \(words.text($0))" }
    }

    private static func members(_ referred: ReferredPolicy) -> Members {
        let policy = referred.policy
        let words = RuleWords(policy)
        let rules = policy.rules.map { rule -> Members in
            [
                "id": rule.id,
                "status": policy.kind == .status ? policy.status(of: rule).rawValue : nil,
                "effect": rule.effect.rawValue,
                "events": PolicyEvent.allCases.filter(rule.events.contains).map(\.rawValue),
                "challenge": policy.challenges[rule.challenge].kind, "reason": rule.reason,
                "mode": rule.mode.rawValue,
                "condition": rule.condition.text, "description": rule.description,
                "sentence": words.sentence(rule),
            ]
        }
        return [
            "policy": policy.name, "version": policy.version, "hash": referred.hash, "rules": rules,
            "files": referred.candidate.document.files,
        ]
    }
}
