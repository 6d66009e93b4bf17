// The facts that are determined before the policy decides, and the signals that it gets: only the
// pure part.

import Accounts
import CEL
import Decisions
import Foundation
import RiskPolicy
import Support
import TestSupport
import Testing

@Suite(.blocking) struct GrantViewTests {
    private static let now = DecisionFixture.start
    private static let token = TokenFacts(issuedAt: now - 30, realUserStatus: 2, isExternal: true)

    private func view(_ event: PolicyEvent, token: TokenFacts? = nil) -> GrantView {
        GrantView(claimed: event, history: nil, token: token, now: Self.now)
    }

    @Test func grantView_unknownSubjectWithToken_signsUp() {
        for event in PolicyEvent.allCases {
            let view = view(event, token: Self.token)
            #expect(view.event == .signUp)
            #expect(view.state == "new")
            #expect(view.credentialState == "authorized")
            #expect(view.realUserStatus == 2)
            #expect(view.mustSettle)
        }
    }

    @Test func grantView_unknownSubjectWithoutToken_keepsStricterEvent() {
        #expect(view(.signIn).event == .signUp)
        #expect(view(.signUp).event == .signUp)
        #expect(
            view(.sensitiveAction).event == .sensitiveAction, "the stricter ones stay what they are"
        )
        #expect(view(.upgrade).event == .upgrade)
        #expect(view(.signIn).credentialState == "not_found")
        #expect(view(.signIn).state == nil)
        #expect(!view(.signIn).mustSettle)
    }

    @Test func grantView_storeAway_usesRememberedStatus() {
        let view = GrantView(claimed: .signUp, token: Self.token, rememberedStatus: 1)
        #expect(view.realUserStatus == 1)
        #expect(view.credentialState == GrantView.unknownCredential)
    }

    @Test func signalSource_newAccount_hasEmptyHistory() throws {
        let policy = try #require(DecisionFixture.policy)
        let source = SignalSource(policy.policy)
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        let time = try #require(CELTimestamp(seconds: Self.now))
        let known = source.input(
            SignalSource.Facts(
                view: view(.signUp, token: Self.token), history: nil, token: Self.token, time: time),
            marks: DecisionMarks(keys: ring))
        #expect(
            known.signals
                == #"{"event":"sign_up","token.age_s":30,"account.real_user_status":2,"account.rejoins_30d":0,"account.age_hours":0,"#
                + #""account.state":"new","account.bounces_7d":0,"account.user_replies_30d":0,"account.forwarding_toggles_7d":0,"#
                + #""checks.failed_24h":0,"checks.passed_90d":0,"checks.observed_90d":0}"#)
        let unknown = source.input(
            SignalSource.Facts(view: view(.sensitiveAction), history: nil, token: nil, time: time),
            marks: DecisionMarks(keys: ring))
        #expect(unknown.signals == #"{"event":"sensitive_action"}"#)
        let away = source.input(
            SignalSource.Facts(
                view: GrantView(claimed: .signIn, token: Self.token, rememberedStatus: nil),
                history: nil, token: Self.token,
                isHistoryAvailable: false, time: time), marks: DecisionMarks(keys: ring))
        #expect(
            away.signals == #"{"event":"sign_in","token.age_s":30,"account.real_user_status":2}"#)
        #expect(away.input.isHistoryUnavailable)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (951_827_696, "2000-02-29T12:34:56Z"),
            (1_763_673_243, "2025-11-20T21:14:03Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] as [(Int64, String)]) func utcTime_ofSeconds_isISO8601Text(
            _ seconds: Int64, _ text: String
        )
    {
        #expect(UTCTime.text(seconds) == text)
    }

    @Test func utcTime_manySeconds_agreesWithFoundation() {
        var seconds: Int64 = -2_000_000_000
        while seconds < 20_000_000_000 {
            #expect(
                UTCTime.text(seconds)
                    == Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601))
            seconds += 97_777_777
        }
    }
}

