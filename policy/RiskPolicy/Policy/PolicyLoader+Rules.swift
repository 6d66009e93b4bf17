// policy.yaml → Policy: challenges, defaults, rules, guarantees, and the checks between them.

import CEL
import Support
import Yams

extension PolicyLoader {
    func events(_ node: Node?, _ what: String) -> Set<PolicyEvent>? {
        guard let nodes = reader.list(node, what) else { return nil }
        var events: Set<PolicyEvent> = []
        for node in nodes {
            guard
                let word = reader.word(node, "event", among: PolicyEvent.allCases.map(\.rawValue)),
                let event = PolicyEvent(rawValue: word)
            else { continue }
            if !events.insert(event).inserted { reader.report(node, "'\(word)' is given twice") }
        }
        if nodes.isEmpty, let node { reader.report(node, "\(what) is empty") }
        return events
    }

    private func challenge(_ node: Node?) -> Int? {
        guard let word = reader.word(node, "challenge", among: parts.challenges.map(\.kind)) else {
            return nil
        }
        return parts.challenges.firstIndex { $0.kind == word }
    }

    // MARK: Challenges and defaults

    mutating func readChallenges(_ node: Node) {
        guard let nodes = reader.list(node, "challenges") else { return }
        guard (1...PolicyFileLimits.maximumChallenges).contains(nodes.count) else {
            return reader.report(
                node, "a policy must have 1 to \(PolicyFileLimits.maximumChallenges) challenges")
        }
        for node in nodes {
            guard
                let fields = reader.fields(
                    node, "a challenge", required: ["kind"],
                    optional: ["events", "unavailable_when", "effort", "description"]),
                let kindNode = fields["kind"], let kind = reader.text(kindNode, "kind")
            else { continue }
            guard Self.isName(kind[...]) else {
                reader.report(kindNode, "'\(kind)' cannot be the kind of a challenge")
                continue
            }
            if parts.challenges.contains(where: { $0.kind == kind }) {
                reader.report(kindNode, "two challenges of kind '\(kind)'")
            }
            let offered =
                fields["events"].map { events($0, "events") ?? [] } ?? Set(PolicyEvent.allCases)
            let unavailable = fields["unavailable_when"].flatMap {
                condition($0, "unavailable_when")
            }
            if let unavailable, reads(unavailable, { $0.spansTeams }),
                let node = fields["unavailable_when"]
            {
                reader.report(
                    node,
                    "'unavailable_when' must not read 'inbox.*': it would reveal facts of other teams"
                )
            }
            parts.challenges.append(
                PolicyChallenge(
                    kind: kind, events: offered.reduce(0) { $0 | 1 << UInt8($1.index) },
                    unavailableWhen: unavailable, effort: effort(fields["effort"], of: kind)))
        }
        for event in PolicyEvent.allCases
        where !parts.challenges.contains(where: {
            $0.isOffered(for: event) && $0.unavailableWhen == nil
        }) {
            reader.report(
                node,
                "no challenge is always available for '\(event.rawValue)': one must be without 'unavailable_when'"
            )
        }
    }

    private func effort(_ node: Node?, of kind: String) -> Int? {
        guard kind.hasSameOctets(as: PolicyChallenge.humanCheck) else {
            if let node {
                reader.report(
                    node, "only a challenge of kind '\(PolicyChallenge.humanCheck)' has an 'effort'"
                )
            }
            return nil
        }
        let efforts = PolicyChallenge.efforts
        guard let node else { return PolicyChallenge.standardEffort }
        guard let scalar = reader.scalar(node, "effort") else { return nil }
        guard case .int(let effort) = YAMLReader.value(scalar), let effort = Int(exactly: effort),
            efforts.contains(effort)
        else {
            reader.report(
                node,
                "effort must be a whole number from \(efforts.lowerBound) to \(efforts.upperBound)")
            return nil
        }
        return effort
    }

    private func reads(_ expression: PolicyExpression, _ test: (SignalDeclaration) -> Bool) -> Bool
    {
        expression.resolved.variables.contains {
            parts.signals.indices.contains($0) && test(parts.signals[$0])
        }
    }

    mutating func readDefaults(_ node: Node) {
        guard
            let fields = reader.fields(
                node, "defaults", required: ["challenge"], optional: ["degraded"])
        else { return }
        if let position = challenge(fields["challenge"]) { parts.errorChallenge = position }
        guard let degraded = fields["degraded"], let entries = reader.entries(degraded, "degraded")
        else { return }
        for entry in entries {
            guard
                let word = reader.word(
                    entry.keyNode, "event", among: PolicyEvent.allCases.map(\.rawValue)),
                let event = PolicyEvent(rawValue: word), let position = challenge(entry.value)
            else { continue }
            parts.degraded[event] = position
        }
    }

