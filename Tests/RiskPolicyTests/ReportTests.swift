// The output of the commands: test reports as text, JSON and JUnit, coverage, explanations.

import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct ReportTests {
    private func report(_ tests: String) throws -> PolicyTestReport {
        let policy = try DefaultPolicy.load()
        let suite = try PolicyTestSuite.load(tests, policy: policy)
        return PolicyTestReport(policy: policy, suite: suite, withCoverage: true)
    }

    private static let tests = """
        section:
        - name: one & two
          tests:
          - name: passes
            input: {event: sign_up, account: {real_user_status: 2, state: new}, inbox.signups_24h: 1}
            output: {decision: allow, reasons: [LIKELY_REAL]}
          - name: fails <here>
            input: {event: sign_up, account.real_user_status: 1}
            output: {decision: allow, challenges: [human_check], missing: []}
        """

    @Test func testReport_failure_showsDiff() throws {
        let lines = try report(Self.tests).text.split(separator: "\n").map(String.init)
        #expect(lines.first == "FAIL one & two/fails <here>  (tests.yaml:7)")
        #expect(lines.contains("    challenges - human_check"))
        #expect(lines.contains("               + email_code"))
        #expect(lines.contains("    decision   - allow"))
        #expect(lines.contains("  likely-real-burst: never matched"))
        #expect(lines.contains("  inbox-velocity: never true: inbox.signups_24h >= 3"))
        #expect(lines.last == "risk-default 2026.5: 2 tests, 1 failed")
    }

    @Test func testReport_asJSONOrJUnit_holdsFailures() throws {
        let report = try report(Self.tests)
        let json = try #require(
            try JSONSerialization.jsonObject(with: try report.json) as? [String: Any])
        #expect(json["failures"] as? Int == 1)
        #expect((json["coverage"] as? [Any])?.count == 25)
        let junit = report.junit
        #expect(junit.contains("<testsuites name=\"risk-default\" tests=\"2\" failures=\"1\">"))
        #expect(
            junit.contains(
                "classname=\"risk-default.one &amp; two\" name=\"fails &lt;here&gt;\" file=\"tests.yaml\" line=\"7\""
            ))
        #expect(junit.contains("<failure message=\"differs in challenges, decision, missing\">"))
    }

    @Test func explanation_ofDecision_namesRulesAndSignals() throws {
        let policy = try DefaultPolicy.load()
        let input = try PolicyTestSuite.input(
            "{\"event\": \"sign_in\", \"account\": {\"state\": \"pending\", \"has_email\": true}}",
            file: "-", policy: policy)
        let text = PolicyExplanation(policy: policy, trace: policy.trace(input)).text
        #expect(
            text.hasPrefix(
                """
                sign_in: require_verification   (risk-default 2026.5)
                  challenges  email_code, reauthenticate
                  reasons     SIGNUP_UNVERIFIED

                matched
                  signup-check-outstanding   always asks for email_code      SIGNUP_UNVERIFIED
                      the check required at sign-up is not passed yet  → true
                          account.state = "pending"

                unknown: a signal is missing
                """))
    }

    /// The whole condition comes first, because its parts alone would lose a `!` before them.
    @Test(arguments: [
        (
            "!(context.x == 0)", "1",
            "      the x from the app is not zero  → true\n        the x from the app is zero  → false"
        ),
        (
            "!(context.x == 0 && context.x > -1)", "0",
            "      the x from the app is not zero or the x from the app is at most -1  → false\n        the x from the app is zero  → true"
        ),
        (
            "context.x > 0 ? context.x < 5 : !(context.x < 0)", "9",
            "(if the x from the app is more than zero: the x from the app is less than five; otherwise: the x from the app is at least zero)  → false\n"
        ),
        ("context.x == 1", "1", "      the x from the app is one  → true\n          context.x = 1"),
    ]) func explanation_negatedCondition_isWhole(
        condition: String, value: String, text: String
    ) throws {
        let policy = try PolicyLoader.load(
            """
            policy: p
            version: "1"
            challenges: [{kind: email_code}]
            defaults: {challenge: email_code}
            signals: {event: string, context.x: "int?"}
            rules:
            - {id: r, effect: require, when_missing: match, events: [sign_in], challenge: email_code, reason: R, condition: '\(condition)'}
            """)
        func explained(_ input: String) throws -> String {
            let input = try PolicyTestSuite.input(input, file: "-", policy: policy)
            var explanation = PolicyExplanation(policy: policy, trace: policy.trace(input))
            #expect(!explanation.text.contains(condition))
            explanation.showsSource = true
            #expect(explanation.text.contains("      = \(condition)\n"))
            explanation.showsSource = false
            return explanation.text
        }
        let given = try explained("{event: sign_in, context: {x: \(value)}}")
        #expect(given.contains(text), "\(given)")
        #expect(
            try explained("{event: sign_in}").contains(
                "  → missing: it matches, since the rule says when_missing: match"))
    }

    @Test(arguments: [
        (ListFileText.text("\u{2028}198.51.100.0/24 # office\r\n\u{A0}\n"), String?.none),
        (.absent, "no such file inside the policy's folder: 'l.txt'"),
        (
            .unreadable("line 1, column 2: no UTF-8"),
            "the file 'l.txt' cannot be read: line 1, column 2: no UTF-8"
        ),
        (
            .text("198.51.100.0/33\n"),
            "'198.51.100.0/33' looks like an address or a range, but is neither"
        ),
    ]) func load_listFile_isReadOrNamed(file: ListFileText, words: String?) throws {
        var options = PolicyLoadOptions()
        options.listFile = { _ in file }
        func load() throws(PolicyRefusal) -> Policy {
            try PolicyLoader.load(
                """
                \u{FEFF}policy: p
                version: "1"
                challenges: [{kind: email_code}]
                defaults: {challenge: email_code}
                signals: {event: string, context.ip: "string?"}
                lists: {bad: l.txt}
                rules:
                - {id: r, effect: require, events: [sign_in], challenge: email_code, reason: R, condition: context.ip in bad}
                """, options: options)
        }
        guard let words else {
            let policy = try load()
            func decision(_ ip: String) throws -> PolicyResult {
                policy.decide(
                    try PolicyTestSuite.input(
                        "{event: sign_in, context: {ip: '\(ip)'}}", file: "-", policy: policy))
            }
            #expect(try decision("::ffff:198.51.100.7").decision == .requireVerification)
            #expect(try decision("198.51.101.7").decision == .allow)
            // Text that is not an address is an error of the rule: it requires a check, and is
            // logged.
            let odd = try decision("198.51.100.7:443")
            #expect(odd.decision == .requireVerification && odd.errors.contains(0))
            return
        }
        let refusal = #expect(throws: PolicyRefusal.self) { try load() }
        #expect(refusal.map { "\($0)".contains(words) } == true, "\(String(describing: refusal))")
    }

    @Test(arguments: [
        (
            "{event: sign_up, account.age_hour: 1}",
            "unknown signal 'account.age_hour'; did you mean 'account.age_hours'?"
        ),
        ("{event: sign_out}", "unknown event; known: sign_up, sign_in, upgrade, sensitive_action"),
        ("{event: sign_up, history: gone}", "'history' must be 'unavailable' or omitted"),
        ("{event: sign_up, now: yesterday}", "'now' must be a time as in 2026-11-20T21:14:03Z"),
        ("{event: sign_up, token: {age_s: many}}", "'token.age_s' is int, not string"),
        ("[]", "an input must be a mapping"),
    ])
    func policyInput_invalid_isRefused(text: String, message: String) throws {
        let policy = try DefaultPolicy.load()
        do throws(PolicyRefusal) {
            _ = try PolicyTestSuite.input(text, file: "q.yaml", policy: policy)
            Issue.record("taken")
        } catch {
            #expect(error.diagnostics.first?.message == message)
        }
    }

    @Test func activation_failedTestOrBrokenGuarantee_isRefused() throws {
        let policy = try DefaultPolicy.load()
        try DefaultPolicy.tests(policy).hold(policy)
        #expect(throws: PolicyRefusal.self) {
            try PolicyTestSuite.load("section: []", policy: policy).hold(policy)
        }
        do throws(PolicyRefusal) {
            try PolicyTestSuite.load(Self.tests, policy: policy).hold(policy)
            Issue.record("taken")
        } catch {
            #expect(error.diagnostics.count == 1)
            #expect(
                error.description.hasPrefix(
                    "tests.yaml:7:5: error: test 'one & two/fails <here>' fails: challenges is [\"email_code\"]"
                ))
        }
        // Rules that break a guarantee, loaded without generated inputs: the test finds it without
        // expecting it.
        var options = PolicyLoadOptions()
        options.generatedInputs = 0
        let broken = try PolicyLoader.load(
            """
            policy: broken
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string, account.age_hours: int?}
            rules: [{id: r, effect: always, events: [sign_in], challenge: human_check, reason: R, condition: account.age_hours > 1}]
            guarantees: [{condition: account.age_hours > 5, decision: allow}]
            """, options: options)
        let tests =
            "section: [{name: s, tests: [{name: t, input: {event: sign_in, account.age_hours: 9}, output: {decision: allow}}]}]"
        #expect(throws: PolicyRefusal.self) {
            try PolicyTestSuite.load(tests, policy: broken).hold(broken)
        }
    }
}
