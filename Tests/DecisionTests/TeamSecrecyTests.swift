// Facts of other teams that a team must not be able to read, from codes, challenges, or the work of
// an answer.

import Accounts
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct TeamSecrecyTests {
    /// A user with a new account at juice, whose inbox other teams know well or not at all.
    private func bench(
        signUpsElsewhere: Int, bouncesElsewhere: Int = 0
    ) async throws -> (DecisionFixture, String) {
        let bench = try await DecisionFixture()
        let sub = try bench.user("u1")
        let change = Change(actor: "test", now: bench.clock.now)
        for number in 0..<max(signUpsElsewhere, bouncesElsewhere > 0 ? 1 : 0) {
            let (team, app) = ("t\(number)", "com.t\(number)")
            let added = try bench.store.teams.add(id: team, name: "T", change)
            _ = try bench.store.apps.add(team: team, clientID: app, group: nil, change)
            let theirs = try bench.user("u1", team: team, app: app)
            if number < signUpsElsewhere {
                _ = try await bench.signUp(
                    theirs, status: 2, isOwn: true, app: app,
                    team: Requester(id: team, number: added.number))
            }
        }
        if bouncesElsewhere > 0 {
            let account = try bench.store.addresses.addresses(team: "t0", user: "u1")[0].account
                .number
            try bench.store.counters.add([
                DailyCounter(
                    accountNumber: account, day: Day.number(bench.clock.now),
                    kind: .bouncedPermanently, count: bouncesElsewhere)
            ])
        }
        return (bench, sub)
    }

    @Test func reasons_factsOfOtherTeams_haveOneCode() async throws {
        let (bench, sub) = try await bench(signUpsElsewhere: 4)
        let answer = try await bench.signUp(sub, status: 0, isOwn: true)
        #expect(answer.decision == "require_verification")
        #expect(answer.reasons == ["ACCOUNT_HISTORY"])
        let record = try bench.logged(answer.id)
        #expect(record.reasons == ["INBOX_SIGNUP_VELOCITY"], "the operator's log is precise")
        #expect(record.asked == ["inbox-velocity"])
        // Two different facts of other teams look the same.
        let (second, other) = try await self.bench(signUpsElsewhere: 10)
        let burst = try await second.signUp(other, status: 2, isOwn: true)
        #expect(try second.logged(burst.id).reasons == ["INBOX_SIGNUP_BURST"])
        #expect(burst.reasons == answer.reasons)
        #expect(burst.challenges == answer.challenges)
    }

    @Test func decision_answered_holdsOnlyItsMembers() async throws {
        let (bench, sub) = try await bench(signUpsElsewhere: 4)
        let answer = try await bench.signUp(sub, status: 1, isOwn: true)
        #expect(
            answer.names == [
                "decision_id", "event", "decision", "challenges", "reasons", "degraded",
                "real_user_status", "credential_state",
                "policy", "evaluated_at", "expires_at",
            ])
        let policy = try #require(DecisionFixture.policy)
        for rule in policy.policy.rules { #expect(!answer.body.contains(rule.id), "\(rule.id)") }
        for word in ["waived", "missing", "errors", "shadow", "inbox", "signups"] {
            #expect(!answer.body.contains(word), "\(word)")
        }
        // Shown again, it says no more.
        #expect(try await bench.service.decision(answer.id, for: bench.juice) == answer.body)
    }

    @Test func challenges_factsOfOtherTeams_areTheSame() async throws {
        let (quiet, sub) = try await bench(signUpsElsewhere: 0)
        let (bouncing, other) = try await bench(signUpsElsewhere: 0, bouncesElsewhere: 9)
        let first = try await quiet.signUp(sub, status: 1, isOwn: true)
        let second = try await bouncing.signUp(other, status: 1, isOwn: true)
        #expect(first.challenges == second.challenges)
        #expect(first.reasons == second.reasons)
        #expect(try bouncing.logged(second.id).signals.contains(#""inbox.bounces_7d":9"#))
        #expect(second.body.utf8.count == first.body.utf8.count)
    }

    @Test func decision_factsOfOtherTeams_takesSameStatements() async throws {
        // A test cannot compare time, but it can compare the statements that take it.
        var work: [[String]] = []
        for signUps in [0, 2] {
            let (bench, sub) = try await bench(signUpsElsewhere: signUps, bouncesElsewhere: 1)
            _ = try await bench.ask(.signIn, sub: sub)
            _ = bench.database.takeStatements()
            _ = try await bench.ask(.sensitiveAction, sub: sub)
            work.append(bench.database.takeStatements())
        }
        #expect(work[0] == work[1])
        #expect(
            work[0].count == 1,
            "a known account is read with one statement, and nothing is written before the answer")
    }

    @Test func decisionLog_stored_holdsNoTokenNonceOrSubject() async throws {
        let bench = try await DecisionFixture()
        let nonce = "a-nonce-to-look-for"
        let token = try bench.token("subject-to-look-for", status: 1, nonce: nonce)
        let answer = try await bench.ask(.signUp, token: token, nonce: nonce)
        let sub = try bench.user("u1", inbox: "jane@home.example")
        _ = try await bench.ask(.signIn, sub: sub)
        try bench.log.flush()
        let parts = token.split(separator: ".").map(String.init)
        var all = ""
        for table in [
            "decisions", "consumed_nonces", "checks", "verified_signups", "idempotency_keys",
        ] {
            for row in try bench.database.rows("SELECT * FROM \(raw: table)") {
                let text = row.values.map { value in
                    switch value {
                    case .text(let text): text
                    case .blob(let octets): String(decoding: octets, as: UTF8.self)
                    case .integer(let integer): String(integer)
                    case .null: ""
                    }
                }.joined(separator: " ")
                all += text
                for secret in [nonce, "subject-to-look-for", "jane", "home.example", sub] + parts {
                    #expect(!text.contains(secret), "\(table)")
                }
            }
        }
        // Unencrypted text is found, so the search works.
        #expect(all.contains(answer.id))
    }
}
