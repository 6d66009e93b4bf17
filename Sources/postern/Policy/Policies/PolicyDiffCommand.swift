// `postern policy diff`: the differences of two policies in text and in decisions.

import Accounts
import ArgumentParser
import CEL
import Decisions
import Foundation
import RiskPolicy

struct PolicyDiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Show how two policies differ in text and in decisions.",
        discussion: """
            Each policy is a folder, the name of an active policy, or the beginning of a hash. If only one is given, it is \
            compared with the active policy of the same name, or else with the default.

            Below the differences in text are those in decisions, on inputs that are generated from the values in the \
            conditions: they show what can change, not how often. postern policy backtest uses past decisions.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var first: String

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath)
    var second: String?

    @Option(help: ArgumentHelp("The number of generated inputs to compare.", valueName: "number"))
    var inputs = 40_000

    @Flag(help: "Show the expression behind each sentence.")
    var source = false

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...10_000_000).contains(inputs) else {
            throw ValidationError("--inputs must be 0 to 10,000,000.")
        }
    }

    func run() throws {
        let (old, new, advice, effect) = try policies()
        guard old.policy.kind == new.policy.kind else {
            throw CommandError.data(
                "one of them decides statuses, the other checks: they cannot be compared")
        }
        let diff = PolicyDiff(from: old.policy, to: new.policy)
        guard let now = CELTimestamp(seconds: PolicyTestSuite.defaultNow) else { return }
        let (comparison, examples) = PolicyComparison.onGeneratedInputs(
            old.policy, new.policy, count: inputs, now: now)
        if output.json {
            return try printJSON(
                [
                    "from": old.hash, "to": new.hash, "differences": diff.items.map(Self.members),
                    "behaviour": comparison.members,
                    "examples": examples, "context_sent": advice, "status": effect?.members,
                ] as Members)
        }
        print("\(old.label) → \(new.label)\n")
        print(shownLines(diff.text(showsSource: source)))
        print("")
        print(comparison.text(examples, new.policy.kind))
        if let effect {
            print("\nstatus\n" + effect.sentences.map { "  " + $0 }.joined(separator: "\n"))
        }
        if !advice.isEmpty {
            print("\ncontext\n" + advice.map { "  " + $0 }.joined(separator: "\n"))
        }
    }

    /// Both policies, the context values of the last day that the second cannot read, and the
    /// effect of the change on the status policy.
    private func policies() throws -> (ReferredPolicy, ReferredPolicy, [String], StatusEffect?) {
        if let second, [first, second].allSatisfy(ReferredPolicy.isWithoutStore) {
            let none: () throws -> PolicyRepository = {
                throw CommandError.noInput("no such folder")
            }
            let (old, new) = (
                try ReferredPolicy(first, repository: none),
                try ReferredPolicy(second, repository: none)
            )
            return (old, new, [], try StatusEffect(from: old.policy, to: new.policy, in: nil))
        }
        return try installation.withStore { store in
            let (old, new) = try policies(store)
            let effect = try StatusEffect(from: old.policy, to: new.policy, in: store)
            guard new.policy.kind == .verification else { return (old, new, [], effect) }
            let advice = try ContextAdvice(store, now: PosternClock.now())
            let label = "\(new.policy.name) \(new.policy.version)"
            return (
                old, new,
                advice.sentences(
                    for: new.policy, label: label, replacing: advice.replaced(by: new.policy)),
                effect
            )
        }
    }

    private func policies(_ store: Store) throws -> (ReferredPolicy, ReferredPolicy) {
        let one = try ReferredPolicy(first) { store.policies }
        if let second { return (one, try ReferredPolicy(second) { store.policies }) }
        if one.policy.kind == .status {
            return (try ReferredPolicy(PolicyKind.statusName) { store.policies }, one)
        }
        let arrangement = try store.policies.arrangement()
        guard
            let active = arrangement.policies.first(where: { $0.name == one.policy.name })
                ?? arrangement.standard
        else {
            throw CommandError.noInput("no policy is active: give two to compare")
        }
        return (try ReferredPolicy(hash: active.hash, in: store.policies), one)
    }

    private static func members(_ item: PolicyDiff.Item) -> Members {
        let details = item.details.map {
            ["property": $0.label, "before": $0.before, "after": $0.after] as Members
        }
        return [
            "section": item.section, "change": item.kind.rawValue, "name": item.name,
            "details": details,
        ]
    }
}

extension PolicyComparison.Count {
    fileprivate var members: Members {
        [
            "questions": questions, "asked_before": askedBefore, "asked_after": askedAfter,
            "newly_asked": newlyAsked,
            "no_longer_asked": noLongerAsked, "other_challenges": otherChallenges,
        ]
    }
}

extension PolicyComparison {
    /// As JSON.
    var members: Members {
        let rules = rulesByWeight.map { rule -> Members in
            [
                "rule": rule.id, "asked_before": rule.count.askedBefore,
                "asked_after": rule.count.askedAfter,
                "newly_asks": rule.count.newlyAsks, "no_longer_asks": rule.count.noLongerAsks,
            ]
        }
        let events = Dictionary(
            uniqueKeysWithValues: events.map { ($0.key.rawValue, $0.value.members) })
        return ["total": total.members, "events": events, "rules": rules]
    }
}

extension PolicyComparison {
    /// Counts in words, for generated inputs.
    fileprivate func text(_ examples: [String], _ kind: PolicyKind) -> String {
        let total = total
        guard total.differs else {
            return "On \(total.questions) generated inputs both decide the same."
        }
        var lines = ["decided differently, of \(total.questions) generated inputs"]
        func line(_ name: String, _ values: [String]) -> String {
            "  " + name.padding(toLength: 26, withPad: " ", startingAt: 0)
                + values.map { String(repeating: " ", count: max(1, 16 - $0.count)) + $0 }.joined()
        }
        lines.append(
            kind == .status
                ? line("", ["not likely_real", "likely_real", "other status"])
                : line("event", ["newly asked", "no longer", "other checks"]))
        for event in PolicyEvent.allCases {
            guard let count = events[event], count.differs else { continue }
            lines.append(
                line(
                    kind == .status ? "status" : event.rawValue,
                    [count.newlyAsked, count.noLongerAsked, count.otherChallenges].map(String.init))
            )
        }
        let rules = rulesByWeight.filter { $0.count.newlyAsks + $0.count.noLongerAsks > 0 }
        if !rules.isEmpty {
            lines += [
                "",
                line(
                    "rule",
                    kind == .status ? ["now so", "no longer"] : ["newly asks", "no longer"]),
            ]
            lines += rules.map {
                line($0.id, [$0.count.newlyAsks, $0.count.noLongerAsks].map(String.init))
            }
        }
        if !examples.isEmpty { lines += ["", "for instance"] + examples.map { "  " + $0 } }
        return lines.joined(separator: "\n")
    }
}
