// A candidate on the log: its changes, the facts about the people concerned, and the decisions with
// an unknown answer.

import Decisions
import Foundation
import PostfixHarness
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct BacktestTests {
    private static let day: Int64 = 86_400
    private static let now = PolicyTestStore.now

    /// A store with the built-in policy in force and a month of decisions by it.
    private func month(_ count: Int = 4_000) throws -> (test: PolicyTestStore, policy: LoadedPolicy)
    {
        let test = try PolicyTestStore()
        _ = try ActivePolicies.installBuiltIn(test.policies, PolicyTestStore.change)
        let policy = try LoadedPolicy(.builtIn)
        var traffic = LoggedTraffic(
            policy, client: "com.example.juice",
            period: (Self.now - 30 * Self.day, Self.now - 7_200), count: count)
        try traffic.write(to: test.store)
        return (test, policy)
    }

    private func candidate(_ edits: (old: String, new: String)...) throws -> Policy {
        var text = try #require(
            PolicyDocument(octets: StoredPolicy.builtIn.document)?.files["policy.yaml"])
        for edit in edits {
            try #require(text.contains(edit.old))
            text = text.replacingOccurrences(of: edit.old, with: edit.new)
        }
        return try PolicyLoader.load(text)
    }

    private func run(
        _ candidate: Policy, _ test: PolicyTestStore, team: String? = nil
    ) throws -> BacktestRun {
        let filter = DecisionFilter(since: Self.now - 40 * Self.day, team: team)
        var run = try BacktestRun(
            candidate, listings: test.store.listings, filter: filter, sliceSeconds: Self.day,
            now: Self.now)
        try run.run()
        return run
    }

    @Test func backtest_policyInForce_changesNothing() throws {
        let (test, policy) = try month()
        let run = try run(policy.policy, test)
        let total = run.backtest.comparison.total
        #expect(total.questions == 4_000 && run.read == 4_000 && run.leftOut == 0)
        #expect(!total.differs)
        #expect(total.askedBefore == total.askedAfter && total.askedBefore > 300)
        #expect(run.backtest.flippingRules.isEmpty)
        #expect(
            run.backtest.lackingRows == 0 && run.backtest.unreadable == 0
                && run.backtest.brokenGuaranteeCount == 0)
        #expect(run.backtest.slices.count >= 30)
        #expect(run.backtest.slices.values.reduce(0) { $0 + $1.questions } == 4_000)
    }

    @Test func backtest_looserRule_countsFlipsAndOutcomes() throws {
        let (test, _) = try month()
        let run = try run(
            try candidate(
                ("condition: inbox.signups_24h >= 3}", "condition: inbox.signups_24h >= 5}")), test)
        let backtest = run.backtest
        let total = backtest.comparison.total
        #expect(total.noLongerAsked > 0 && total.newlyAsked == 0)
        #expect(backtest.flippingRules.map(\.id) == ["inbox-velocity"])
        // Counted by hand: people for whom only this rule required a check, at 3 or 4 sign-ups.
        let decisions = try test.store.decisions.newest(DecisionFilter(), limit: 10_000)
        let flipped = decisions.filter { decision in
            decision.record.asked == ["inbox-velocity"]
                && (decision.record.signals.contains("\"inbox.signups_24h\":3,")
                    || decision.record.signals.contains("\"inbox.signups_24h\":4,"))
        }
        #expect(total.noLongerAsked == flipped.count)
        // Of the people that the rule would no longer check, those called unknown still need a
        // check.
        let concerned = decisions.map(\.record).filter { record in
            (record.asked + record.waived).contains("inbox-velocity")
                && [3, 4].contains { record.signals.contains("\"inbox.signups_24h\":\($0),") }
        }
        let unknown = concerned.count { $0.signals.contains("\"account.real_user_status\":1,") }
        #expect(backtest.statuses.total.concerned == concerned.count && unknown > 0)
        let ofUnknown = try #require(backtest.statuses.counts[PolicyStatus.unknown])
        #expect(ofUnknown.concerned == unknown && ofUnknown.unchanged == unknown)
        let report = backtest.text(leftOut: 0)
        #expect(
            report.contains("\"unknown\": \(unknown), of which \(unknown) are answered the same"),
            "\(report)")
        #expect(
            report.contains(
                "inbox-velocity: Asks for email_code at sign-ups when there were five or more"),
            "\(report)")
        let page = BacktestPage(backtest, label: "x", leftOut: 0, madeAt: Self.now).html
        #expect(
            page.contains("answered the same") && page.contains("there were five or more sign-ups"))
        let tally = StatusTally(
            try LoadedPolicy(.builtIn).policy, backtest.candidate, on: decisions)
        #expect(
            tally.counts == backtest.statuses.counts && tally.holders["unknown-new-user"] == unknown
        )
        let gone = backtest.flips.noLongerAsked
        #expect(gone.asked == flipped.count)
        #expect(gone.passed == flipped.count { $0.checks.contains { $0.passedAt != nil } })
        #expect(gone.fraudulent == flipped.count { $0.label == .fraudulent })
        #expect(gone.passed + gone.failed + gone.abandoned + gone.open == gone.asked)
        #expect(try #require(backtest.stepUpAfter) < #require(backtest.stepUpBefore))
        #expect(run.backtest.cautions.contains { $0.hasPrefix("Selection bias") })
    }

    @Test func backtest_stricterRule_countsNewlyAsked() throws {
        let (test, _) = try month()
        let stricter = try candidate(
            (
                "condition: account.hours_since_seen >= 4320}",
                "condition: account.hours_since_seen >= 200}"
            ))
        let backtest = try run(stricter, test).backtest
        #expect(
            backtest.comparison.total.newlyAsked > 50
                && backtest.comparison.total.noLongerAsked == 0)
        #expect(backtest.comparison.events[.signUp]?.differs == false)
        #expect(backtest.flips.newlyAsked.asked == 0, "those who were allowed have no check")
        #expect(backtest.flippingRules.map(\.id) == ["dormant-return"])
    }

    @Test func backtest_newSignalMissingInLog_isCountedAndNamed() throws {
        let (test, _) = try month(500)
        let new = try candidate(
            (
                "  app.signups_1h_baseline: double?",
                "  app.signups_1h_baseline: double?\n  context.amount: int?"
            ),
            (
                "condition: account.hours_since_seen >= 4320}",
                "condition: account.hours_since_seen >= 4320 || context.amount > 5}"
            )
        )
        let backtest = try run(new, test).backtest
        // The rule is not read at other events than its own.
        let signIns = try test.store.decisions.newest(DecisionFilter(), limit: 10_000).count {
            $0.record.event == "sign_in"
        }
        #expect((1..<500).contains(signIns))
        // After a long absence a check is required for every amount. For the others the answer is
        // unknown.
        let told = backtest.comparison.events[.signIn]?.questions ?? 0
        #expect(backtest.untold + told == signIns && backtest.untold > 0)
        #expect(backtest.untoldRules == ["dormant-return": backtest.untold])
        #expect(
            backtest.comparison.total.noLongerAsked == 0
                && backtest.comparison.total.newlyAsked == 0)
        #expect(backtest.lackingRows == signIns && backtest.lacking == ["context.amount": signIns])
        #expect(backtest.cautions[0].contains("context.amount in \(backtest.untold)"))
        #expect(
            backtest.cautions[0].hasPrefix(
                "For \(backtest.untold) of 500 decisions it cannot be told"))
        // Declared, but not read: nothing is missing.
        let unread = try candidate(
            (
                "  app.signups_1h_baseline: double?",
                "  app.signups_1h_baseline: double?\n  context.amount: int?"
            ))
        #expect(try run(unread, test).backtest.lackingRows == 0)
    }

    @Test func backtest_guaranteeBroken_isNamed() throws {
        let (test, _) = try month(1_000)
        var options = PolicyLoadOptions()
        options.generatedInputs = 0
        let text = try #require(
            PolicyDocument(octets: StoredPolicy.builtIn.document)?.files["policy.yaml"]
        )
        .replacingOccurrences(
            of: "- {id: unknown-new-user,", with: "- {id: unknown-new-user, mode: disabled,")
        let backtest = try run(try PolicyLoader.load(text, options: options), test).backtest
        #expect(backtest.brokenGuaranteeCount > 0)
        #expect(backtest.brokenGuarantees.first?.decision.hasPrefix("rd_traffic") == true)
        #expect(backtest.cautions[0].contains("break its own guarantees"))
    }

    @Test func backtest_teamsWithOwnPolicy_areLeftOut() throws {
        let (test, policy) = try month(300)
        _ = try test.store.teams.add(id: "other", name: "Other", PolicyTestStore.change)
        let other = try test.store.teams.team("other").number
        var traffic = LoggedTraffic(
            policy, team: other, client: "com.other",
            period: (Self.now - 9 * Self.day, Self.now - 7_200), count: 200, seed: 2)
        try traffic.write(to: test.store)
        #expect(try run(policy.policy, test).backtest.comparison.total.questions == 500)
        try test.activate("own", "1", reach: .bound)
        try test.policies.bind(.team("other"), to: "own", PolicyTestStore.change)
        let rest = try run(policy.policy, test)
        #expect(rest.leftOut == 200 && rest.backtest.comparison.total.questions == 300)
        let own = try LoadedPolicy(try test.policies.policy(hash: try test.policies.resolve("own")))
        #expect(try run(own.policy, test).backtest.comparison.total.questions == 200)
        #expect(
            try run(policy.policy, test, team: "other").backtest.comparison.total.questions == 200)
    }

    @Test func policyStatistics_ofLog_giveRatesByRule() throws {
        let (test, _) = try month(3_000)
        var statistics = PolicyStatistics(now: Self.now)
        let decisions = try test.store.decisions.newest(DecisionFilter(), limit: 10_000)
        for decision in decisions { statistics.add(decision) }
        let total = statistics.total
        #expect(total.questions == 3_000)
        #expect(
            total.outcomes.asked == decisions.count { $0.record.decision == "require_verification" }
        )
        let outcomes = total.outcomes
        #expect(
            outcomes.passed + outcomes.failed + outcomes.abandoned + outcomes.open == outcomes.asked
        )
        #expect(try #require(outcomes.passRate) > 0.5)
        let rule = try #require(statistics.rules["unknown-new-user"])
        #expect(rule.matched == decisions.count { $0.record.asked.contains("unknown-new-user") })
        #expect(rule.outcomes.asked == rule.matched)
        #expect(
            statistics.rules["young-unproven"]?.waived
                == decisions.count { $0.record.waived.contains("young-unproven") })
    }

    @Test func outcome_withoutReport_isOpenThenAbandoned() {
        func counts(_ checks: [CheckRecord], after seconds: Int64) -> OutcomeCounts {
            let record = DecisionRecord(
                id: "rd_x", teamNumber: 1, clientID: "a", claimedEvent: "sign_in", event: "sign_in",
                decision: "require_verification",
                challenges: ["email_code"], policyName: "p", policyVersion: "1", policyHash: "h",
                credentialState: "authorized",
                evaluatedAt: 1_000, expiresAt: 1_300)
            var counts = OutcomeCounts()
            counts.add(
                LoggedDecision(
                    number: 1, record: record, teamID: "t", label: nil, labelledAt: nil,
                    checks: checks),
                now: 1_000 + seconds)
            return counts
        }
        let begun = CheckRecord(
            challenge: "email_code", initiatedAt: 1_500, passedAt: nil, failedAt: nil)
        #expect(counts([], after: 3_599).open == 1)
        #expect(counts([], after: 3_600).abandoned == 1)
        #expect(counts([begun], after: 3_700).open == 1)
        #expect(counts([begun], after: 4_100).abandoned == 1)
        let passed = CheckRecord(
            challenge: "reauthenticate", initiatedAt: 1_600, passedAt: 1_700, failedAt: nil)
        let failed = CheckRecord(
            challenge: "email_code", initiatedAt: 1_500, passedAt: nil, failedAt: 1_550)
        let reported = counts([failed, passed], after: 10)
        #expect(reported.passed == 1 && reported.observed == 0)
        let seen = CheckRecord(
            challenge: "email_code", method: .mailedCode, initiatedAt: 1_600, passedAt: 1_700,
            failedAt: nil)
        let both = counts([failed, passed, seen], after: 10)
        #expect(both.passed == 1 && both.observed == 1 && both.observedRate == 1)
        #expect(counts([failed], after: 10).failed == 1)
    }

    @Test func backtestPage_labelAndPlots_areEscapedAndSelfContained() throws {
        let (test, _) = try month(3_000)
        let run = try run(
            try candidate(("inbox.signups_24h >= 3}", "inbox.signups_24h >= 5}")), test)
        let page = BacktestPage(run.backtest, label: "a <b> & \"c\"", leftOut: 3, madeAt: Self.now)
            .html
        #expect(page.contains("a &lt;b&gt; &amp; &quot;c&quot;") && !page.contains("a <b>"))
        for outside in ["http", "src=", "<script", "url(", "@import", "<link"] {
            #expect(!page.contains(outside), "\(outside)")
        }
        #expect(page.contains("prefers-color-scheme: dark"))
        #expect(page.components(separatedBy: "<svg ").count == 6)
        #expect(!page.contains("NaN") && !page.contains("nan\"") && !page.contains("inf\""))
        // Well formed for a strict reader: every plot on its own.
        for plot in page.components(separatedBy: "<svg ").dropFirst() {
            let text = "<svg " + (plot.components(separatedBy: "</svg>").first ?? "") + "</svg>"
            #expect(Self.tags(text), "\(text.prefix(200))")
        }
    }

    /// On a phone the plots must be readable, and the table must stay within the window.
    @Test(
        .enabled(
            if: Browser.driver != nil && Axe.script != nil,
            "skipped: no Chromium or no axe-core (make test-tools)"))
    func backtestPage_onPhoneAndDesktop_isReadable() throws {
        let (test, _) = try month(3_000)
        let run = try run(
            try candidate(("inbox.signups_24h >= 3}", "inbox.signups_24h >= 5}")), test)
        let html = BacktestPage(run.backtest, label: "mine", leftOut: 3, madeAt: Self.now).html
        let browser = try Browser()
        defer { browser.quit() }
        try browser.open("data:text/html;base64,\(Data(html.utf8).base64EncodedString())")
        #expect(try PageLook(browser).findings("policy-backtest", "en") == [])
        _ = try browser.screenshot(width: 390, dark: false)
        let least =
            try browser.value(
                """
                return Math.min(...[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height))
                """) as? Double
        #expect(try #require(least) >= 10, "pixels of the smallest letters' line")
        let focused = try browser.value(
            "const e = document.querySelector('.scroll'); e.focus(); return document.activeElement === e && e.scrollWidth > e.clientWidth"
        )
        #expect(focused as? Bool == true)
    }

    /// Whether every tag is closed in its order.
    private static func tags(_ text: String) -> Bool {
        var open: [Substring] = []
        for part in text.split(separator: "<", omittingEmptySubsequences: true) {
            guard let end = part.firstIndex(of: ">") else { return false }
            let tag = part[..<end]
            if tag.hasSuffix("/") { continue }
            if tag.hasPrefix("/") {
                guard open.popLast() == tag.dropFirst() else { return false }
            } else {
                open.append(tag.split(separator: " ").first ?? "")
            }
        }
        return open.isEmpty
    }

    @Test func backtest_emptyLog_saysNoDecisions() throws {
        let test = try PolicyTestStore()
        _ = try ActivePolicies.installBuiltIn(test.policies, PolicyTestStore.change)
        let run = try run(try LoadedPolicy(.builtIn).policy, test)
        #expect(run.backtest.text(leftOut: 0) == "No decisions to test against.")
        #expect(
            BacktestPage(run.backtest, label: "x", leftOut: 0, madeAt: 0).html.contains(
                "No decisions to test against."))
    }
}
