// Whole policies made at random, and files built to do harm. Each is accepted or refused in bounded
// time, and an accepted one decides as the rules written out plainly.

import CEL
import Foundation
import RiskPolicy
import TestSupport
import Testing

/// Policies with random challenges, signals, rules, modes, guarantees.
private struct PolicyMaker {
    var random: SeededGenerator

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    private mutating func events() -> String {
        let all = PolicyEvent.allCases.map(\.rawValue)
        let some = all.filter { _ in Bool.random(using: &random) }
        return "[\((some.isEmpty ? [pick(all)] : some).joined(separator: ", "))]"
    }

    mutating func policy() -> String {
        let kinds = (0..<Int.random(in: 1...5, using: &random)).map { "kind_\($0)" }
        var text =
            "policy: made\nversion: \"\(Int.random(in: 1...99, using: &random))\"\nchallenges:\n"
        for (position, kind) in kinds.enumerated() {
            // The first is always available, so that most of them are accepted.
            let condition =
                position > 0 && Bool.random(using: &random)
                ? ", unavailable_when: '\(condition())'" : ""
            let events = position > 0 && Bool.random(using: &random) ? ", events: \(events())" : ""
            text += "- {kind: \(kind)\(events)\(condition)}\n"
        }
        text +=
            "defaults: {challenge: \(pick(kinds)), degraded: {\(pick(PolicyEvent.allCases).rawValue): \(pick(kinds))}}\n"
        text += "lists: {states: [new, active]}\n"
        text += """
            signals: {event: string, account.age_hours: int?, account.state: string?, account.has_email: bool?, account.managed: bool?,
              inbox.signups_24h: int?, app.signups_1h_baseline: double?, context.quota: uint?, context.marks: list(string)?}
            rules:

            """
        for number in 0..<Int.random(in: 1...24, using: &random) {
            let effect = pick(["always", "require", "require", "skip"])
            let challenge =
                effect == "skip" ? "up_to: \(kinds[kinds.count - 1])" : "challenge: \(pick(kinds))"
            let mode = pick(["", "", "", ", mode: shadow", ", mode: disabled"])
            let missing = pick(["", "", ", when_missing: match"])
            text +=
                "- {id: r\(number), effect: \(effect), events: \(events()), \(challenge), reason: R\(number % 7)\(mode)\(missing), "
            text += "condition: '\(condition()) || account.managed'}\n"
        }
        // A rule for every skip to waive.
        text +=
            "- {id: base, effect: require, events: [sign_up, sign_in, upgrade, sensitive_action], challenge: \(kinds[0]), reason: BASE, "
        text += "condition: account.age_hours < 5}\n"
        return text
    }

    private mutating func condition() -> String {
        ConditionMaker.truth(&random, depth: 3).replacingOccurrences(of: "'", with: "''")
    }
}

