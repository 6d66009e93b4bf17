// An app moves to another team: the old team gets an error, no user signs up with it there, and the
// new team continues as before.

import Accounts
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct AppTransferTests {
    private func move(_ bench: DecisionFixture) throws {
        let change = Change(actor: "uid:0", now: bench.clock.now)
        _ = try bench.store.transfers.start(
            team: "juice", app: DecisionFixture.app, to: "other", change)
        _ = try bench.store.transfers.finish(app: DecisionFixture.app, change)
        // Apps are read again every few seconds.
        bench.clock.advance(AppDirectory.freshness)
    }

    @Test func decision_oldTeamAfterTransfer_isTransferred() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        #expect(try await bench.ask(.signIn, sub: sub).credentialState == "authorized")
        let token = try bench.token(sub, status: 2, nonce: "n1", isOwn: true)
        try move(bench)
        for event in [PolicyEvent.signUp, .signIn, .sensitiveAction] {
            let answer = try await bench.ask(event, sub: sub)
            #expect(answer.credentialState == "transferred")
            #expect(answer.event == (event == .signUp ? .signIn : event).rawValue)
            #expect(answer.decision == "require_verification")
            #expect(answer.reasons.contains("CONSENT_REVOKED"))
        }
        let upgrade = try await bench.ask(.upgrade, sub: sub)
        #expect(upgrade.upgradeResult == "failure")
        #expect(upgrade.credentialState == "transferred")
        // A token from before gives no access, but its nonce is consumed.
        let answer = try await bench.ask(.signUp, token: token, nonce: "n1")
        #expect(answer.event == "sign_in")
        #expect(answer.credentialState == "transferred")
        #expect(try await bench.ask(.signUp, token: token, nonce: "n1") == answer)
        await expectConflict {
            _ = try await bench.ask(.sensitiveAction, token: token, nonce: "n1")
        }
        #expect(try bench.logged(answer.id).credentialState == "transferred")
    }

    @Test func signUp_oldTeamAfterTransfer_isNotPossible() async throws {
        let bench = try await DecisionFixture()
        let before = try await bench.ask(
            DecisionRequest(event: .upgrade, clientID: DecisionFixture.app, appAccount: "acc-1"))
        try move(bench)
        let answer = try await bench.signUp("mallory", status: 2)
        #expect(answer.decision == "require_verification")
        #expect(answer.credentialState == "not_found")
        #expect(
            try await bench.ask(.signIn, sub: "mallory").credentialState == "not_found",
            "nothing was made for it")
        let upgrade = try await bench.ask(
            DecisionRequest(event: .upgrade, clientID: DecisionFixture.app, appAccount: "acc-2"))
        #expect(upgrade.upgradeResult == "failure")
        await expectConflict {
            _ = try await bench.service.complete(
                before.id, identityToken: bench.token("mallory", status: 2, nonce: "n2"),
                nonce: "n2", for: bench.juice)
        }
    }

    @Test func decision_newTeamAfterTransfer_keepsChecks() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        let asked = try await bench.ask(.sensitiveAction, sub: sub)
        try await bench.report(asked.id, .initiated, "reauthenticate")
        try await bench.report(asked.id, .passed, "reauthenticate")
        bench.clock.advance(3_600)
        try move(bench)
        let new = try #require(try bench.store.accounts.accounts(team: "other", user: "u1").first)
            .sub
        let answer = try await bench.ask(.signIn, sub: new, team: bench.other)
        #expect(answer.event == "sign_in")
        #expect(answer.credentialState == "authorized")
        #expect(answer.reasons == ["RECENTLY_VERIFIED"], "checks move with the grant")
        // Passed before the transfer, and not since: required again for sensitive actions.
        #expect(
            try await bench.ask(.sensitiveAction, sub: new, team: bench.other).reasons.contains(
                "RECENT_TRANSFER"))
        await expectInvalid("/client_id") {
            _ = try await bench.ask(.signIn, sub: new, app: DecisionFixture.foreignApp)
        }
    }
}
