// Calls after a decision: showing it again, outcomes, labels, and completing an upgrade.

import Accounts
import Database
import RiskPolicy
import Support

/// A team's report about a decision.
package enum DecisionReport: Sendable, Hashable {
    case outcome(CheckOutcome, challenge: String)
    case label(DecisionLabel)
}

extension DecisionService {
    /// A decision of the team, with the reports made since.
    package func decision(_ id: String, for team: Requester) async throws -> String {
        DecisionResponse.json(try await logged(id, team), now: now())
    }

    /// Records an outcome or a label. Throws `DecisionError`: unavailable while the store is
    /// unavailable.
    package func report(
        _ report: DecisionReport, of id: String, for team: Requester
    ) async throws -> String {
        _ = try await logged(id, team)
        let time = now()
        let reported = try await withStore { store in
            switch report {
            case .outcome(let outcome, let challenge):
                try store.checks.report(
                    decision: id, team: team.number, outcome: outcome, challenge: challenge,
                    now: time)
            case .label(let label):
                try store.checks.label(decision: id, team: team.number, label, now: time)
            }
        }
        switch reported {
        case .success(let decision): return DecisionResponse.json(decision, now: time)
        case .failure(.notFound): throw DecisionError.notFound
        case .failure(.notOffered):
            throw DecisionError.invalid("/challenge", "the decision did not offer this challenge")
        case .failure(.outOfOrder):
            throw DecisionError.conflict("report challenge_initiated before passed or failed")
        case .failure(.contradicts):
            throw DecisionError.conflict("this challenge was already reported as passed")
        case .failure(.tooLate):
            throw DecisionError.conflict("outcomes are accepted for 24 hours after the decision")
        }
    }

    /// Binds the app's own account of an upgrade to the subject of a token, once only.
    package func complete(
        _ id: String, identityToken: String, nonce: String?, for team: Requester
    ) async throws -> String {
        let decision = try await logged(id, team)
        let time = now()
        guard let mark = decision.record.appAccountMark,
            decision.record.claimedEvent == PolicyEvent.upgrade.rawValue
        else {
            throw DecisionError.conflict(
                "only an upgrade that was requested by app_account can be completed")
        }
        guard decision.record.upgradeResult != UpgradeResult.failure else {
            throw DecisionError.conflict(
                "this upgrade is not possible: the account is already bound")
        }
        let app = try await app(decision.record.clientID, of: team)
        guard !app.isGone else {
            throw DecisionError.conflict("the app was transferred to another team")
        }
        let token = try await meaning(
            of: identityToken, nonce: nonce, sub: nil, app: app, now: time)
        let event = "complete " + id
        if let nonceMark = token.nonceMark,
            let used = try await withStore({ try $0.decisionWrites.consumedNonce(nonceMark) })
        {
            return try repeated(used, by: token, event: event).body
        }
        let history = try await withStore { store in
            try store.history.history(
                team: app.teamNumber, group: app.groupNumber, subject: token.subject, now: time)
        }
        let isBoundToIt =
            decision.record.grantNumber != nil
            && decision.record.grantNumber == history?.grant?.number
        if !isBoundToIt { try Self.checkPermitted(decision, now: time) }
        let view = GrantView(claimed: .upgrade, history: history, token: token.facts, now: time)
        guard view.credentialState == "authorized" else {
            throw DecisionError.conflict("the user has revoked the consent to this app")
        }
        var writer = JSONWriter()
        writer.object {
            $0.member("decision_id", id)
            $0.member("upgrade_result", UpgradeResult.success)
            $0.member("sub", token.name)
            $0.member("credential_state", view.credentialState)
            if let status = view.realUserStatus {
                $0.name("real_user_status")
                $0.value(status)
            }
        }
        let answer = writer.text
        let consumed = token.nonceMark.map {
            ConsumedNonce(
                mark: $0, subject: token.subjectMark, claimedEvent: event, event: event,
                decisionID: id, answer: answer,
                expiresAt: token.endsAt)
        }
        var decisionWrite = DecisionWrite(
            team: app.teamNumber, group: app.groupNumber, app: app.number, subject: token.subject,
            expected: GrantStamp(history), nonce: consumed, isVerified: true, now: time, record: nil
        )
        decisionWrite.isReturn = view.isReturn
        decisionWrite.realUserStatus = token.facts.realUserStatus
        decisionWrite.binding = AppAccountBinding(mark: mark, decisionID: id)
        let result: DecisionWriteResult
        do {
            result = try await store.decisionWrites.apply(decisionWrite, in: commits)
        } catch {
            guard !error.isRefusal else { throw error }
            breaker.failed()
            throw Self.away
        }
        switch result {
        case .written(.some): return answer
        case .written(nil):
            throw DecisionError.conflict(
                "the token's account is unknown: it must be authorized first")
        case .nonceConsumed(let used): return try repeated(used, by: token, event: event).body
        case .changed:
            throw DecisionError.unavailable("the account is being changed", retryAfter: 1)
        case .boundAlready: throw DecisionError.conflict("the app_account is already bound")
        }
    }

    /// An allow is valid until it expires. A passed check is valid as long as outcomes are
    /// accepted.
    private static func checkPermitted(_ decision: LoggedDecision, now: Int64) throws(DecisionError)
    {
        if decision.record.decision == PolicyDecision.allow.rawValue {
            guard now < decision.record.expiresAt else {
                throw .conflict("the decision has expired: send a new request")
            }
            return
        }
        guard decision.checks.contains(where: { $0.passedAt != nil }) else {
            throw .conflict("one of the challenges must be passed and reported first")
        }
        guard now - decision.record.evaluatedAt <= CheckRecord.reportingTime else {
            throw .conflict("the decision is too old: send a new request")
        }
    }

    /// The decision from the log, or from the buffer that waits for it.
    private func logged(_ id: String, _ team: Requester) async throws -> LoggedDecision {
        let pending = log.pending(id)
        if let pending, pending.teamNumber != team.number { throw DecisionError.notFound }
        do {
            let found = try await withStore { [log] store in
                if pending != nil { try log.flush() }
                return try store.decisions.decision(id, team: team.number)
            }
            guard let found else { throw DecisionError.notFound }
            return found
        } catch DecisionError.unavailable where pending != nil {
            guard let pending else { throw Self.away }
            return LoggedDecision(
                number: 0, record: pending, teamID: team.id, label: nil, labelledAt: nil, checks: []
            )
        }
    }

    private static let away = DecisionError.unavailable("the store is unavailable", retryAfter: 5)

    /// Runs a call of the store; a failure becomes 503.
    private func withStore<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value
    ) async throws -> Value {
        guard breaker.isClosed else { throw Self.away }
        do {
            return try await executor.run { [store] in try body(store) }
        } catch let failure as StoreFailure where !failure.isRefusal {
            breaker.failed()
            logger.warning("the store does not answer", metadata: ["detail": "\(failure)"])
            throw Self.away
        }
    }
}
