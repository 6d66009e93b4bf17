// Attacks, with their results.

import Accounts
import Decisions
import Foundation
import RiskPolicy
import Support
import TestSupport
import Testing

@Suite(.blocking) struct DecisionServiceTests {
    @Test func realUserStatus_laterTokenIsBetter_keepsFirst() async throws {
        let bench = try await DecisionFixture()
        let first = try await bench.signUp("mallory", status: 1)
        #expect(first.decision == "require_verification")
        #expect(first.reasons == ["REAL_USER_UNKNOWN"])
        let second = try await bench.signUp("mallory", status: 2)
        #expect(second.event == "sign_in", "it was seen before")
        #expect(second.decision == "require_verification")
        #expect(second.reasons == ["SIGNUP_UNVERIFIED"])
        #expect(second.status == 1, "the first status stays")
        #expect(try await bench.ask(.sensitiveAction, sub: "mallory").status == 1)
    }

    @Test func realUserStatus_firstTokenWithoutIt_isTakenFromNext() async throws {
        let bench = try await DecisionFixture()
        #expect(try await bench.signUp("web", status: nil).status == nil)
        #expect(try await bench.signUp("web", status: 1).status == 1)
        #expect(try await bench.signUp("web", status: 2).status == 1)
    }

    @Test func signUpCheck_ignored_isAskedAgainUntilPassed() async throws {
        let bench = try await DecisionFixture()
        let signUp = try await bench.signUp("mallory", status: 1)
        for event in [PolicyEvent.signIn, .sensitiveAction, .upgrade] {
            let answer = try await bench.ask(event, sub: "mallory")
            #expect(answer.decision == "require_verification", "\(event)")
            #expect(answer.reasons.contains("SIGNUP_UNVERIFIED"), "\(event)")
        }
        bench.clock.advance(40 * 86_400)
        #expect(
            try await bench.ask(.signIn, sub: "mallory").reasons == ["SIGNUP_UNVERIFIED"],
            "time alone proves nothing")
        let again = try await bench.ask(.signIn, sub: "mallory")
        try await bench.report(again.id, .initiated, "email_code")
        #expect(
            try await bench.ask(.signIn, sub: "mallory").decision == "require_verification",
            "begun is not passed")
        try await bench.report(again.id, .passed, "email_code")
        #expect(try await bench.ask(.signIn, sub: "mallory").decision == "allow")
        _ = signUp
    }

    @Test(arguments: [PolicyEvent.signIn, .sensitiveAction, .upgrade])
    func signUp_claimedAsOtherEvent_isSignUp(_ claimed: PolicyEvent) async throws {
        let bench = try await DecisionFixture()
        let answer = try await bench.ask(
            claimed, token: bench.token("mallory", status: 1, nonce: "n1"), nonce: "n1")
        #expect(answer.event == "sign_up")
        #expect(answer.decision == "require_verification")
        #expect(answer.reasons == ["REAL_USER_UNKNOWN"])
        // With an account that Postern itself issued, too, and without a token.
        let sub = try bench.user("u1")
        #expect(try await bench.ask(claimed, sub: sub).event == "sign_up")
        #expect(
            try await bench.ask(claimed, sub: sub).event == claimed.rawValue, "by now it was seen")
    }

    @Test func signUp_ofEstablishedAccount_isSignIn() async throws {
        let bench = try await DecisionFixture()
        _ = try await bench.signUp("jane", status: 2)
        #expect(try await bench.ask(.signUp, sub: "jane").event == "sign_in")
        // An account that was authorized long before its team sent requests is not a sign-up
        // either.
        let sub = try bench.user("u1")
        bench.clock.advance(GrantView.signUpWindow + 1)
        #expect(try await bench.ask(.signUp, sub: sub).event == "sign_in")
    }

    @Test func identityToken_usedForAnotherSubject_isRefused() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1")
        #expect(try await bench.ask(.signUp, token: token, nonce: "n1").decision == "allow")
        await expectInvalid("/sub") {
            _ = try await bench.ask(.signUp, token: token, nonce: "n1", sub: "mallory")
        }
        // Nor does the nonce in a token of another subject.
        let stolen = try bench.token("mallory", status: 2, nonce: "n1")
        await expectConflict { _ = try await bench.ask(.signUp, token: stolen, nonce: "n1") }
        #expect(
            try await bench.ask(.signIn, sub: "mallory").credentialState == "not_found",
            "nothing was made for it")
    }

    @Test func identityToken_usedForAnotherApp_isRefused() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1")
        await expectInvalid("/identity_token") {
            _ = try await bench.ask(
                .signUp, token: token, nonce: "n1", app: DecisionFixture.otherApp)
        }
        await expectInvalid("/identity_token") {
            _ = try await bench.ask(
                .signUp, token: token, nonce: "n1", app: DecisionFixture.foreignApp,
                team: bench.other)
        }
        // Another team cannot send requests for this team's app.
        await expectInvalid("/client_id") {
            _ = try await bench.ask(.signUp, token: token, nonce: "n1", team: bench.other)
        }
        #expect(
            try await bench.ask(.signUp, token: token, nonce: "n1").decision == "allow",
            "unused so far")
    }

    @Test func nonce_reused_isRefused() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1")
        let answer = try await bench.ask(.signUp, token: token, nonce: "n1")
        #expect(
            try await bench.ask(.signUp, token: token, nonce: "n1") == answer,
            "the same question has the same answer")
        await expectConflict {
            _ = try await bench.ask(.sensitiveAction, token: token, nonce: "n1")
        }
        await expectInvalid("/nonce") {
            _ = try await bench.ask(.signUp, token: token, nonce: "n2")
        }
        await expectInvalid("/nonce") { _ = try await bench.ask(.signUp, token: token, nonce: nil) }
        await expectInvalid("/nonce") {
            _ = try await bench.ask(.signUp, token: bench.token("real", status: 2), nonce: "n1")
        }
        await expectInvalid("/nonce") {
            _ = try await bench.ask(.signUp, token: bench.token("x", status: 2), nonce: nil)
        }
        bench.clock.advance(700)
        await expectInvalid("/identity_token") {
            _ = try await bench.ask(.signUp, token: token, nonce: "n1")
        }
    }

    @Test func nonce_reusedConcurrently_givesOneAnswer() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1")
        let bodies = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await bench.service.decide(
                        DecisionRequest(
                            event: .signUp, clientID: DecisionFixture.app, identityToken: token,
                            nonce: "n1"),
                        for: bench.juice
                    ).body
                }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(bodies.count == 1)
        try bench.log.flush()
        #expect(try bench.store.decisions.newest(DecisionFilter(), limit: 99).count == 1)
    }

    @Test func signUp_afterRevocations_remembersHistory() async throws {
        let bench = try await DecisionFixture()
        _ = try await bench.signUp("mallory", status: 1)
        let app = try #require(try bench.store.apps.decisionApp(clientID: DecisionFixture.app))
        func history() throws -> GrantHistory {
            let found = try bench.store.history.history(
                team: app.teamNumber, group: app.groupNumber,
                subject: .external(issuer: DecisionFixture.externalIssuer, subject: "mallory"),
                now: bench.clock.now)
            guard let found else { throw DecisionError.notFound }
            return found
        }
        let group = try #require(
            try bench.store.grants.grants(account: history().accountNumber).first
        ).group
        for round in 1...3 {
            try bench.store.grants.revoke(
                account: try history().accountNumber, group: group,
                Change(actor: "test", now: bench.clock.now))
            let revoked = try await bench.ask(.signIn, sub: "mallory")
            #expect(revoked.reasons.first == "CONSENT_REVOKED")
            #expect(revoked.credentialState == "revoked")
            // A token from before the revocation gives no access.
            let old = try bench.token(
                "mallory", status: 2, nonce: "old\(round)", issuedAt: bench.clock.now - 60)
            #expect(
                try await bench.ask(.signUp, token: old, nonce: "old\(round)").credentialState
                    == "revoked")
            bench.clock.advance(60)
            let back = try await bench.signUp("mallory", status: 0)
            #expect(back.event == "sign_up")
            #expect(back.credentialState == "authorized")
            if round == 3 {
                #expect(
                    back.reasons == ["ACCOUNT_HISTORY"], "INBOX_RECYCLED, as the team may see it")
            }
        }
        #expect(
            try history().grant?.signUpCheck == .pending, "what was never passed is still asked for"
        )
        #expect(try history().rejoins30d == 3)
    }

    @Test func signUp_afterDeletions_isKnownByInbox() async throws {
        let bench = try await DecisionFixture()
        for _ in 1...3 {
            let sub = try bench.user("u1")
            #expect(try await bench.signUp(sub, status: 0, isOwn: true).decision == "allow")
            let account = try #require(
                try bench.store.addresses.addresses(user: "u1").first { $0.account.sub == sub }
            ).account
                .number
            try bench.store.accounts.delete(
                account: account, Change(actor: "test", now: bench.clock.now))
            #expect(try await bench.ask(.signIn, sub: sub).credentialState == "not_found")
        }
        let back = try await bench.signUp(bench.user("u1"), status: 0, isOwn: true)
        #expect(back.decision == "require_verification")
        #expect(back.reasons == ["ACCOUNT_HISTORY"])
        #expect(try bench.logged(back.id).reasons == ["INBOX_RECYCLED"])
        #expect(try bench.logged(back.id).signals.contains(#""inbox.deletions_30d":3"#))
    }

    @Test func outcome_otherChallengeThanAsked_isRefused() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        bench.clock.advance(90 * 86_400)
        let answer = try await bench.ask(.sensitiveAction, sub: sub)
        #expect(answer.challenges == ["reauthenticate"])
        await expectInvalid("/challenge") {
            try await bench.report(answer.id, .initiated, "human_check")
        }
        await expectConflict { try await bench.report(answer.id, .passed, "reauthenticate") }
        try await bench.report(answer.id, .initiated, "reauthenticate")
        try await bench.report(answer.id, .passed, "reauthenticate")
        #expect(try await bench.ask(.sensitiveAction, sub: sub).reasons == ["RECENTLY_VERIFIED"])
        await expectConflict { try await bench.report(answer.id, .failed, "reauthenticate") }
    }

    @Test func sensitiveAction_withoutToken_isStillAsked() async throws {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        _ = try await bench.ask(.signIn, sub: sub)
        bench.clock.advance(80 * 86_400)
        #expect(try await bench.ask(.sensitiveAction, sub: sub).reasons == ["STALE_TOKEN"])
        // Neither is an unknown name, or no name.
        let unknown = try await bench.ask(.sensitiveAction, sub: "nobody")
        #expect(unknown.decision == "require_verification")
        #expect(unknown.credentialState == "not_found")
        await expectInvalid("/identity_token") {
            _ = try await bench.ask(
                DecisionRequest(event: .sensitiveAction, clientID: DecisionFixture.app))
        }
    }

    @Test func decision_askedAgainAfterExpiry_keepsExpiry() async throws {
        let bench = try await DecisionFixture()
        let token = try bench.token("real", status: 2, nonce: "n1", lifetime: 3_600)
        let answer = try await bench.ask(.signUp, token: token, nonce: "n1")
        #expect(answer.decision == "allow")
        bench.clock.advance(301)
        let again = try await bench.ask(.signUp, token: token, nonce: "n1")
        #expect(again == answer, "the same answer with the same expiry, which is over")
        #expect(again.body.contains(UTCTime.text(DecisionFixture.start + 300)))
        #expect(try await bench.service.decision(answer.id, for: bench.juice) == answer.body)
    }

    @Test func decision_otherTeamAsksOften_isNotAffected() async throws {
        let bench = try await DecisionFixture()
        let mine = try bench.user("u1")
        let theirs = try bench.user("u1", team: "other", app: DecisionFixture.foreignApp)
        func atB() async throws -> DecisionRecord {
            let nonce = UUID().uuidString
            let token = try bench.token(
                theirs, status: 1, nonce: nonce, app: DecisionFixture.foreignApp, isOwn: true)
            let answer = try await bench.ask(
                .signUp, token: token, nonce: nonce, app: DecisionFixture.foreignApp,
                team: bench.other)
            return try bench.logged(answer.id)
        }
        for number in 0..<40 {
            let answer = try await bench.ask(.sensitiveAction, sub: mine)
            if let challenge = answer.challenges.first {
                try await bench.report(answer.id, .initiated, challenge)
                try await bench.report(answer.id, .failed, challenge)
                _ = try await bench.service.report(
                    .label(.fraudulent), of: answer.id, for: bench.juice)
            }
            let nonce = "n\(number)"
            _ = try await bench.ask(
                .signUp, token: bench.token(mine, status: 1, nonce: nonce, isOwn: true),
                nonce: nonce)
        }
        #expect(
            try await bench.ask(.signIn, sub: mine).reasons.contains("REPEATED_FAILED_CHECKS"),
            "its own concern")
        let record = try await atB()
        #expect(record.signals.contains(#""checks.failed_24h":0"#))
        #expect(
            record.signals.contains(#""inbox.signups_24h":1"#),
            "asking is no sign-up: the user's own alone counts")
        #expect(record.asked == ["unknown-new-user"])
        // A team's decision can be read and reported on only by that team.
        let answer = try await bench.ask(.signIn, sub: mine)
        await #expect(throws: DecisionError.notFound) {
            _ = try await bench.service.decision(answer.id, for: bench.other)
        }
        await #expect(throws: DecisionError.notFound) {
            _ = try await bench.service.report(.label(.fraudulent), of: answer.id, for: bench.other)
        }
    }
}
