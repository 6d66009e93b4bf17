// Reports by teams: the outcomes of challenges, and labels.

import Accounts
import Database
import SignIn
import Support

/// Why an outcome is refused.
package enum OutcomeRefusal: Error, Sendable, Hashable {
    /// The team has no such decision.
    case notFound
    /// The challenge was not offered.
    case notOffered
    /// `passed` or `failed` before `challenge_initiated`.
    case outOfOrder
    /// `failed` after `passed`: a pass is final.
    case contradicts
    /// More than 24 hours after the decision.
    case tooLate
}

extension CheckRecord {
    /// How long after the decision outcomes are accepted, in seconds.
    package static let reportingTime: Int64 = 86_400

    /// The record after a report; nil if the report adds nothing new. Pure.
    /// - Parameter known: the earlier reports of this challenge.
    /// - Parameter method: how the page carried it out; nil for a report of the team. The last word
    ///   counts, so a pass that the team reports is never one that was observed.
    package static func after(
        _ outcome: CheckOutcome, challenge: String, method: CheckMethod? = nil,
        known: CheckRecord?, of decision: DecisionRecord, now: Int64
    ) throws(OutcomeRefusal) -> CheckRecord? {
        guard decision.challenges.contains(challenge) else { throw .notOffered }
        if let known {
            switch outcome {
            case .initiated: return nil
            case .passed where known.passedAt != nil: return nil
            case .failed where known.failedAt != nil: return nil
            // For example a mistyped code, then the right one.
            case .passed: break
            case .failed: guard known.passedAt == nil else { throw .contradicts }
            }
        } else if outcome != .initiated {
            throw .outOfOrder
        }
        guard now - decision.evaluatedAt <= reportingTime else { throw .tooLate }
        return switch outcome {
        case .initiated:
            CheckRecord(
                challenge: challenge, method: method, initiatedAt: now, passedAt: nil,
                failedAt: nil)
        case .passed:
            CheckRecord(
                challenge: challenge, method: method, initiatedAt: known?.initiatedAt ?? now,
                passedAt: now,
                failedAt: known?.failedAt)
        case .failed:
            CheckRecord(
                challenge: challenge, method: method, initiatedAt: known?.initiatedAt ?? now,
                passedAt: nil,
                failedAt: now)
        }
    }
}

/// Records outcomes and labels.
package struct CheckRepository: Sendable {
    let database: any Database

    /// Records the outcome of a challenge of one of the team's decisions. Repeating a report
    /// changes nothing. If a check was required at sign-up, a pass ends the pending state of the
    /// grant.
    package func report(
        decision id: String, team: Int64, outcome: CheckOutcome, challenge: String, now: Int64
    ) throws(StoreFailure) -> Result<LoggedDecision, OutcomeRefusal> {
        try database.write(.durable) { connection throws(StoreFailure) in
            guard let decision = try connection.decision(id, team: team) else {
                return .failure(.notFound)
            }
            let check: CheckRecord?
            do throws(OutcomeRefusal) {
                check = try CheckRecord.after(
                    outcome, challenge: challenge, known: decision.check(challenge),
                    of: decision.record, now: now)
            } catch { return .failure(error) }
            guard let check else { return .success(decision) }
            try connection.record(check, of: decision.record)
            return .success(try connection.decision(id, team: team) ?? decision)
        }
    }

    /// Labels one of the team's decisions; the last label counts.
    package func label(
        decision id: String, team: Int64, _ label: DecisionLabel, now: Int64
    ) throws(StoreFailure) -> Result<LoggedDecision, OutcomeRefusal> {
        try database.write(.durable) { connection throws(StoreFailure) in
            let changed = try connection.run(
                """
                UPDATE decisions SET label = \(label), labelled_at = \(now)
                WHERE decision_id = \(id) AND \(SQL.filter("team_id")) = \(team) AND (label IS NULL OR label <> \(label))
                """)
            guard let decision = try connection.decision(id, team: team) else {
                return .failure(.notFound)
            }
            if changed > 0 {
                let change = Change(actor: "team:\(decision.teamID)", now: now)
                try connection.audit(change, "decision.label", "decision:\(id)", label.rawValue)
            }
            return .success(decision)
        }
    }

    /// Most labels that the operator can set in one call.
    package static let labelsAtOnce = 100_000

    /// Sets labels on decisions of any teams for the operator, all or none; the last
    /// label of a decision counts.
    /// - Returns: the index of the first decision that does not exist; nil if all exist and were
    ///   labelled.
    package func label(
        _ labels: [(id: String, label: DecisionLabel)], _ change: Change
    ) throws(StoreFailure) -> Int? {
        try database.write(.durable) { connection throws(StoreFailure) in
            for (place, label) in labels.enumerated()
            where try connection.row("SELECT 1 FROM decisions WHERE decision_id = \(label.id)")
                == nil
            {
                return place
            }
            for (id, label) in labels {
                try connection.run(
                    """
                    UPDATE decisions SET label = \(label), labelled_at = \(change.now)
                    WHERE decision_id = \(id) AND (label IS NULL OR label <> \(label))
                    """)
            }
            try connection.audit(
                change, labels.map { ("decision.label", "decision:\($0.id)", $0.label.rawValue) })
            return nil
        }
    }

    /// Whether an app's own account was bound by an upgrade, even if to a
    /// grant that no longer exists.
    package func isUpgraded(team: Int64, appAccount mark: [UInt8]) throws(StoreFailure) -> Bool {
        try database.read { connection throws(StoreFailure) in
            try connection.isUpgraded(team: team, appAccount: mark)
        }
    }

    /// Deletes checks begun before a time, at most `limit`; returns how many.
    package func deleteExpired(before cutoff: Int64, limit: Int = 1000) throws(StoreFailure) -> Int
    {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.deletePast(.checks, where: "x.initiated_at < \(cutoff)", limit: limit)
        }
    }
}

extension LoggedDecision {
    /// The reports of a challenge; nil if it was not begun.
    func check(_ challenge: String) -> CheckRecord? {
        checks.first { $0.challenge.hasSameOctets(as: challenge) }
    }
}

extension DatabaseConnection {
    /// Writes the state of a check. If one was required at sign-up, a pass ends the pending state
    /// of the grant.
    func record(_ check: CheckRecord, of decision: DecisionRecord) throws(StoreFailure) {
        try run(
            """
            INSERT INTO checks (decision_id, challenge, grant_id, method, initiated_at, passed_at, failed_at)
            VALUES \(list: [decision.id, check.challenge, decision.grantNumber, check.method, check.initiatedAt, check.passedAt,
                check.failedAt])
            ON CONFLICT (decision_id, challenge) DO UPDATE
                SET method = excluded.method, passed_at = excluded.passed_at, failed_at = excluded.failed_at
            """)
        guard let passedAt = check.passedAt, let grant = decision.grantNumber else { return }
        try run(
            "UPDATE grants SET signup_check = 'passed' WHERE id = \(grant) AND signup_check = 'pending'"
        )
        try noteSeen([grant: passedAt])
    }

    /// Whether an app's own account was bound, within a transaction.
    func isUpgraded(team: Int64, appAccount mark: [UInt8]) throws(StoreFailure) -> Bool {
        try row("SELECT 1 FROM upgraded_accounts WHERE team_id = \(team) AND app_account = \(mark)")
            != nil
    }
}
