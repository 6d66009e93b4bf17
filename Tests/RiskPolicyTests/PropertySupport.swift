// For the property tests: the combining rules written out plainly, random
// conditions, mutations of texts.

import RiskPolicy
import TestSupport

/// A decision by docs/POLICY-REFERENCE.md, "How a decision is made", with the interpreter and sets:
/// slow and plain.
struct PlainDecision {
    var asked: Set<Int> = []
    var waived: Set<Int> = []
    var missing: Set<Int> = []
    var challenges: Set<String> = []
    var decision = PolicyDecision.allow

    init(_ policy: Policy, _ input: PolicyInput) {
        var required: [(rule: Int, challenge: Int)] = []
        var requests: [Int] = []
        var strongestSkip = -1
        for (position, rule) in policy.rules.enumerated() where rule.events.contains(input.event) {
            let value = policy.evaluate(rule.condition.resolved, input)
            if case .success(.missing) = value { missing.insert(position) }
            let outcome = policy.outcome(of: position, input)
            let isError = outcome == .error
            guard outcome == .matched || (isError && rule.effect != .skip) else { continue }
            switch rule.effect {
            case .skip: strongestSkip = max(strongestSkip, rule.challenge)
            case .require:
                required.append((position, isError ? policy.errorChallenge : rule.challenge))
            case .always:
                asked.insert(position)
                requests.append(isError ? policy.errorChallenge : rule.challenge)
            }
        }
        for rule in required {
            if rule.challenge <= strongestSkip {
                waived.insert(rule.rule)
            } else {
                asked.insert(rule.rule)
                requests.append(rule.challenge)
            }
        }
        if input.isHistoryUnavailable, let degraded = policy.degraded[input.event] {
            requests.append(degraded)
        }
        guard let strongest = requests.max() else { return }
        decision = .requireVerification
        let available = policy.challenges.indices.filter { position in
            let challenge = policy.challenges[position]
            guard challenge.isOffered(for: input.event) else { return false }
            guard let condition = challenge.unavailableWhen else { return true }
            if case .success(.bool(true)) = policy.evaluate(condition.resolved, input) {
                return false
            }
            return true
        }
        var listed = available.filter { $0 >= strongest }
        if listed.isEmpty, let weaker = available.last(where: { $0 < strongest }) {
            listed = [weaker]
        }
        challenges = Set(listed.map { policy.challenges[$0].kind })
    }
}

/// Random conditions over a few signals of every type.
enum ConditionMaker {
    /// Conditions with constants that can only fail are compared too.
    static let options: PolicyLoadOptions = {
        var options = PolicyLoadOptions()
        options.refusesCertainFailures = false
        return options
    }()

