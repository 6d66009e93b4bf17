// Differences in the text of two policies: signals, constants, lists, challenges,
// defaults, rules, guarantees.

import CEL

/// The differences of two policies' texts by meaning. Comments and the order of rules do not count.
package struct PolicyDiff: Sendable {
    package enum Kind: String, Sendable {
        case added, removed, changed
    }

    /// One difference.
    package struct Item: Sendable, Equatable {
        /// signals, constants, lists, live lists, counters, challenges,
        /// defaults, rules or guarantees.
        package let section: String
        package let kind: Kind
        /// A signal's name, a rule's id, a guarantee's condition.
        package let name: String
        /// The name for people: a guarantee in words.
        package let title: String
        /// The properties that differ; for an added or removed item, all of them.
        package let details: [Detail]
    }

    /// One property; nil if the item or the property does not exist.
    package struct Detail: Sendable, Equatable {
        package let label: String
        package let before: String?
        package let after: String?
    }

    /// In the order of the sections above.
    package let items: [Item]

    /// Name and properties.
    private struct Thing {
        let name: String
        let properties: [(label: String, value: String)]
        var title: String

        init(_ name: String, _ properties: [(label: String, value: String)], title: String? = nil) {
            (self.name, self.properties, self.title) = (name, properties, title ?? name)
        }
    }

    /// Expressions, by the label of their words. The text shows an expression only if the words are
    /// the same, or on request.
    private static let sources = ["condition": "sentence", "unavailable_when": "not offered"]

    package init(from old: Policy, to new: Policy) {
        items =
            Self.compare("policy", [Self.head(old)], [Self.head(new)])
            + Self.compare("signals", old.signals.map(Self.signal), new.signals.map(Self.signal))
            + Self.compare("constants", Self.constants(old), Self.constants(new))
            + Self.lists(old, new)
            + Self.compare("live lists", Self.liveLists(old), Self.liveLists(new))
            + Self.compare("counters", Self.counters(old), Self.counters(new))
            + Self.compare("challenges", Self.challenges(old), Self.challenges(new))
            + Self.compare("defaults", Self.defaults(old), Self.defaults(new))
            + Self.compare(
                "rules", old.rules.map { Self.rule($0, old) }, new.rules.map { Self.rule($0, new) })
            + Self.compare(
                "guarantees", old.guarantees.map { Self.guarantee($0, old) },
                new.guarantees.map { Self.guarantee($0, new) })
    }

    // MARK: Comparing

    private static func compare(_ section: String, _ old: [Thing], _ new: [Thing]) -> [Item] {
        var items: [Item] = []
        for thing in old {
            guard let other = new.first(where: { $0.name == thing.name }) else {
                let details = thing.properties.map {
                    Detail(label: $0.label, before: $0.value, after: nil)
                }
                items.append(
                    Item(
                        section: section, kind: .removed, name: thing.name, title: thing.title,
                        details: details))
                continue
            }
            var labels = thing.properties.map(\.label)
            for property in other.properties where !labels.contains(property.label) {
                labels.append(property.label)
            }
            let details = labels.compactMap { label -> Detail? in
                let before = thing.properties.first { $0.label == label }?.value
                let after = other.properties.first { $0.label == label }?.value
                return before == after ? nil : Detail(label: label, before: before, after: after)
            }
            if !details.isEmpty {
                items.append(
                    Item(
                        section: section, kind: .changed, name: thing.name, title: other.title,
                        details: details))
            }
        }
        for thing in new where !old.contains(where: { $0.name == thing.name }) {
            let details = thing.properties.map {
                Detail(label: $0.label, before: nil, after: $0.value)
            }
            items.append(
                Item(
                    section: section, kind: .added, name: thing.name, title: thing.title,
                    details: details))
        }
        return items
    }

    // MARK: Things

    private static func head(_ policy: Policy) -> Thing {
        Thing("policy", [("name", policy.name), ("version", policy.version)])
    }

    private static func signal(_ signal: SignalDeclaration) -> Thing {
        var properties = [("type", signal.type.text + (signal.mayBeMissing ? "?" : ""))]
        if let minimum = signal.minimum {
            properties.append(("min", CELValue.double(minimum).text))
        }
        if let maximum = signal.maximum {
            properties.append(("max", CELValue.double(maximum).text))
        }
        if signal.maximumLength != PolicyFileLimits.maximumStringBytes {
            properties.append(("max_length", String(signal.maximumLength)))
        }
        return Thing(signal.name, properties)
    }

    private static func constants(_ policy: Policy) -> [Thing] {
        policy.scope.constants.sorted { $0.key < $1.key }.map {
            Thing($0.key, [("value", $0.value.text)])
        }
    }

    private static func counters(_ policy: Policy) -> [Thing] {
        policy.counters.map { counter in
            let events = PolicyEvent.allCases.filter(counter.events.contains).map(\.rawValue)
                .joined(separator: ", ")
            return Thing(
                counter.name,
                [
                    ("key", counter.key.text), ("window", DurationWords.text(counter.window)),
                    ("events", events),
                    ("distinct", counter.distinct?.text ?? "no"),
                ])
        }
    }

    private static func liveLists(_ policy: Policy) -> [Thing] {
        policy.liveLists.map {
            Thing(
                $0.name, [("kind", $0.kind.rawValue), ("of", $0.isTeams ? "team" : "installation")])
        }
    }

    private static func lists(_ old: Policy, _ new: Policy) -> [Item] {
        Set(old.scope.sets.keys).union(new.scope.sets.keys).sorted().compactMap { name in
            let (before, after) = (old.scope.sets[name]?.members, new.scope.sets[name]?.members)
            guard before != after else { return nil }
            let kind: Kind = before == nil ? .added : after == nil ? .removed : .changed
            var details = [
                Detail(
                    label: "entries", before: before.map { String($0.count) },
                    after: after.map { String($0.count) })
            ]
            if let before, let after {
                details.append(
                    Detail(
                        label: "taken out", before: String(before.subtracting(after).count),
                        after: nil))
                details.append(
                    Detail(
                        label: "put in", before: nil, after: String(after.subtracting(before).count)
                    ))
            }
            return Item(section: "lists", kind: kind, name: name, title: name, details: details)
        }
    }

    private static func challenges(_ policy: Policy) -> [Thing] {
        policy.challenges.enumerated().map { position, challenge in
            var properties = [
                ("strength", "\(position + 1) of \(policy.challenges.count)"),
                (
                    "events",
                    words(Set(PolicyEvent.allCases.filter { challenge.isOffered(for: $0) }))
                ),
            ]
            if let effort = challenge.effort { properties.append(("effort", "\(effort)")) }
            if let condition = challenge.unavailableWhen {
                properties.append(("not offered", "when \(RuleWords(policy).text(condition))"))
                properties.append(("unavailable_when", condition.text))
            }
            return Thing(challenge.kind, properties)
        }
    }

    private static func defaults(_ policy: Policy) -> [Thing] {
        var properties = [("challenge", policy.challenges[policy.errorChallenge].kind)]
        for event in PolicyEvent.allCases {
            if let position = policy.degraded[event] {
                properties.append(("degraded \(event.rawValue)", policy.challenges[position].kind))
            }
        }
        return [Thing("defaults", properties)]
    }

    private static func rule(_ rule: PolicyRule, _ policy: Policy) -> Thing {
        var properties =
            policy.kind == .status
            ? [("status", policy.status(of: rule).rawValue), ("reason", rule.reason)]
            : [
                ("effect", rule.effect.rawValue), ("events", words(rule.events)),
                (
                    rule.effect == .skip ? "up_to" : "challenge",
                    policy.challenges[rule.challenge].kind
                ), ("reason", rule.reason),
            ]
        if rule.mode != .active { properties.append(("mode", rule.mode.rawValue)) }
        if rule.isForReview { properties.append(("review", "true")) }
        if rule.matchesWhenMissing { properties.append(("when_missing", "match")) }
        if let description = rule.description { properties.append(("description", description)) }
        if !policy.isDefault(rule) {
            properties.append(("sentence", RuleWords(policy).condition(of: rule)))
        }
        properties.append(("condition", rule.condition.text))
        return Thing(rule.id, properties)
    }

    private static func guarantee(_ guarantee: PolicyGuarantee, _ policy: Policy) -> Thing {
        Thing(
            guarantee.condition.text,
            [(policy.kind == .status ? "status" : "decision", policy.word(guarantee))],
            title: "when \(RuleWords(policy).text(guarantee.condition))")
    }

    private static func words(_ events: Set<PolicyEvent>) -> String {
        PolicyEvent.allCases.filter(events.contains).map(\.rawValue).joined(separator: ", ")
    }

    // MARK: Text

    /// Several lines, by section; one sentence if nothing differs.
    /// - Parameter showsSource: with the expressions behind sentences.
    package func text(showsSource: Bool = false) -> String {
        guard !items.isEmpty else { return "The policies are identical." }
        var lines: [String] = []
        var section = ""
        for item in items {
            if item.section != section {
                section = item.section
                lines += lines.isEmpty ? [section] : ["", section]
            }
            let labels = item.details.map(\.label)
            let details = item.details.filter { detail in
                showsSource || Self.sources[detail.label].map { !labels.contains($0) } ?? true
            }
            let sign = item.kind == .added ? "+" : item.kind == .removed ? "-" : "~"
            if item.section == "policy" || item.section == "defaults" {
                lines += details.flatMap { Self.lines($0, indent: 2) }
            } else {
                lines.append("  \(sign) \(item.title)")
                if showsSource, item.title.utf8.count != item.name.utf8.count {
                    lines.append("    = \(item.name)")
                }
                lines += details.flatMap { Self.lines($0, indent: 6) }
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func lines(_ detail: Detail, indent: Int) -> [String] {
        let label = String(repeating: " ", count: indent) + detail.label
        let width = indent + 18
        let padded =
            label + String(repeating: " ", count: max(1, width - label.unicodeScalars.count))
        let blank = String(repeating: " ", count: padded.unicodeScalars.count)
        switch (detail.before, detail.after) {
        case (let before?, let after?): return [padded + "- " + before, blank + "+ " + after]
        case (let before?, nil): return [padded + "- " + before]
        case (nil, let after?): return [padded + "+ " + after]
        case (nil, nil): return []
        }
    }
}
