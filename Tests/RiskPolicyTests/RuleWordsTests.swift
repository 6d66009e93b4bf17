// Rules as sentences. Vectors/words has the sentences of the policies in the program, of those in
// docs/POLICY.md and of expressions that operators write. Each is reviewed: POSTERN_TEST_RECORD=1
// writes them again, so read the difference. A separate reader compares the meaning of sentences
// with the meaning of the conditions.

import CEL
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct RuleWordsTests {
    private static let vectors = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "Vectors/words")

    private func compare(_ lines: [String], with name: String) throws {
        let file = Self.vectors.appending(path: name)
        let made = lines.joined(separator: "\n") + "\n"
        if ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" {
            return try Data(made.utf8).write(to: file)
        }
        let expected = try String(contentsOf: file, encoding: .utf8)
        for (line, other) in zip(
            lines, expected.split(separator: "\n", omittingEmptySubsequences: false))
        {
            #expect(line == other, "\(name)")
        }
        #expect(made == expected, "\(name)")
    }

    /// Every sentence about a policy.
    private func sentences(_ policy: Policy) -> [String] {
        let words = RuleWords(policy)
        var lines: [String] = []
        for rule in policy.rules { lines += [rule.id, "  " + words.sentence(rule)] }
        for guarantee in policy.guarantees {
            lines += ["guarantee", "  " + words.sentence(guarantee)]
        }
        for challenge in policy.challenges {
            guard let condition = challenge.unavailableWhen else { continue }
            lines += ["\(challenge.kind) is not offered", "  when " + words.text(condition)]
        }
        for counter in policy.counters {
            lines += ["counter \(counter.name)", "  " + words.text(counter)]
        }
        return lines
    }

    @Test func defaultPolicy_everyRule_isTheReviewedSentence() throws {
        try compare(sentences(try DefaultPolicy.load()), with: "default.txt")
    }

    @Test func statusPolicy_everyRule_isTheReviewedSentence() throws {
        let file = Folders.package.appending(path: "policy/rules/status/policy.yaml")
        try compare(
            sentences(try PolicyLoader.load(try String(contentsOf: file, encoding: .utf8))),
            with: "status.txt")
    }

    /// The blocks of the page that have rules; a part of a policy gets the keys that it leaves out.
    @Test func examplesOfDocs_everyRule_isTheReviewedSentence() throws {
        let page = try ["POLICY", "POLICY-REFERENCE"].map {
            try String(
                contentsOf: Folders.package.appending(path: "docs/\($0).md"), encoding: .utf8)
        }.joined(separator: "\n")
        let blocks = page.components(separatedBy: "```yaml\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        var options = PolicyLoadOptions()
        options.listFile = { _ in .text("198.51.100.0/24\n") }
        var lines: [String] = []
        for block in blocks where block.contains("rules:\n") {
            var text = block
            if !text.contains("policy: ") { text = "policy: part\nversion: \"1\"\n" + text }
            if !text.contains("decides: ") {
                if !text.contains("signals:") {
                    text +=
                        "signals: {event: string, context.ip: string?, context.email: string?}\n"
                }
                if !text.contains("defaults:") { text += "defaults: {challenge: email_code}\n" }
                if !text.contains("challenges:") {
                    text += "challenges: [{kind: human_check}, {kind: email_code}]\n"
                }
            }
            lines += sentences(try PolicyLoader.load(text, options: options))
        }
        #expect(lines.count >= 16)
        try compare(lines, with: "docs.txt")
    }

    // MARK: Expressions

    /// A policy that declares every signal, lists and counters, with one condition.
    private func policy(
        _ condition: String, isStatus: Bool = false, extra: String = ""
    ) throws -> Policy {
        let signals = (isStatus ? StandardSignal.ofStatus : StandardSignal.ofDecisions).map {
            "  \($0.rawValue): \($0.facts.type)"
        }
        let quoted = condition.replacing("'", with: "''")
        let head =
            isStatus
            ? "policy: status\ndecides: status\ndefaults: {status: unsupported}"
            : """
            policy: p
            challenges: [{kind: human_check}, {kind: email_code}]
            defaults: {challenge: email_code}
            live_lists: {bad: range, complaints: {kind: personal, of: team}}
            counters:
              domain: {key: inbox_domain, window: 24h, events: [sign_up]}
              networks: {key: account, window: 7d, events: [sign_up, sign_in], distinct: context.network}
              all: {key: device, window: 90s, events: [sign_up, sign_in, upgrade, sensitive_action]}
            """
        let own =
            isStatus
            ? ""
            : """

              context.x: int?
              context.y: int?
              context.score: double?
              context.quota: uint?
              context.is_vip: bool?
              context.ip: string?
              context.ip_prefix: string?
              context.network: string?
              context.email: string?
              context.tags: list(string)?
              context.made: timestamp?
              context.wait: duration?
            """
        let rule =
            isStatus
            ? "{id: r, status: unknown, condition: '\(quoted)'\(extra)}"
            : "{id: r, effect: require, events: [sign_up, sign_in, sensitive_action], challenge: email_code, reason: R, "
                + "condition: '\(quoted)'\(extra)}"
        var options = PolicyLoadOptions()
        options.generatedInputs = 0
        return try PolicyLoader.load(
            """
            \(head)
            version: "1"
            constants: {LIKELY_REAL: 2, DAY: 24}
            lists: {known_bad: [a, b]}
            signals:
            \(signals.joined(separator: "\n"))\(own)
            rules:
            - \(rule)
            """, options: options)
    }

    @Test(arguments: [false, true]) func expressionsOfOperators_sentence_isTheReviewedOne(
        isStatus: Bool
    ) throws {
        let name = isStatus ? "status-expressions.txt" : "expressions.txt"
        let lines = try String(contentsOf: Self.vectors.appending(path: name), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        var made: [String] = []
        for line in lines where !line.hasPrefix("  ") {
            made.append(String(line))
            guard !line.hasPrefix("#"), !line.isEmpty else { continue }
            let policy = try policy(String(line), isStatus: isStatus)
            made.append("  " + RuleWords(policy).condition(of: policy.rules[0]))
        }
        #expect(made.count >= 20)
        try compare(made, with: name)
    }

    /// The words of a signal differ from those of all others.
    @Test func phrases_ofAllSignals_differ() {
        for signals in [StandardSignal.ofDecisions, StandardSignal.ofStatus] {
            var seen: Set<String> = []
            for signal in signals {
                let phrase = signal.phrase
                #expect(seen.insert(phrase.noun).inserted, "\(signal.rawValue): \(phrase.noun)")
                if case .since(let clause, _, _, _) = phrase.kind {
                    #expect(seen.insert(clause).inserted, "\(signal.rawValue): \(clause)")
                }
                #expect(phrase.known.yes != phrase.known.no)
            }
        }
    }

    @Test(
        arguments: [
            (86_400, "a day"), (3_600, "an hour"), (259_200, "three days"), (2_592_000, "30 days"),
            (15_552_000, "half a year"),
            (900, "15 minutes"), (5_400, "90 minutes"), (604_800, "a week"),
            (360_000, "four days and four hours"),
            (15_555_600, "180 days and one hour"),
            (90_061, "one day, one hour, one minute and one second"), (1, "a second"),
            (129_600, "36 hours"), (864_000_000, "10,000 days"),
        ] as [(Int64, String)]) func duration_ofSeconds_isInHumanUnits(
            seconds: Int64, words: String
        )
    {
        #expect(DurationWords.text(seconds) == words)
    }

    @Test func description_ofRule_isTheFirstSentence() throws {
        let policy = try policy("context.x > 2", extra: ", description: 'Scripts send  many'")
        #expect(
            RuleWords(policy).sentence(policy.rules[0])
                == "Scripts send many. Asks for email_code at sign-ups, sign-ins and sensitive actions when the x from the app is more than two."
        )
    }

    @Test(arguments: ["a\u{202E}b", String(repeating: "a", count: 401), "  "])
    func description_unfit_isRefused(text: String) {
        #expect(throws: PolicyRefusal.self) {
            try policy("context.x > 2", extra: ", description: \"\(text)\"")
        }
    }

    /// The longest conditions that a policy may have do not take long.
    @Test func sentence_ofLongChain_isWritten() throws {
        // In groups: an expression is nested at most 100 deep.
        let groups = (0..<20).map { group in
            let links = (group * 30..<group * 30 + 30).map {
                "context.x \($0 % 2 == 0 ? "==" : "!=") \($0)"
            }
            return "(\(links.joined(separator: " || ")))"
        }
        let chain = groups.joined(separator: " || ")
        let policy = try policy("!(\(chain))")
        #expect(
            RuleWords(policy).sentence(policy.rules[0]).hasSuffix(
                "the x from the app is not 598 and the x from the app is 599."))
    }

    // MARK: Meaning

    private static let read: [(name: String, phrase: SignalPhrase)] = {
        let signals: [StandardSignal] = [
            .sinceSeen, .sinceTransfer, .age, .tokenAge, .sinceSignIn, .inboxSignUps, .replies,
            .state, .hasEmail,
            .realUserStatus,
        ]
        return signals.map { ($0.rawValue, $0.phrase) }
    }()

    private static let numbers: [Int64] = [
        0, 1, 2, 3, 9, 10, 24, 25, 36, 72, 100, 168, 719, 720, 900, 901, 3_600, 4_320, 4_321,
    ]

    private func comparison(_ random: inout SeededGenerator) -> String {
        let (name, phrase) = pick(Self.read + [("context.x", Self.number)], &random)
        switch phrase.kind {
        case .flag:
            return pick(
                ["\(name)", "!\(name)", "\(name) == false", "has(\(name))", "!has(\(name))"],
                &random)
        case .word:
            return pick(
                [
                    "\(name) == \"active\"", "\(name) != \"new\"",
                    "\(name) in [\"new\", \"active\"]",
                    "!(\(name) in [\"pending\", \"consent_revoked\"])", "\"pending\" == \(name)",
                    "\(name) == \"odd\"",
                ], &random)
        case .codes:
            return "\(name) \(pick(["==", "!=", "<", ">="], &random)) \(pick(["1", "2"], &random))"
        default:
            let operation = pick(["<", "<=", "==", "!=", ">=", ">"], &random)
            let number = pick(Self.numbers, &random)
            return pick(
                [
                    "\(name) \(operation) \(number)", "\(number) \(operation) \(name)",
                    "!(\(name) \(operation) \(number))",
                    "\(name) >= \(number) && \(name) < \(number * 2 + 1)",
                    "\(name) > \(number) && \(name) <= \(number + 24)",
                ], &random)
        }
    }

    private static let number = SignalPhrase(
        "the x from the app", .number,
        known: .init("the app sent the x", "the app did not send the x"))

    private func pick<Value>(_ values: [Value], _ random: inout SeededGenerator) -> Value {
        values[Int.random(in: 0..<values.count, using: &random)]
    }

    private func condition(_ random: inout SeededGenerator, depth: Int) -> String {
        guard depth > 0 else { return "(\(comparison(&random)))" }
        func part() -> String { condition(&random, depth: depth - 1) }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return "!\(part())"
        case 1: return "(\(part()) ? \(part()) : \(part()))"
        case 2, 3: return "(\(part()) && \(part()))"
        default: return "(\(part()) || \(part()))"
        }
    }

    /// A value beside one of the thresholds.
    private func value(_ signal: SignalDeclaration, _ random: inout SeededGenerator) -> CELValue {
        switch signal.type {
        case .bool: return .bool(Bool.random(using: &random))
        case .string:
            return .string(pick(["new", "active", "pending", "consent_revoked", "odd"], &random))
        default:
            if signal.name == StandardSignal.realUserStatus.rawValue {
                return .int(pick([0, 1, 2], &random))
            }
            return .int(max(0, pick(Self.numbers, &random) + pick([-1, 0, 1], &random)))
        }
    }

    /// A sentence holds for the same inputs as its condition; few conditions have no words.
    @Test func sentence_ofGeneratedCondition_meansTheSame() throws {
        let (seed, count) = Generated.settings(seed: 11, count: 600, variable: "POSTERN_GENERATE")
        var random = SeededGenerator(seed: seed)
        let now = try #require(CELTimestamp(seconds: 1_790_000_000))
        let names = Set(Self.read.map(\.name) + ["context.x"])
        var withoutWords = 0
        for round in 0..<count {
            let text = condition(&random, depth: round % 4)
            let policy = try policy("\(text) || account.managed")
            let whole = policy.rules[0].condition
            guard case .binary(.or, let expression, _) = whole.resolved.kind else { continue }
            let said = RuleWords(policy).text(expression, of: whole, at: .signIn)
            guard !said.contains("`") else {
                withoutWords += 1
                continue
            }
            let meaning: Meaning
            do {
                meaning = try WordsReader.read(said, Self.read + [("context.x", Self.number)])
            } catch {
                Issue.record("\(text)\n\(error)")
                continue
            }
            for _ in 0..<40 {
                var values: [String: CELValue] = [:]
                var input = policy.makeInput(event: .signIn, now: now)
                for signal in policy.signals
                where names.contains(signal.name) && Int.random(in: 0..<6, using: &random) > 0 {
                    let value = value(signal, &random)
                    values[signal.name] = value
                    try policy.set(signal.name, to: value, in: &input)
                }
                let meant: Bool? =
                    switch policy.evaluate(expression, input) {
                    case .success(.bool(let bool)): bool
                    default: nil
                    }
                #expect(meaning(values) == meant, "\(text)\n\(said)\n\(values.mapValues(\.text))")
            }
        }
        #expect(withoutWords < count / 2, "\(withoutWords) of \(count)")
    }
}
