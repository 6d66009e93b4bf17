// postern review, as it is typed.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ReviewCommandTests {
    private static let policy = """
        policy: risk-default
        version: "mine"
        challenges: [{kind: email_code}]
        defaults: {challenge: email_code}
        signals: {event: string, token.age_s: int?}
        rules:
        - {id: every-upgrade, effect: require, events: [upgrade], challenge: email_code, reason: UPGRADE, review: true, when_missing: match,
           condition: token.age_s >= 0}
        """

    /// With a decision that a rule put on the review list; the account's `sub`, and the decision's
    /// id.
    private func world() throws -> (CommandRunner, sub: String, decision: String) {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.juice.app")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        let folder = runner.folder.appendingPathComponent("mine")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(Self.policy.utf8).write(to: folder.appendingPathComponent("policy.yaml"))
        try runner.succeed("policy", "activate", folder.path)
        let address = try runner.succeed(
            "address", "issue", "juice", "jane", "--app", "com.juice.app")
        let shown = try #require(try runner.json("address", "show", address) as? [String: Any])
        let sub = try #require((shown["address"] as? [String: Any])?["sub"] as? String)
        return (runner, sub, try decide(runner, sub).id)
    }

    private func decide(
        _ runner: CommandRunner, _ sub: String
    ) throws -> (id: String, answer: String) {
        // The first request about an account is its sign-up, unless it is for a more sensitive
        // event.
        let answer = try #require(
            try runner.json(
                "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub)
                as? [String: Any])
        _ = answer
        let second = try #require(
            try runner.json(
                "decide", "juice", "--app", "com.juice.app", "--event", "upgrade", "--sub", sub)
                as? [String: Any])
        return (
            try #require(second["decision_id"] as? String),
            try #require(second["decision"] as? String)
        )
    }

    @Test func review_decisionOfRule_isListedSnoozedAndLabelled() throws {
        let (runner, sub, decision) = try world()
        let list = try #require(
            try runner.json("review", "list", "--cause", "rule") as? [[String: Any]])
        #expect(
            list.map { $0["decision_id"] as? String } == [decision]
                && list[0]["causes"] as? [String] == ["rule"])
        #expect(
            (try runner.json("review", "list", "--cause", "incomplete") as? [Any])?.isEmpty == true,
            "an hour has not passed")
        try runner.succeed("review", "note", decision, "asked the team: a known person")
        let until = try runner.succeed(
            "review", "snooze", decision, "--until", "30d", "--reason", "known to the team")
        #expect(
            until.hasPrefix("Rule every-upgrade of risk-default does not ask this account until "))
        let (second, answer) = try decide(runner, sub)
        #expect(answer == "allow")
        #expect(try runner.succeed("decision", "show", second).contains("snoozed\tevery-upgrade"))
        #expect(try runner.succeed("decision", "replay", second).hasPrefix("identical under "))
        let story = try runner.succeed("review", "show", decision)
        #expect(
            story.contains("asked the team: a known person") && story.contains("known to the team"))
        #expect(story.contains("Rules that do not ask it:\n  every-upgrade of risk-default until "))
        #expect(!story.contains("home.example") && !story.contains("jane") && !story.contains(sub))
        let members = try #require(try runner.json("review", "show", decision) as? [String: Any])
        #expect(
            (members["snoozes"] as? [Any])?.count == 1 && (members["notes"] as? [Any])?.count == 1)
        try runner.succeed("review", "snooze", decision, "--end")
        #expect(try decide(runner, sub).answer == "require_verification")
        try runner.succeed("review", "label", decision, "legitimate")
        let left = try #require(try runner.json("review", "list") as? [[String: Any]])
        #expect(!left.contains { $0["decision_id"] as? String == decision })
        #expect((try runner.json("review", "list", "--all") as? [Any])?.count == left.count + 1)
    }

    @Test func review_invalidArguments_isRefused() throws {
        let (runner, _, decision) = try world()
        try runner.fail("review", "show", "rd_x", status: 66, saying: "no decision has the id rd_x")
        try runner.fail(
            "review", "note", decision, "mail jane@home.example", status: 65,
            saying: "a note must not contain an address")
        try runner.fail(
            "review", "snooze", decision, "--until", "30d", status: 64, saying: "Give a --reason")
        try runner.fail(
            "review", "snooze", decision, "--reason", "a", status: 64,
            saying: "Give --until or --end")
        try runner.fail(
            "review", "snooze", decision, "--until", "never", "--reason", "a", status: 64,
            saying: "change the policy instead")
        try runner.fail(
            "review", "snooze", decision, "--rule", "no-rule", "--until", "1d", "--reason", "a",
            status: 65,
            saying: "rule no-rule did not require a check: every-upgrade")
        try runner.fail("review", "list", "--cause", "rumour", status: 64, saying: "rumour")
    }
}