@Suite(.blocking) struct ContextTests {
    /// The default policy with context of its operator's.
    private static func policy() throws -> LoadedPolicy {
        let stored = StoredPolicy.builtIn
        let document = try #require(PolicyDocument(octets: stored.document))
        let text = try #require(document.files["policy.yaml"])
            .replacing(
                "counters:\n",
                with: """
                      context.amount: {type: "int?", min: 0, max: 1000000}
                      context.ip_prefix: string?
                    counters:

                    """
            ).replacing(
                "rules:\n",
                with: """
                    rules:
                    - {id: large, effect: require, events: [sensitive_action], challenge: reauthenticate, reason: LARGE, condition: context.amount > 500}
                    - {id: odd, effect: require, events: [sensitive_action], challenge: email_code, reason: ODD, condition: 'context.ip_prefix == "192.0.2"'}

                    """)
        return LoadedPolicy(policy: try PolicyLoader.load(text), hash: "sha256:test")
    }

    @Test func context_declared_isReadAndLoggedAsHash() async throws {
        let bench = try await DecisionFixture(policy: try Self.policy())
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        func ask(_ context: [(String, CELValue)]) async throws -> Response {
            try await bench.ask(
                DecisionRequest(
                    event: .sensitiveAction, clientID: DecisionFixture.app, sub: sub,
                    context: context.map { (name: $0.0, value: $0.1) }))
        }
        let answer = try await ask([("amount", .int(900)), ("ip_prefix", .string("192.0.2"))])
        #expect(answer.reasons.contains("LARGE"))
        #expect(answer.reasons.contains("ODD"))
        let record = try bench.logged(answer.id)
        #expect(record.signals.contains(#""context.ip_prefix":"#))
        #expect(!record.signals.contains("192.0.2"))
        #expect(!record.signals.contains("900"))
        let same = try bench.logged(try await ask([("ip_prefix", .string("192.0.2"))]).id)
        let other = try bench.logged(try await ask([("ip_prefix", .string("192.0.3"))]).id)
        func mark(_ record: DecisionRecord) -> Substring? {
            record.signals.split(separator: "\"context.ip_prefix\":").last
        }
        #expect(
            mark(same)?.prefix(20)
                == record.signals.split(separator: "\"context.ip_prefix\":").last?.prefix(20),
            "equal values, equal hashes")
        #expect(mark(other)?.prefix(20) != mark(same)?.prefix(20))
        // Conditions on it cannot be evaluated again, and the replay says so.
        let replay = try Replay(record, policy: try Self.policy().policy)
        #expect(replay.isIdentical)
        #expect(!replay.isWhole)
        #expect(replay.takenAsLogged == ["large", "odd"])
    }

    /// The log has hashes of context: the result of a rule of that time is known, and the result of
    /// another rule is not.
    @Test func backtest_contextOfTheLog_isTakenFromTheSameConditionOrNotTold() async throws {
        func policy(_ rule: String) throws -> LoadedPolicy {
            let text = try #require(
                PolicyDocument(octets: StoredPolicy.builtIn.document)?.files["policy.yaml"]
            )
            .replacing("counters:\n", with: "  context.amount: int?\ncounters:\n")
            .replacing(
                "rules:\n",
                with:
                    "rules:\n- {effect: require, events: [sign_in], challenge: email_code, reason: LARGE, id: \(rule)\n"
            )
            return LoadedPolicy(policy: try PolicyLoader.load(text), hash: "sha256:test")
        }
        let old = try policy("watched, mode: shadow, condition: context.amount  >\n 500}").policy
        let bench = try await DecisionFixture(
            policy: LoadedPolicy(policy: old, hash: "sha256:test"))
        let sub = try bench.user("u1")
        _ = try bench.logged(try await bench.ask(.signIn, sub: sub).id)
        for amount in [900, 900, 100] as [Int64] {
            let request = DecisionRequest(
                event: .signIn, clientID: DecisionFixture.app, sub: sub,
                context: [(name: "amount", value: .int(amount))])
            let record = try bench.logged(try await bench.ask(request).id)
            #expect(
                record.decision == "allow" && record.shadow == (amount > 500 ? ["watched"] : []))
        }
        func backtest(_ candidate: LoadedPolicy) throws -> Backtest {
            var backtest = Backtest(candidate.policy, now: DecisionFixture.start)
            for decision in try bench.store.decisions.newest(DecisionFilter(), limit: 99) {
                let event = try #require(PolicyEvent(rawValue: decision.record.event))
                let past = PastPolicy(
                    old, at: event, signals: Set(old.signals.map(\.name)), for: candidate.policy)
                backtest.add(decision, past: past)
            }
            return backtest
        }
        let same = try backtest(policy("active, condition: context.amount > 500}"))
        #expect(same.untold == 0 && same.comparison.total.newlyAsked == 2)
        #expect(same.comparison.rules["active"]?.newlyAsks == 2)
        let other = try backtest(policy("active, condition: context.amount > 400}"))
        #expect(
            other.untold == 3 && other.untoldRules == ["active": 3]
                && other.comparison.total.newlyAsked == 0)
        #expect(other.text(leftOut: 0).contains("none among the decisions of which it can be told"))
        let unaffected = try backtest(
            policy("active, condition: context.amount > 400 && account.age_hours > 100000}"))
        #expect(
            unaffected.untold == 0 && unaffected.comparison.total.newlyAsked == 0,
            "false whatever the amount")
    }

    private static func question(_ sub: String, _ context: [(String, CELValue)]) -> DecisionRequest
    {
        DecisionRequest(
            event: .sensitiveAction, clientID: DecisionFixture.app, sub: sub,
            context: context.map { (name: $0.0, value: $0.1) })
    }

    private static func list(_ body: String, _ name: String) throws -> [String] {
        let object = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
        return object?[name] as? [String] ?? []
    }

    @Test func context_notDeclared_isLeftOutNamedAndReplayed() async throws {
        let policy = try Self.policy()
        let bench = try await DecisionFixture(policy: policy)
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        let plain = try await bench.ask(Self.question(sub, []))
        let answer = try await bench.ask(
            Self.question(
                sub, [("other", .int(1)), ("jane@home.example", .int(1)), ("amount", .int(7))]))
        #expect(answer.decision == plain.decision)
        #expect(answer.reasons == plain.reasons)
        #expect(try Self.list(answer.body, "ignored_context") == ["other", "(other)"])
        #expect(!answer.names.contains("invalid_context"))
        #expect(!plain.names.contains("ignored_context"))
        let record = try bench.logged(answer.id)
        #expect(record.contextTroubles.ignored == ["other", "(other)"])
        #expect(!record.signals.contains("home.example"))
        #expect(try await bench.service.decision(answer.id, for: bench.juice) == answer.body)
        #expect(try Replay(record, policy: policy.policy).isIdentical)
    }

    @Test(
        arguments: [
            ("amount", CELValue.string("900")), ("amount", .int(-1)), ("amount", .int(1_000_001)),
            ("amount", .bool(true)),
            ("amount", .double(1.5)), ("amount", .list([.int(1)])), ("amount", .map(CELMap())),
            ("ip_prefix", .int(1)),
            ("ip_prefix", .string(String(repeating: "1", count: 100_000))),
        ]) func context_thatCannotBeUsed_asksByEveryRuleThatReadsIt(
            _ name: String, _ value: CELValue
        ) async throws
    {
        let policy = try Self.policy()
        let bench = try await DecisionFixture(policy: policy)
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        let answer = try await bench.ask(Self.question(sub, [(name, value)]))
        #expect(answer.decision == "require_verification")
        #expect(answer.reasons.contains("POLICY_ERROR"))
        if name == "amount" {
            #expect(answer.challenges == ["reauthenticate"], "no weaker than its rule asks for")
        }
        #expect(try Self.list(answer.body, "invalid_context") == [name])
        let record = try bench.logged(answer.id)
        #expect(record.errors == [name == "amount" ? "large" : "odd"])
        #expect(record.errorTexts.count == 1)
        #expect(record.errorTexts.first?.contains("context.\(name)") == true)
        #expect(try await bench.service.decision(answer.id, for: bench.juice) == answer.body)
        #expect(try Replay(record, policy: policy.policy).isIdentical)
    }

    @Test func context_null_isMissing() async throws {
        let bench = try await DecisionFixture(policy: try Self.policy())
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        let answer = try await bench.ask(Self.question(sub, [("amount", .null)]))
        #expect(!answer.names.contains("invalid_context"))
        #expect(try bench.logged(answer.id).errors.isEmpty)
    }

    @Test func context_strictly_isRefused() throws {
        let source = SignalSource(try Self.policy().policy)
        func refusal(_ name: String, _ value: CELValue) -> DecisionError? {
            do throws(DecisionError) {
                try source.checkStrictly(source.context([(name, value)]))
                return nil
            } catch { return error }
        }
        #expect(
            refusal("other", .int(1))
                == .invalid("/context/other", "the policy declares no such context"))
        guard case .invalid("/context/amount", let text)? = refusal("amount", .string("900")) else {
            Issue.record("was taken")
            return
        }
        #expect(text == "'context.amount' (int) has another type than the policy declares")
        #expect(refusal("amount", .int(9)) == nil)
    }

    @Test func context_ofTheLastDay_isHeldAgainstThePolicyThatWouldDecide() async throws {
        let policy = try Self.policy()
        let bench = try await DecisionFixture(policy: policy)
        let sub = try bench.user("u1")
        let change = Change(actor: "uid:0", now: bench.clock.now)
        _ = try bench.store.policies.activate(.builtIn, reach: .everyone, change)
        _ = try await bench.ask(.signIn, sub: sub)
        for _ in 0..<3 { _ = try await bench.ask(Self.question(sub, [("amount", .int(9))])) }
        _ = try await bench.ask(Self.question(sub, [("amount", .int(-9))]))
        try bench.log.flush()
        let builtIn = try LoadedPolicy(.builtIn)
        let advice = try ContextAdvice(bench.store, now: bench.clock.now)
        #expect(
            advice.sentences(for: builtIn.policy, label: "old 1", replacing: builtIn.name) == [
                "com.juice.app sends context.amount, which old 1 does not declare: it is left out (4 questions of the last day)"
            ])
        #expect(
            advice.sentences(for: policy.policy, label: "new 2", replacing: builtIn.name).isEmpty)
        #expect(advice.sentences(for: builtIn.policy, label: "old 1", replacing: "another").isEmpty)
        #expect(try advice.troubles().count == 1, "the policy in force is the built-in one")
        let later = try ContextAdvice(bench.store, now: bench.clock.now + 90_000)
        #expect(try later.troubles().isEmpty)
    }

    @Test func context_manyInventedNames_areCountedAndNotListed() async throws {
        let bench = try await DecisionFixture(policy: try Self.policy())
        let sub = try bench.user("u1")
        _ = try bench.store.policies.activate(
            .builtIn, reach: .everyone, Change(actor: "uid:0", now: bench.clock.now))
        for number in 0..<20 {
            _ = try await bench.ask(Self.question(sub, [("invented\(number)", .int(9))]))
        }
        try bench.log.flush()
        let advice = try ContextAdvice(bench.store, now: bench.clock.now).troubles()
        #expect(
            advice.count == 6
                && advice.last?.sentence.hasPrefix("com.juice.app sends 15 more names that ")
                    == true,
            "\(advice)")
    }
}

