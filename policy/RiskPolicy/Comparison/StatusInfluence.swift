// The effect of a change of a policy beside the status policy, which decides about the same people
// first. For example, at sign-up a removed rule may change nothing for some people, because the
// status policy calls them unknown for the same reason.

import CEL

/// The relation of a policy's changed rules to the status policy in force.
package struct StatusInfluence: Sendable {
    /// Ids of the rules that were added, removed or changed, in the order of the files.
    package let changedRules: [String]
    /// Those of them whose condition reads the status.
    package let readers: [String]
    /// A changed rule that reads a signal which rules for `unknown` read too.
    package struct Shared: Sendable, Equatable {
        package let rule: String
        /// In the order of the status policy.
        package let statusRules: [String]
    }

    package let shared: [Shared]
    private let words: RuleWords
    private let status: Policy
    private let isRead: Bool

    /// - Parameters:
    ///   - old: of the same kind as `new`: policies that require checks.
    ///   - status: the status policy in force.
    package init(from old: Policy, to new: Policy, status: Policy) {
        let changed = PolicyDiff(from: old, to: new).items.filter { $0.section == "rules" }.map(
            \.name)
        changedRules = changed
        func signals(_ id: String) -> Set<StandardSignal> {
            [old, new].reduce(into: []) { found, policy in
                guard let rule = policy.rule(id: id) else { return }
                found.formUnion(Self.signals(of: policy.rules[rule], policy))
            }
        }
        readers = changed.filter { signals($0).contains(.realUserStatus) }
        isRead = new.rules.contains {
            $0.mode == .active && Self.signals(of: $0, new).contains(.realUserStatus)
        }
        let cautious = status.rules.filter {
            $0.mode == .active && status.status(of: $0) == .unknown
        }
        shared = changed.compactMap { id in
            let own = signals(id)
            let meeting = cautious.filter { !own.isDisjoint(with: Self.signals(of: $0, status)) }
                .map(\.id)
            return meeting.isEmpty ? nil : Shared(rule: id, statusRules: meeting)
        }
        words = RuleWords(status)
        self.status = status
    }

    private static func signals(of rule: PolicyRule, _ policy: Policy) -> Set<StandardSignal> {
        rule.condition.resolved.variables.reduce(into: []) { found, slot in
            guard policy.signals.indices.contains(slot),
                case .postern(let signal) = policy.signals[slot].source
            else { return }
            if signal != .event { found.insert(signal) }
        }
    }

    /// Whether the status matters for the change.
    package var isEmpty: Bool { !isRead || readers.isEmpty && shared.isEmpty }

    /// Sentences; none if the status does not matter for the change.
    package var sentences: [String] {
        guard !isEmpty else { return [] }
        var lines = readers.map {
            "The changed rule \($0) reads the user's status, which \(status.name) \(status.version) gives."
        }
        for meeting in shared {
            lines.append(
                "The changed rule \(meeting.rule) reads what \(status.name) \(status.version) reads too:"
            )
            lines += status.rules.filter { meeting.statusRules.contains($0.id) }.map {
                "  \($0.id): \(words.sentence($0))"
            }
        }
        return lines
    }
}
