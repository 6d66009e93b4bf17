// An app's own account becomes one of Postern: requested, checked, bound once.

import Accounts
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct UpgradeTests {
    private func upgrade(
        _ bench: DecisionFixture, _ account: String = "acc-1"
    ) async throws -> Response {
        try await bench.ask(
            DecisionRequest(event: .upgrade, clientID: DecisionFixture.app, appAccount: account))
    }

    private func complete(
        _ bench: DecisionFixture, _ id: String, _ subject: String, nonce: String = UUID().uuidString
    ) async throws -> String {
        try await bench.service.complete(
            id, identityToken: bench.token(subject, status: 1, nonce: nonce), nonce: nonce,
            for: bench.juice)
    }

    private func pass(_ bench: DecisionFixture, _ answer: Response) async throws {
        try await bench.report(answer.id, .initiated, answer.challenges[0])
        try await bench.report(answer.id, .passed, answer.challenges[0])
    }

    @Test func upgrade_checkPassed_bindsAccountOnce() async throws {
        let bench = try await DecisionFixture()
        let answer = try await upgrade(bench)
        #expect(answer.event == "upgrade")
        #expect(answer.upgradeResult == "two_factor_required")
        #expect(answer.credentialState == nil, "there is no account yet")
        await expectConflict { _ = try await complete(bench, answer.id, "jane") }
        try await pass(bench, answer)
        let nonce = "n-complete"
        let body = try await complete(bench, answer.id, "jane", nonce: nonce)
        #expect(body.contains(#""upgrade_result":"success""#))
        #expect(body.contains(#""sub":"jane""#))
        let token = try bench.token("jane", status: 1, nonce: nonce)
        #expect(
            try await bench.service.complete(
                answer.id, identityToken: token, nonce: nonce, for: bench.juice) == body)
        #expect(
            try await !complete(bench, answer.id, "jane").isEmpty,
            "again, with another token of the same subject")
        await expectConflict { _ = try await complete(bench, answer.id, "mallory") }
        // The proof for the upgrade counts for the account.
        #expect(try await bench.ask(.signIn, sub: "jane").reasons == ["RECENTLY_VERIFIED"])
        // A bound account is not bound again.
        let again = try await upgrade(bench)
        #expect(again.upgradeResult == "failure")
        #expect(again.decision == "require_verification")
        #expect(!again.challenges.isEmpty)
        #expect(again.reasons.contains("UPGRADE_NOT_POSSIBLE"))
        await expectConflict { _ = try await complete(bench, again.id, "jane") }
        #expect(try await upgrade(bench, "acc-2").upgradeResult == "two_factor_required")
    }

    @Test func upgrade_checkPassedADayAgo_isNotCompleted() async throws {
        let bench = try await DecisionFixture()
        let answer = try await upgrade(bench)
        try await pass(bench, answer)
        bench.clock.advance(86_401)
        await expectConflict { _ = try await complete(bench, answer.id, "jane") }
        // The same check of today does.
        let other = try await DecisionFixture()
        let today = try await upgrade(other)
        try await pass(other, today)
        other.clock.advance(86_000)
        #expect(
            try await complete(other, today.id, "jane").contains(#""upgrade_result":"success""#))
    }

    @Test func upgrade_decisionOfOtherKind_isNotCompleted() async throws {
        let bench = try await DecisionFixture()
        let signUp = try await bench.signUp("jane", status: 2)
        await expectConflict { _ = try await complete(bench, signUp.id, "jane") }
        await #expect(throws: DecisionError.notFound) {
            _ = try await complete(bench, "rd_unknown", "jane")
        }
        let answer = try await upgrade(bench)
        await #expect(throws: DecisionError.notFound) {
            _ = try await bench.service.complete(
                answer.id, identityToken: "x", nonce: nil, for: bench.other)
        }
        await expectInvalid("/app_account") {
            _ = try await bench.ask(
                DecisionRequest(event: .signIn, clientID: DecisionFixture.app, appAccount: "a"))
        }
        await expectInvalid("/app_account") {
            _ = try await bench.ask(
                DecisionRequest(
                    event: .upgrade, clientID: DecisionFixture.app, sub: "jane", appAccount: "a"))
        }
    }

    @Test func upgrade_accountRevoked_fails() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        #expect(try await bench.ask(.upgrade, sub: sub).upgradeResult != "failure")
        let account = try #require(try bench.store.addresses.addresses(user: "u1").first).account
            .number
        let group = try #require(try bench.store.grants.grants(account: account).first).group
        try bench.store.grants.revoke(
            account: account, group: group, Change(actor: "test", now: bench.clock.now))
        let answer = try await bench.ask(.upgrade, sub: sub)
        #expect(answer.upgradeResult == "failure")
        #expect(answer.decision == "require_verification")
        #expect(try await bench.ask(.upgrade, sub: "nobody").upgradeResult == "failure")
    }

    @Test func upgrade_nonceUsedBefore_isNotCompleted() async throws {
        let bench = try await DecisionFixture()
        let answer = try await upgrade(bench)
        try await pass(bench, answer)
        let token = try bench.token("jane", status: 2, nonce: "n1")
        _ = try await bench.ask(.signUp, token: token, nonce: "n1")
        await expectConflict {
            _ = try await bench.service.complete(
                answer.id, identityToken: token, nonce: "n1", for: bench.juice)
        }
        #expect(
            try await complete(bench, answer.id, "jane", nonce: "n2").contains(
                #""upgrade_result":"success""#))
    }
}
