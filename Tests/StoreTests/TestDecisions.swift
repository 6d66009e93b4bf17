// A store with an app, and short functions for the actions of decisions.

import Accounts
import Decisions
import Testing

final class TestDecisions: Sendable {
    static let clientID = "com.juice.app"
    let inner: TestStore

    init(_ engine: Engine) throws {
        inner = try TestStore(engine)
        _ = try inner.store.apps.add(
            team: "juice", clientID: Self.clientID, group: nil, TestStore.change)
        try inner.user("u1")
    }

    func app(_ clientID: String = clientID) throws -> DecisionApp {
        try #require(try inner.store.apps.decisionApp(clientID: clientID))
    }

    func sub(_ user: String) throws -> String {
        try inner.address(user, app: Self.clientID).account.sub
    }
    func account(_ user: String) throws -> Int64 {
        try inner.address(user, app: Self.clientID).account.number
    }

    func history(_ subject: GrantSubject, at now: Int64 = TestStore.now) throws -> GrantHistory? {
        let app = try app()
        return try inner.store.history.history(
            team: app.teamNumber, group: app.groupNumber, subject: subject, now: now)
    }

    func record(
        _ id: String, challenges: [String] = [], event: String = "sign_up", grant: Int64? = nil,
        mark: [UInt8]? = nil,
        at now: Int64 = TestStore.now
    ) throws -> DecisionRecord {
        DecisionRecord(
            id: id, teamNumber: try app().teamNumber, clientID: Self.clientID, grantNumber: grant,
            appAccountMark: mark,
            claimedEvent: event, event: event,
            decision: challenges.isEmpty ? "allow" : "require_verification",
            challenges: challenges, policyName: "p", policyVersion: "1", policyHash: "sha256:00",
            credentialState: "authorized",
            evaluatedAt: now, expiresAt: now + 300)
    }

    /// Logs a decision about the user's grant and returns its id.
    func decided(_ user: String, challenges: [String], id: String = "rd_1") throws -> String {
        let grant = try history(.own(sub: try sub(user)))?.grant?.number
        try inner.store.decisions.insert([try record(id, challenges: challenges, grant: grant)])
        return id
    }

    func report(
        _ id: String, _ outcome: CheckOutcome, _ challenge: String, at now: Int64
    ) throws -> LoggedDecision {
        try inner.store.checks.report(
            decision: id, team: try app().teamNumber, outcome: outcome, challenge: challenge,
            now: now
        ).get()
    }

    func decisionWrite(
        _ subject: GrantSubject?, isVerified: Bool, at now: Int64 = TestStore.now,
        record: DecisionRecord? = nil
    ) throws -> DecisionWrite {
        let app = try app()
        return DecisionWrite(
            team: app.teamNumber, group: app.groupNumber, app: app.number, subject: subject,
            expected: nil, nonce: nil,
            isVerified: isVerified, now: now, record: record)
    }

    @discardableResult
    func settle(
        _ subject: GrantSubject, isVerified: Bool, isSignUp: Bool = false, status: Int? = nil,
        makesPending: Bool = false,
        at now: Int64 = TestStore.now
    ) throws -> DecisionWriteResult {
        var decisionWrite = try decisionWrite(subject, isVerified: isVerified, at: now)
        decisionWrite.isSignUp = isSignUp
        decisionWrite.realUserStatus = status
        decisionWrite.makesPending = makesPending
        return try inner.store.decisionWrites.apply(decisionWrite)
    }
}