    private static func pick<Element>(
        _ elements: [Element], _ random: inout SeededGenerator
    ) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    static func truth(_ random: inout SeededGenerator, depth: Int) -> String {
        let comparison = pick(["==", "!=", "<", "<=", ">", ">="], &random)
        switch Int.random(in: 0..<(depth > 0 ? 17 : 7), using: &random) {
        case 0:
            return pick(
                ["true", "false", "account.has_email", "account.managed", "has(account.state)"],
                &random)
        case 1:
            return
                "account.age_hours \(comparison) \(pick(["0", "72", "-5", "9223372036854775807"], &random))"
        case 2: return "72 \(comparison) account.age_hours"
        case 3:
            return
                "account.state \(pick(["==", "!=", "<"], &random)) \(pick(["\"new\"", "\"active\"", "event"], &random))"
        case 4: return "account.state in [\"new\", \"pending\"]"
        case 5:
            return pick(
                [
                    "account.state in states", "account.state in [event]",
                    "\"new\" in context.marks",
                ], &random)
        case 6:
            return "context.quota \(comparison) \(pick(["5u", "18446744073709551615u"], &random))"
        case 7: return "\(number(&random, depth - 1)) \(comparison) \(number(&random, depth - 1))"
        case 8: return "\(double(&random, depth - 1)) \(comparison) \(double(&random, depth - 1))"
        case 9: return "!(\(truth(&random, depth: depth - 1)))"
        case 10:
            return
                "(\(truth(&random, depth: depth - 1)) ? \(truth(&random, depth: depth - 1)) : \(truth(&random, depth: depth - 1)))"
        case 11:
            return "[1, 2].exists(x, x == account.age_hours || \(truth(&random, depth: depth - 1)))"
        case 12:
            return "(\(truth(&random, depth: depth - 1)) && \(truth(&random, depth: depth - 1)))"
        case 13:
            let macro = pick(["exists", "all", "exists_one"], &random)
            return "\(list(&random)).\(macro)(y, y == account.state || \(truth(&random, depth: 0)))"
        case 14:
            return
                "size(\(list(&random)).filter(y, y < event)) \(comparison) \(number(&random, depth - 1))"
        case 15:
            return
                "(now - duration(\"\(pick(["1h", "-90m", "200000h"], &random))\")).getHours() \(comparison) \(number(&random, depth - 1))"
        default:
            return "(\(truth(&random, depth: depth - 1)) || \(truth(&random, depth: depth - 1)))"
        }
    }

    private static func number(_ random: inout SeededGenerator, _ depth: Int) -> String {
        guard depth > 0, Bool.random(using: &random) else {
            return pick(
                [
                    "account.age_hours", "inbox.signups_24h", "3", "-1", "size(account.state)",
                    "9223372036854775807",
                ], &random)
        }
        let operation = pick(["+", "-", "*", "/", "%"], &random)
        return pick(
            [
                "(\(number(&random, depth - 1)) \(operation) \(number(&random, depth - 1)))",
                "-(\(number(&random, depth - 1)))",
                "(\(truth(&random, depth: depth - 1)) ? \(number(&random, depth - 1)) : 4)",
            ], &random)
    }

    private static func list(_ random: inout SeededGenerator) -> String {
        pick(
            [
                "states", "context.marks", "(context.marks + states)", "[event, account.state]",
                "{event: 1}",
            ], &random)
    }

    private static func double(_ random: inout SeededGenerator, _ depth: Int) -> String {
        guard depth > 0, Bool.random(using: &random) else {
            return pick(
                [
                    "app.signups_1h_baseline", "1.5", "double(account.age_hours)",
                    "double(context.quota)",
                ], &random)
        }
        return
            "(\(double(&random, depth - 1)) \(pick(["+", "-", "*", "/"], &random)) -\(double(&random, depth - 1)))"
    }

    /// A policy in which every condition is an `always` rule; conditions that are refused as
    /// unreachable are joined with a signal.
    static func policy(_ conditions: [String]) -> String {
        var text = """
            policy: random
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            lists: {states: [new, active]}
            signals: {event: string, account.age_hours: int?, account.state: string?, account.has_email: bool?,
              account.managed: bool?, inbox.signups_24h: int?, app.signups_1h_baseline: double?, context.quota: uint?,
              context.marks: list(string)?}
            rules:

            """
        for (position, condition) in conditions.enumerated() {
            text +=
                "- {id: r\(position), effect: always, events: [sign_up, sign_in, upgrade, sensitive_action], "
            text +=
                "challenge: human_check, reason: R, condition: '(\(condition)) || account.managed'}\n"
        }
        return text
    }
}

/// Small damage to a text.
enum Mutation {
    static func of(_ text: String, with seeds: [String], _ random: inout SeededGenerator) -> String
    {
        var scalars = Array(text.unicodeScalars)
        let alphabet = Array("()[]{}&|!=<>.,:?'\"\\*-+/% 019ueaxr\n\t#é😀\u{0}".unicodeScalars)
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let place = Int.random(in: 0...scalars.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                scalars.insert(
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)], at: place)
            case 1 where place < scalars.count: scalars.remove(at: place)
            case 2 where place < scalars.count:
                scalars[place] = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            case 3:
                let other = Array(
                    seeds[Int.random(in: 0..<seeds.count, using: &random)].unicodeScalars)
                let start = Int.random(in: 0...other.count, using: &random)
                scalars.insert(contentsOf: other[start..<min(other.count, start + 30)], at: place)
            default:
                let end = min(scalars.count, place + Int.random(in: 0...20, using: &random))
                scalars.insert(contentsOf: scalars[place..<end], at: place)
            }
        }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }
}