    // MARK: Rules

    mutating func readRules(_ node: Node) {
        guard let nodes = reader.list(node, "rules") else { return }
        guard nodes.count <= PolicyFileLimits.maximumRules else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumRules) rules")
        }
        if nodes.isEmpty { reader.report(node, "a policy without rules") }
        var places: [(node: Node, fields: [String: Node])] = []
        for node in nodes {
            if let rule = readRule(node) {
                parts.rules.append(rule.rule)
                places.append((node, rule.fields))
            }
        }
        // If a faulty rule was left out, the checks of skips would be wrong.
        let isWhole = places.count == nodes.count
        for (rule, place) in zip(parts.rules, places) {
            if isWhole { checkSkip(rule, place.fields) }
            checkReachable(rule, place.fields)
        }
    }

    private mutating func readRule(_ node: Node) -> (rule: PolicyRule, fields: [String: Node])? {
        guard
            let fields = reader.fields(
                node, "a rule", required: ["id", "effect", "events", "reason", "condition"],
                optional: ["challenge", "up_to", "when_missing", "mode", "review", "description"])
        else { return nil }
        let id = ruleID(fields["id"])
        let effect = reader.word(
            fields["effect"], "effect", among: RuleEffect.allCases.map(\.rawValue)
        )
        .flatMap(RuleEffect.init(rawValue:))
        let mode = ruleMode(fields["mode"])
        let matchesWhenMissing = matchesWhenMissing(fields["when_missing"])
        let isForReview =
            fields["review"].map { reader.word($0, "review", among: ["true", "false"]) == "true" }
            ?? false
        let events = events(fields["events"], "events")
        let reason = reader.text(fields["reason"], "reason")
        if let reason, let reasonNode = fields["reason"] { checkReason(reason, reasonNode) }
        var position: Int?
        if let effect {
            let (wanted, other) = effect == .skip ? ("up_to", "challenge") : ("challenge", "up_to")
            if fields[wanted] == nil {
                reader.report(node, "a rule with effect '\(effect.rawValue)' needs '\(wanted)'")
            }
            if let otherNode = fields[other] {
                reader.report(
                    otherNode, "a rule with effect '\(effect.rawValue)' has no '\(other)'")
            }
            position = challenge(fields[wanted])
        }
        let condition = condition(fields["condition"], "a condition")
        guard let id, let effect, let mode, let events, let reason, let position,
            let condition
        else { return nil }
        let rule = PolicyRule(
            id: id, effect: effect, mode: mode, events: events, challenge: position, reason: reason,
            isForReview: isForReview, matchesWhenMissing: matchesWhenMissing, condition: condition,
            spansTeams: reads(condition) { $0.spansTeams },
            description: description(fields["description"]))
        return (rule, fields)
    }

    /// The rule's id, checked to be unique.
    func ruleID(_ node: Node?) -> String? {
        guard let node, let id = reader.text(node, "id") else { return nil }
        let isWellFormed =
            id.utf8.count <= 64
            && id.utf8.allSatisfy {
                $0.isIdentifierStart || $0.isASCIIDigit || $0 == UInt8(ascii: "-")
            }
        if !isWellFormed {
            reader.report(node, "an id must consist of letters, digits, '-' and '_'")
        }
        if parts.rules.contains(where: { $0.id == id }) {
            reader.report(node, "two rules with id '\(id)'")
        }
        return id
    }

    func ruleMode(_ node: Node?) -> RuleMode? {
        guard let node else { return .active }
        return reader.word(node, "mode", among: RuleMode.allCases.map(\.rawValue)).flatMap(
            RuleMode.init(rawValue:))
    }

    func matchesWhenMissing(_ node: Node?) -> Bool {
        node.map { reader.word($0, "when_missing", among: ["match"]) == "match" } ?? false
    }

    /// A rule's description in one line; nil without one.
    func description(_ node: Node?) -> String? {
        guard let node else { return nil }
        // Stored policies may be older than these checks.
        let isStrict = options.refusesCertainFailures
        guard let written = isStrict ? reader.text(node, "description") : node.scalar?.string else {
            return nil
        }
        let text = PersonText.withSingleSpaces(written)
        let most = PolicyFileLimits.maximumDescriptionBytes
        let fault: String? =
            text.isEmpty || text.utf8.count > most
            ? "a description must have 1 to \(most) octets"
            : PersonText.isPlain(text)
                ? nil : "a description must not contain characters that cannot be seen"
        guard let fault else { return text }
        if isStrict { reader.report(node, fault) }
        return nil
    }

    func checkReason(_ reason: String, _ node: Node) {
        let bytes = Array(reason.utf8)
        let isCode =
            bytes.count <= 64 && bytes.first.map { $0 >= 65 && $0 <= 90 } == true
            && bytes.allSatisfy {
                $0 >= 65 && $0 <= 90 || $0.isASCIIDigit || $0 == UInt8(ascii: "_")
            }
        if !isCode {
            reader.report(node, "a reason must consist of capital letters, digits and '_'")
        }
        if BuiltInReason.all.contains(reason) || reason == BuiltInReason.accountHistory {
            reader.report(node, "'\(reason)' is a reserved reason of the evaluator")
        }
    }

    /// A skip must be able to waive something on each of its events.
    private func checkSkip(_ rule: PolicyRule, _ fields: [String: Node]) {
        guard rule.effect == .skip, let node = fields["events"], case .sequence(let nodes) = node
        else { return }
        for eventNode in nodes {
            guard case .scalar(let scalar) = eventNode,
                let event = PolicyEvent(rawValue: scalar.string)
            else { continue }
            let required = parts.rules.filter {
                $0.effect == .require && $0.mode != .disabled && $0.events.contains(event)
            }
            if required.isEmpty {
                reader.report(
                    eventNode,
                    "skip '\(rule.id)' has nothing to waive: no require rule covers '\(event.rawValue)'"
                )
            } else if !required.contains(where: { $0.challenge <= rule.challenge }),
                let upTo = fields["up_to"]
            {
                reader.report(
                    upTo,
                    "skip '\(rule.id)' can never waive anything on '\(event.rawValue)': every require rule asks for more"
                )
            }
        }
    }

    /// A condition that is false for all signals is a mistake. The check evaluates it with every
    /// signal missing: a false result then does not depend on any signal. (`has()` does depend, so
    /// conditions with it are not checked.)
    func checkReachable(_ rule: PolicyRule, _ fields: [String: Node]) {
        guard let conditionNode = fields["condition"], !rule.events.isEmpty,
            !rule.condition.resolved.usesHas
        else { return }
        let eventSlot = parts.signals.firstIndex { $0.name == "event" }
        let canHold = rule.events.contains { event in
            var values: [CELValue?] = Array(repeating: .missing, count: parts.signals.count + 1)
            if let eventSlot { values[eventSlot] = .string(event.rawValue) }
            var interpreter = Interpreter(
                variables: ExpressionVariables(values), zones: options.zones)
            guard let value = try? interpreter.evaluate(rule.condition.resolved),
                case .bool(false) = value
            else { return true }
            return false
        }
        if !canHold {
            reader.report(
                conditionNode, "unreachable: the condition of '\(rule.id)' is false for every input"
            )
        }
    }

    // MARK: Guarantees

    /// Returns the nodes, in the order of `parts.guarantees`.
    /// - Parameters:
    ///   - key: the key of the required decision.
    ///   - words: the allowed words under that key.
    mutating func readGuarantees(
        _ node: Node, key: String = "decision",
        words: [String: PolicyDecision] = [
            "allow": .allow, "require_verification": .requireVerification,
        ]
    ) -> [Node] {
        guard let nodes = reader.list(node, "guarantees") else { return [] }
        guard nodes.count <= PolicyFileLimits.maximumGuarantees else {
            reader.report(node, "more than \(PolicyFileLimits.maximumGuarantees) guarantees")
            return []
        }
        var places: [Node] = []
        for node in nodes {
            guard
                let fields = reader.fields(
                    node, "a guarantee", required: ["condition", key], optional: ["description"]),
                let condition = condition(fields["condition"], "a condition"),
                let word = reader.word(fields[key], key, among: words.keys.sorted()),
                let decision = words[word]
            else { continue }
            parts.guarantees.append(PolicyGuarantee(condition: condition, decision: decision))
            places.append(node)
        }
        return places
    }
}

extension ResolvedExpression {
    /// Whether `has()` is used anywhere.
    var usesHas: Bool {
        var found = false
        visit { node in
            if case .hasVariable = node.kind { found = true }
        }
        return found
    }
}
