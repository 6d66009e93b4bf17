// policy.yaml → Policy, for policies with `decides: status`.

import CEL
import Yams

extension PolicyLoader {
    /// Its event: the first authorization of an app by a user.
    static let statusEvent = PolicyEvent.signUp
    /// The id of the rule that gives the default.
    private static let defaultRule = "default"

    /// Reads everything except the names; returns the guarantees' nodes.
    mutating func readStatus(_ fields: [String: Node]) -> [Node] {
        let events = UInt8(1 << Self.statusEvent.index)
        parts.challenges = [PolicyStatus.unsupported, .unknown].map {
            PolicyChallenge(kind: $0.rawValue, events: events, unavailableWhen: nil)
        }
        // Errors and unavailable history do not count against a user, but give no trust either.
        parts.errorChallenge = 1
        parts.degraded = [Self.statusEvent: 0]
        if let node = fields["rules"] { readStatusRules(node) }
        if let node = fields["defaults"],
            let own = reader.fields(node, "defaults", required: ["status"], optional: []),
            let status = status(own["status"])
        {
            addDefault(status, node)
        }
        let guarantees = fields["guarantees"].map { readStatusGuarantees($0) } ?? []
        if let node = fields["rules"] { checkCost(node) }
        return guarantees
    }

    private func status(_ node: Node?) -> PolicyStatus? {
        reader.word(node, "status", among: PolicyStatus.allCases.map(\.rawValue)).flatMap(
            PolicyStatus.init)
    }

    private mutating func readStatusRules(_ node: Node) {
        guard let nodes = reader.list(node, "rules") else { return }
        guard nodes.count < PolicyFileLimits.maximumRules else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumRules - 1) rules")
        }
        for node in nodes {
            guard
                let fields = reader.fields(
                    node, "a rule", required: ["id", "status", "condition"],
                    optional: ["when_missing", "mode", "reason", "description"])
            else { continue }
            let id = ruleID(fields["id"])
            let status = status(fields["status"])
            let mode = ruleMode(fields["mode"])
            let matchesWhenMissing = matchesWhenMissing(fields["when_missing"])
            let reason =
                fields["reason"].map { reader.text($0, "reason") }
                ?? id.map { $0.uppercased().replacing("-", with: "_") }
            if let reason, let reasonNode = fields["reason"] ?? fields["id"] {
                checkReason(reason, reasonNode)
                if reason == PolicyStatus.defaultReason {
                    reader.report(reasonNode, "'\(reason)' is the reason of the default")
                }
            }
            let condition = condition(fields["condition"], "a condition")
            guard let id, let status, let mode, let reason, let condition else { continue }
            var rule = rule(
                id, status, reason, condition, mode: mode, matchesWhenMissing: matchesWhenMissing)
            rule.description = description(fields["description"])
            parts.rules.append(rule)
            checkReachable(rule, fields)
        }
    }

    private func rule(
        _ id: String, _ status: PolicyStatus, _ reason: String, _ condition: PolicyExpression,
        mode: RuleMode = .active,
        matchesWhenMissing: Bool = false, effect: RuleEffect = .always
    ) -> PolicyRule {
        PolicyRule(
            id: id, effect: status == .likelyReal ? .skip : effect, mode: mode,
            events: [Self.statusEvent],
            challenge: status == .unsupported ? 0 : 1, reason: reason,
            matchesWhenMissing: matchesWhenMissing,
            condition: condition, spansTeams: true)
    }

    /// Always matches and yields to every other rule: `likely_real` waives it. If another rule
    /// gives a status too, the more cautious status counts.
    private mutating func addDefault(_ status: PolicyStatus, _ node: Node) {
        guard status != .likelyReal else { return }
        do throws(ExpressionFault) {
            let always = PolicyExpression(
                text: "true", resolved: try Checker.resolve("true", in: parts.scope),
                position: reader.file.position(of: node))
            parts.rules.append(
                rule(Self.defaultRule, status, PolicyStatus.defaultReason, always, effect: .require)
            )
        } catch {
            reader.report(node, error.message)
        }
    }

    private mutating func readStatusGuarantees(_ node: Node) -> [Node] {
        readGuarantees(
            node, key: "status", words: ["likely_real": .allow, "unknown": .requireVerification])
    }
}
