// A change of a policy beside the status policy, which decides about the same people first.

import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct StatusInfluenceTests {
    private func policy(_ folder: String, _ edits: (old: String, new: String)...) throws -> Policy {
        var text = try String(
            contentsOf: Folders.package.appending(path: "policy/rules/\(folder)/policy.yaml"),
            encoding: .utf8)
        for edit in edits {
            try #require(text.contains(edit.old))
            text = text.replacing(edit.old, with: edit.new)
        }
        return try PolicyLoader.load(text)
    }

    private func influence(_ old: String, _ new: String) throws -> StatusInfluence {
        StatusInfluence(
            from: try policy("default"), to: try policy("default", (old, new)),
            status: try policy("status"))
    }

    @Test func change_ofSignalThatTheStatusReads_namesItsRules() throws {
        let found = try influence(
            "condition: inbox.signups_24h >= 3}", "condition: inbox.signups_24h >= 5}")
        #expect(found.changedRules == ["inbox-velocity"] && found.readers.isEmpty)
        #expect(
            found.shared.map(\.rule) == ["inbox-velocity"]
                && found.shared.first?.statusRules == ["sign-up-burst"])
        #expect(
            found.sentences == [
                "The changed rule inbox-velocity reads what status 2026.2 reads too:",
                "  sign-up-burst: The status is \"unknown\" when there were five or more sign-ups with the inbox within a day.",
            ])
    }

    @Test func change_ofRuleThatReadsTheStatus_isNamed() throws {
        let found = try influence(
            "account.age_hours < 72 &&", "account.age_hours < 48 &&")
        #expect(found.readers == ["young-unproven"] && found.shared.isEmpty)
        #expect(
            found.sentences == [
                "The changed rule young-unproven reads the user's status, which status 2026.2 gives."
            ])
    }

    @Test func change_thatTheStatusHasNoPartIn_hasNoSentences() throws {
        #expect(
            try influence("account.hours_since_seen >= 4320}", "account.hours_since_seen >= 240}")
                .isEmpty)
        // A change of text alone is not a change of a rule.
        #expect(try influence("policy: risk-default", "policy: other").changedRules.isEmpty)
    }

    /// Without a rule that reads the status, no status changes an answer.
    @Test func change_ofPolicyThatDoesNotReadTheStatus_hasNoSentences() throws {
        func small(_ count: Int) throws -> Policy {
            try PolicyLoader.load(
                """
                policy: p
                version: "1"
                challenges: [{kind: email_code}]
                defaults: {challenge: email_code}
                signals: {event: string, inbox.signups_24h: int?}
                rules: [{id: r, effect: require, events: [sign_up], challenge: email_code, reason: R, condition: inbox.signups_24h >= \(count)}]
                """)
        }
        #expect(
            StatusInfluence(from: try small(3), to: try small(5), status: try policy("status"))
                .isEmpty)
    }
}
