// `postern policy show`: a policy as the store keeps it.

import ArgumentParser
import Foundation
import RiskPolicy

struct PolicyShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a policy: its rules in words, or its files.",
        discussion: """
            Without an argument, shows the default policy. --export writes the files of the policy into a new folder, where \
            it can be changed, tested and activated.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory)
    var policy: String?

    @Flag(help: "Print policy.yaml as it was written.")
    var source = false

    @Option(
        help: ArgumentHelp("Write the policy's files into this folder, which must not exist.", valueName: "dir"),
        completion: .directory)
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
        if source { return print(referred.candidate.document.files[PolicyDocument.policyFile] ?? "", terminator: "") }
        if output.json { return try printJSON(Self.members(referred)) }
        print(Self.text(referred))
    }

    private func write(_ document: PolicyDocument, to folder: String) throws {
        try PolicyFolder(path: folder).write(document)
        print("Wrote \(document.files.keys.sorted().joined(separator: ", ")) into \(folder)")
    }

    // MARK: Words

    private static func text(_ referred: ReferredPolicy) -> String {
        let policy = referred.policy
        var lines = ["\(emphasised("\(policy.name) \(policy.version)"))  \(referred.hash)"]
        if policy.kind == .status { lines += status(policy) }
        for (effect, title) in policy.kind == .status
            ? []
            : [
                (RuleEffect.always, "always asked for, whatever the skips say"), (.skip, "waives what is required"),
                (.require, "required"),
            ]
        {
            let rules = policy.rules.filter { $0.effect == effect }
            guard !rules.isEmpty else { continue }
            lines += ["", emphasised(title)]
            for rule in rules {
                let events = PolicyEvent.allCases.filter(rule.events.contains).map(\.rawValue).joined(separator: ", ")
                let challenge = (effect == .skip ? "up to " : "") + policy.challenges[rule.challenge].kind
                let mode = rule.mode == .active ? "" : "  [\(rule.mode.rawValue)]"
                lines.append("  \(rule.id)\(mode)\(rule.isForReview ? "  [for review]" : "")")
                lines.append("      \(challenge) on \(events)  \(rule.reason)")
                lines.append("      when \(rule.condition.text)\(rule.matchesWhenMissing ? "  (or a signal is missing)" : "")")
            }
        }
        if !policy.guarantees.isEmpty {
            lines += ["", emphasised("guaranteed")]
            lines += policy.guarantees.map { "  \(policy.word($0)) when \($0.condition.text)" }
        }
        let lists = referred.candidate.document.files.keys.sorted().filter {
            $0 != PolicyDocument.policyFile && $0 != PolicyDocument.testsFile
        }
        lines.append("")
        if policy.kind == .verification {
            lines.append("challenges, weakest first: \(policy.challenges.map(\.kind).joined(separator: ", "))")
        }
        lines.append("signals: \(policy.signals.count)\(lists.isEmpty ? "" : "; lists: " + lists.joined(separator: ", "))")
        if !policy.liveLists.isEmpty {
            let names = policy.liveLists.map { "\($0.name) (\($0.kind.rawValue)\($0.isTeams ? ", of the team" : ""))" }
            lines.append("live lists: \(names.joined(separator: ", "))")
        }
        for counter in policy.counters {
            let events = PolicyEvent.allCases.filter(counter.events.contains).map(\.rawValue).joined(separator: ", ")
            let what = counter.distinct.map { "distinct \($0.text)" } ?? "questions"
            lines.append("counter \(counter.name): \(what) of a \(counter.key.text) in \(counter.window) s, at \(events)")
        }
        return lines.joined(separator: "\n")
    }

    /// The most cautious status first: of all rules that match, it is the one that counts.
    private static func status(_ policy: Policy) -> [String] {
        [PolicyStatus.unknown, .unsupported, .likelyReal].flatMap { status -> [String] in
            let rules = policy.rules.filter { policy.status(of: $0) == status }
            guard !rules.isEmpty else { return [] }
            return ["", emphasised(status.rawValue)]
                + rules.map { rule in
                    let mode = rule.mode == .active ? "" : "  [\(rule.mode.rawValue)]"
                    let when = rule.effect == .require ? "otherwise" : "when \(rule.condition.text)"
                    return "  \(rule.id)\(mode)  \(when)\(rule.matchesWhenMissing ? "  (or a signal is missing)" : "")"
                }
        }
    }

    private static func members(_ referred: ReferredPolicy) -> Members {
        let policy = referred.policy
        let rules = policy.rules.map { rule -> Members in
            [
                "id": rule.id, "status": policy.kind == .status ? policy.status(of: rule).rawValue : nil,
                "effect": rule.effect.rawValue,
                "events": PolicyEvent.allCases.filter(rule.events.contains).map(\.rawValue),
                "challenge": policy.challenges[rule.challenge].kind, "reason": rule.reason, "mode": rule.mode.rawValue,
                "condition": rule.condition.text,
            ]
        }
        return [
            "policy": policy.name, "version": policy.version, "hash": referred.hash, "rules": rules,
            "files": referred.candidate.document.files,
        ]
    }
}
