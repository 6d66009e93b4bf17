// The signals of policies about how a user signed in.

import Accounts
import CEL
import Decisions
import RiskPolicy
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct SignInMethodTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: reauthenticate}]
        defaults: {challenge: reauthenticate}
        signals: {event: string, session.amr: "list(string)?"}
        rules:
        - {id: weak, effect: always, events: [sensitive_action], challenge: reauthenticate, reason: WEAK, condition: "!('mfa' in session.amr)"}
        """
    private static let now: Int64 = 1_790_000_000

    private func input(
        _ policy: Policy, _ token: TokenFacts?
    ) throws -> (input: PolicyInput, signals: String) {
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        let view = GrantView(claimed: .sensitiveAction, token: token, rememberedStatus: nil)
        return SignalSource(policy).input(
            SignalSource.Facts(
                view: view, history: nil, token: token,
                time: try #require(CELTimestamp(seconds: Self.now))),
            marks: DecisionMarks(keys: ring))
    }

    @Test func amr_inToken_isReadByPolicyAndReplay() throws {
        let policy = try PolicyLoader.load(Self.text)
        for (methods, isAsked) in [
            (["mfa", "user"], false), (["otp"], true), ([], true), (nil, false),
        ] as [([String]?, Bool)] {
            let made = try input(policy, TokenFacts(issuedAt: Self.now, methods: methods))
            #expect(
                (policy.decide(made.input).decision == .requireVerification) == isAsked,
                "\(methods ?? [])")
            #expect(made.signals.contains("session.amr") == (methods != nil))
            let record = DecisionRecord(
                id: "rd_1", teamNumber: 1, clientID: "a", claimedEvent: "sensitive_action",
                event: "sensitive_action",
                decision: "allow", signals: made.signals, policyName: "p", policyVersion: "1",
                policyHash: "h",
                credentialState: "authorized",
                evaluatedAt: Self.now, expiresAt: Self.now + 300)
            let logged = try #require(LoggedSignals(record, for: policy))
            #expect((policy.decide(logged.input).decision == .requireVerification) == isAsked)
        }
        #expect(try !input(policy, nil).signals.contains("amr"))
    }

    @Test func amr_invalidOrTooLong_isIgnored() throws {
        func methods(_ amr: JSONValue?) throws -> [String]? {
            var claims: JSONObject = [
                "iss": "https://id.example", "sub": "s", "aud": "a", "iat": .integer(Self.now),
                "exp": .integer(Self.now + 60),
            ]
            claims["amr"] = amr
            return try IdentityClaims(claims).authenticationMethods
        }
        #expect(try methods(.array(["otp", "pwd"])) == ["otp", "pwd"])
        #expect(try methods(.array(["otp", .integer(1)])) == ["otp"])
        #expect(
            try methods(nil) == nil && methods("otp") == nil && methods(.array(["a\u{7}"])) == nil)
        #expect(try methods(.array(Array(repeating: "x", count: 11))) == nil)
        #expect(try methods(.array([.string(String(repeating: "x", count: 33))])) == nil)
    }
}
