// The position in the file of a condition's faults, for every way in which YAML writes text.

import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct PositionTests {
    /// Loads a policy whose only condition is `yaml`; the fault's line and column count from
    /// the condition's first line.
    private func spot(_ yaml: String) throws -> String {
        let head = """
            policy: p
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string, account.state: string?}
            rules:
            - id: r
              effect: always
              events: [sign_in]
              challenge: human_check
              reason: R
              condition: 
            """
        do throws(PolicyRefusal) {
            _ = try PolicyLoader.load(head + yaml + "\n")
            return "taken"
        } catch {
            let place = error.diagnostics[0].position
            return "\(place.line - 11):\(place.column)"
        }
    }

    // The condition's text starts in column 14; the fault is `bad`.
    @Test(arguments: [
        ("bad", "1:14"), ("true && bad", "1:22"), ("'bad'", "1:15"), ("\"true && bad\"", "1:23"),
        ("'account.state == ''é'' && bad'", "1:41"),
        ("\"account.state == \\\"x\\\" && bad\"", "1:41"),
        ("\"account.state == '\\x41\\u0042\\U00000043' && bad\"", "1:58"),
        ("true\n    && bad", "2:8"), ("true\n\n    && bad", "3:8"), ("true\n\n\n    && bad", "4:8"),
        ("'true\n    && bad'", "2:8"),
        ("\"true \\\n    && bad\"", "2:8"), ("\"true\n\n    && bad\"", "3:8"),
        (">-\n    true\n    && bad", "3:8"), (">\n    true\n\n    && bad", "4:8"),
        (">\n    true\n      && bad\n    || true", "3:10"),
        ("|\n    true\n    && bad", "3:8"), ("|-\n\n    true &&\n\n      bad", "5:7"),
        ("|2\n    true\n    && bad", "3:8"),
        ("|\n    true &&\r\n    bad", "3:5"), ("account.state == '😀' && bad", "1:38"),
    ])
    func position_faultInAnyYAMLScalar_isExact(yaml: String, expected: String) throws {
        #expect(try spot(yaml) == expected, "\(yaml)")
    }

    @Test func diagnostics_severalFaults_showsAllWithExcerpts() throws {
        let text =
            "policy: p\nversion: \"1\"\nchallenges: [{kind: a, evnts: [sign_up]}]\ndefaults: {challenge: b}\nsignals: {event: string}\nrules: []\n"
        do throws(PolicyRefusal) {
            _ = try PolicyLoader.load(text, file: "x/policy.yaml")
            Issue.record("taken")
        } catch {
            #expect(
                error.description == """
                    x/policy.yaml:3:24: error: unknown key 'evnts' in a challenge; did you mean 'events'?
                     3 | challenges: [{kind: a, evnts: [sign_up]}]
                       |                        ^
                    x/policy.yaml:4:23: error: unknown challenge 'b'; known: a
                     4 | defaults: {challenge: b}
                       |                       ^
                    x/policy.yaml:6:8: error: a policy without rules
                     6 | rules: []
                       |        ^
                    """)
        }
    }
}
