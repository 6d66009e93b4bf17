// `"text" in list`: whether a list of strings contains a text.

import CEL
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct InOperatorTests {
    /// - Parameter names: the number of texts in the condition before the requested one.
    private func policy(names: Int) throws -> Policy {
        let others = (0..<names).map { "\"w\($0)\"" }.joined(separator: ", ")
        let first = names == 0 ? "" : "account.state in [\(others)] || "
        return try PolicyLoader.load(
            """
            policy: p
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string, account.state: string?, session.amr: list(string)?}
            rules:
            - {id: r, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: '\(first)"otp" in session.amr'}
            """)
    }

    private func isAsked(
        _ policy: Policy, _ methods: [String]?
    ) throws -> (asked: Bool, missing: Bool) {
        var input = policy.makeInput(
            event: .signUp, now: try #require(CELTimestamp(seconds: 1_790_000_000)))
        try policy.set("account.state", to: .string("x"), in: &input)
        if let methods {
            try policy.set("session.amr", to: .list(methods.map(CELValue.string)), in: &input)
        }
        let result = policy.decide(input)
        return (result.decision == .requireVerification, !result.missing.isEmpty)
    }

    @Test(arguments: [0, 63, 64, 80]) func inOperator_listOfStrings_findsText(_ names: Int) throws {
        let policy = try policy(names: names)
        for (methods, expected) in [
            (["otp"], true), (["pwd", "otp"], true), ([], false), (["pwd"], false),
            (["OTP"], false), (["w1", "o"], false),
        ] as [([String], Bool)] {
            let got = try isAsked(policy, methods)
            #expect(got.asked == expected && !got.missing, "\(methods)")
        }
        let got = try isAsked(policy, nil)
        #expect(!got.asked && got.missing)
        #expect(policy.decidesAtOnce)
    }
}