@Suite(.blocking, .timeLimit(.minutes(15))) struct RandomPolicyTests {
    private var now: CELTimestamp {
        get throws { try #require(CELTimestamp(seconds: 1_790_000_000)) }
    }

    @Test func policy_random_decidesAsPlainRules() throws {
        var maker = PolicyMaker(random: SeededGenerator(seed: 11))
        var (taken, compared) = (0, 0)
        for round in 0..<400 {
            let text = maker.policy()
            let policy: Policy
            do throws(PolicyRefusal) {
                policy = try PolicyLoader.load(text, options: ConditionMaker.options)
            } catch {
                #expect(!error.diagnostics.isEmpty)
                continue
            }
            taken += 1
            // Rules that do not count are not among the plain ones.
            guard policy.rules.allSatisfy({ $0.mode == .active }) else {
                var generator = InputGenerator(policy: policy, seed: UInt64(round), now: try now)
                for number in 0..<40 {
                    let result = policy.decide(
                        generator.next(event: PolicyEvent.allCases[number % 4]))
                    try #require((result.decision == .allow) == (result.challenges == 0))
                    for rule in result.asked { try #require(policy.rules[rule].mode == .active) }
                    for rule in result.shadow { try #require(policy.rules[rule].mode == .shadow) }
                }
                continue
            }
            compared += 1
            var generator = InputGenerator(policy: policy, seed: UInt64(round), now: try now)
            for number in 0..<40 {
                let input = generator.next(event: PolicyEvent.allCases[number % 4])
                let result = policy.decide(input)
                let plain = PlainDecision(policy, input)
                try #require(result.decision == plain.decision, "\(text)")
                try #require(
                    Set(policy.challengeKinds(result)) == plain.challenges
                        || plain.challenges.isEmpty, "\(text)")
                try #require(
                    Set(result.asked) == plain.asked && Set(result.waived) == plain.waived,
                    "\(text)")
                try #require((result.decision == .allow) == (result.challenges == 0))
            }
            // A policy has no difference from itself, and its text is the same.
            #expect(PolicyDiff(from: policy, to: policy).items.isEmpty)
            #expect(
                !PolicyComparison.onGeneratedInputs(policy, policy, count: 40, now: try now)
                    .comparison.total.differs)
        }
        #expect(taken > 100 && compared > 5, "\(compared) compared")
        print("random policies: \(taken) of 400 taken, \(compared) compared with plain rules")
    }

    @Test func policy_mutated_neverCrashesLoader() throws {
        let root = Folders.package.appending(path: "policy/rules/default")
        let policyText = try String(
            contentsOf: root.appending(path: "policy.yaml"), encoding: .utf8)
        let testsText = try String(contentsOf: root.appending(path: "tests.yaml"), encoding: .utf8)
        let policy = try DefaultPolicy.load()
        var maker = PolicyMaker(random: SeededGenerator(seed: 12))
        let seeds = [policyText, testsText] + (0..<20).map { _ in maker.policy() }
        var random = SeededGenerator(seed: 13)
        var options = PolicyLoadOptions()
        options.generatedInputs = 8
        var (taken, suites) = (0, 0)
        for round in 0..<600 {
            let text = Mutation.of(seeds[round % seeds.count], with: seeds, &random)
            if let made = try? PolicyLoader.load(text, options: options) {
                taken += 1
                _ = PolicyDiff(from: policy, to: made).text()
            }
            let tests = Mutation.of(testsText, with: seeds, &random)
            if let suite = try? PolicyTestSuite.load(tests, policy: policy) {
                suites += 1
                let report = PolicyTestReport(
                    policy: policy, suite: suite, withCoverage: round % 10 == 0)
                _ = report.text
                _ = report.junit
            }
        }
        #expect(taken > 5 && suites > 0, "\(taken) policies and \(suites) suites of tests taken")
    }

    /// Small files that would be large in memory, deep or wide ones, and ones
    /// that parsers take long for.
    private static let harmful: [(name: String, text: String)] = {
        func repeated(_ text: String, _ count: Int) -> String {
            String(repeating: text, count: count)
        }
        var bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
        for (name, before) in zip("bcdefghij", "abcdefghi") {
            bomb += "\(name): &\(name) [\(repeated("*\(before), ", 8))*\(before)]\n"
        }
        return [
            ("alias bomb", bomb),
            (
                "alias bomb in flow style",
                "{" + bomb.replacingOccurrences(of: "\n", with: ", ") + "}"
            ),
            ("alias as a key", "a: &a [1]\n? *a\n: 1\n"),
            ("merge keys", "a: &a {x: 1}\nb: {<<: *a}\n"),
            ("alias of itself", "a: &a [*a]\n"),
            ("deep flow sequences", repeated("[", 100_000)),
            ("deep flow mappings", repeated("{a: ", 60_000)),
            ("deep closed sequences", repeated("[", 20_000) + repeated("]", 20_000)),
            ("deep block sequences", repeated("- ", 100_000) + "x"),
            (
                "deep block mappings",
                (0..<700).map { repeated(" ", $0) + "a:" }.joined(separator: "\n")
            ),
            ("wide sequence", "a: [" + repeated("x, ", 80_000) + "x]"),
            ("wide mapping", "{" + (0..<30_000).map { "k\($0): 1" }.joined(separator: ", ") + "}"),
            ("one key many times", repeated("a: 1\n", 50_000)),
            ("long line", "policy: " + repeated("x", 250_000)),
            ("too large", repeated("# comment\n", 40_000)), ("only blanks", repeated(" ", 250_000)),
            ("only line feeds", repeated("\n", 250_000)),
            ("quotes without an end", "a: \"" + repeated("\\\"", 120_000)),
            ("escapes", "a: \"" + repeated("\\u0041", 40_000) + "\""),
            ("many documents", repeated("---\na: 1\n", 25_000)), ("tags", repeated("!!x ", 60_000)),
            ("directives", repeated("%YAML 1.1\n", 20_000)),
            ("block scalar", "a: |\n" + repeated(" x\n", 80_000)),
            ("folded scalar", "a: >\n" + repeated(" x\n\n", 60_000)),
            ("question marks", repeated("? ", 100_000)), ("colons", repeated(": ", 100_000)),
            ("anchors", repeated("&a ", 80_000)),
            ("nul", "policy: \u{0}\n"), ("byte order marks", repeated("\u{FEFF}", 50_000)),
            ("combining marks", "policy: a" + repeated("\u{301}", 100_000)),
        ]
    }()

    @Test(arguments: harmful.map(\.name)) func policy_harmfulFile_isRefusedInTime(
        name: String
    ) throws {
        let text = try #require(Self.harmful.first { $0.name == name }?.text)
        #expect(throws: PolicyRefusal.self) { _ = try PolicyLoader.load(text) }
        let policy = try DefaultPolicy.load()
        #expect(throws: PolicyRefusal.self) { _ = try PolicyTestSuite.load(text, policy: policy) }
        #expect(throws: PolicyRefusal.self) { _ = try CELValue.variables("- " + text, file: "x") }
    }

    @Test(
        arguments: [
            (
                "deep parentheses",
                String(repeating: "(", count: 8_000) + "true"
                    + String(repeating: ")", count: 8_000),
                "nested more than 100 deep"
            ),
            (
                "deep negation", String(repeating: "!", count: 16_000) + "true",
                "nested more than 100 deep"
            ),
            (
                "long chain", String(repeating: "true && ", count: 2_000) + "true",
                "nested more than 100 deep"
            ),
            (
                "nested comprehensions",
                String(repeating: "[1,2,3,4,5,6,7,8].all(x, ", count: 12) + "true"
                    + String(repeating: ")", count: 12),
                "over budget"
            ),
            (
                "doubling strings",
                "size(" + String(repeating: "(", count: 30) + "\"a\""
                    + String(repeating: " + \"a\")", count: 30) + ") > 0", nil
            ),
            (
                "long text", "\"" + String(repeating: "a", count: 20_000) + "\" == \"\"",
                "longer than 16384 bytes"
            ),
        ] as [(String, String, String?)])
    func policy_harmfulCondition_isTakenOrRefusedInTime(
        name: String, condition: String, refusal: String?
    ) throws {
        let file = Folders.package.appending(path: "policy/rules/default/policy.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
            .replacingOccurrences(
                of: "condition: checks.failed_24h >= 3}", with: "condition: '\(condition)'}")
        try #require(text.contains(condition))
        let policy: Policy
        do throws(PolicyRefusal) {
            policy = try PolicyLoader.load(text)
        } catch {
            #expect(refusal.map { error.description.contains($0) } == true, "\(error)")
            return
        }
        #expect(refusal == nil, "it was taken")
        // It always holds, and requires a check at these events.
        var generator = InputGenerator(policy: policy, seed: 3, now: try now)
        for event in PolicyEvent.allCases where event != .signUp {
            #expect(policy.decide(generator.next(event: event)).decision == .requireVerification)
        }
    }

    /// A list of the largest accepted size, and one beyond.
    @Test func policy_hugeList_isBounded() throws {
        func load(_ entries: Int) throws(PolicyRefusal) -> Policy {
            var options = PolicyLoadOptions()
            let lines = (0..<entries).map { "entry-\($0)" }.joined(separator: "\n")
            options.listFile = { _ in .text(lines) }
            return try PolicyLoader.load(
                """
                policy: p
                version: "1"
                challenges: [{kind: human_check}]
                defaults: {challenge: human_check}
                lists: {bad: bad.txt}
                signals: {event: string, context.device: string?}
                rules:
                - {id: r, effect: always, events: [sign_in], challenge: human_check, reason: R, condition: context.device in bad}

                """, options: options)
        }
        let policy = try load(100_000)
        var input = policy.makeInput(event: .signIn, now: try now)
        try policy.set("context.device", to: .string("entry-99999"), in: &input)
        #expect(policy.decide(input).decision == .requireVerification)
        #expect(throws: PolicyRefusal.self) { _ = try load(100_001) }
    }
}