@Suite(.blocking) struct ReplayTests {
    @Test func replay_everyDecision_givesSameAnswer() async throws {
        let bench = try await DecisionFixture()
        let policy = try #require(DecisionFixture.policy).policy
        let sub = try bench.user("u1")
        var ids: [String] = []
        for status in [nil, 0, 1, 2, 9] as [Int64?] {
            ids.append(try await bench.signUp("s\(status ?? -1)", status: status).id)
        }
        for event in PolicyEvent.allCases { ids.append(try await bench.ask(event, sub: sub).id) }
        ids.append(
            try await bench.ask(
                DecisionRequest(event: .upgrade, clientID: DecisionFixture.app, appAccount: "a")
            ).id)
        ids.append(try await bench.ask(.upgrade, sub: "nobody").id)
        bench.clock.advance(200 * 86_400)
        for event in PolicyEvent.allCases { ids.append(try await bench.ask(event, sub: sub).id) }
        try bench.storeIsAway(true)
        for event in PolicyEvent.allCases { ids.append(try await bench.ask(event, sub: sub).id) }
        try bench.storeIsAway(false)
        for id in ids {
            let record = try bench.logged(id)
            let replay = try Replay(record, policy: policy)
            #expect(replay.isIdentical, "\(record.event) \(record.signals): \(replay.differences)")
            #expect(replay.isWhole)
        }
    }

    @Test func replay_signalChanged_namesDifference() async throws {
        let bench = try await DecisionFixture()
        let policy = try #require(DecisionFixture.policy).policy
        var record = try bench.logged(try await bench.signUp("jane", status: 1).id)
        record.signals = record.signals.replacing(
            #""account.real_user_status":1"#, with: #""account.real_user_status":2"#)
        let replay = try Replay(record, policy: policy)
        #expect(replay.differences.map(\.name).contains("decision"))
        #expect(replay.differences.first { $0.name == "decision" }?.replayed == ["allow"])
        record.signals = "{"
        #expect(throws: ReplayError.self) { try Replay(record, policy: policy) }
    }
}
