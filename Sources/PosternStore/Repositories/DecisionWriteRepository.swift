// Settles what a question changes: nonce, first status, pending check, sign-up counts and the log, all or nothing.

import MailCrypto
import Support

/// Applies decisionWrites and manages nonces.
package struct DecisionWriteRepository: Sendable {
    let database: any Database

    /// Applies one decision write, durably.
    package func apply(_ decisionWrite: DecisionWrite) throws -> DecisionWriteResult {
        try database.write(.durable) { try $0.apply(decisionWrite) }
    }

    /// Applies one decision write, durably, together with others that come at the same time.
    package func apply(_ decisionWrite: DecisionWrite, in group: GroupCommit) async throws -> DecisionWriteResult {
        try await group.run { try $0.apply(decisionWrite) }
    }

    /// What a nonce was used for; nil for a new one.
    package func consumedNonce(_ mark: [UInt8]) throws -> ConsumedNonce? { try database.read { try $0.consumedNonce(mark) } }

    /// Notes when grants were last asked about; a time before the one that is known changes nothing.
    package func noteSeen(_ grants: [Int64: Int64]) throws {
        guard !grants.isEmpty else { return }
        try database.write(.relaxed) { try $0.noteSeen(grants) }
    }

    /// Deletes nonces that expired, at most `limit`; gives the number.
    package func deleteExpiredNonces(now: Int64, limit: Int = 1000) throws -> Int {
        try database.write(.relaxed) { connection in
            try connection.run(
                """
                DELETE FROM consumed_nonces WHERE mark IN
                    (SELECT mark FROM consumed_nonces WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
                """, [.integer(now), .integer(Int64(limit))])
        }
    }

    /// What an external issuer's events say of its own relay address for the subject, in every team that knows it.
    package func noteExternalForwarding(issuer: String, subject: String, team: Int64, isOn: Bool) throws {
        try database.write(.durable) { connection in
            try connection.run(
                "UPDATE external_identities SET forwarding_on = ?4 WHERE team_id = ?1 AND subject = ?2 AND issuer = ?3",
                [.integer(team), .text(subject), .text(issuer), .bool(isOn)])
        }
    }
}

extension DatabaseConnection {
    /// Applies a decision write within a transaction.
    func apply(_ decisionWrite: DecisionWrite) throws -> DecisionWriteResult {
        if let nonce = decisionWrite.nonce, let consumed = try consumedNonce(nonce.mark) { return .nonceConsumed(consumed) }
        var history: GrantHistory?
        if let subject = decisionWrite.subject {
            history = try grantHistory(
                team: decisionWrite.team, group: decisionWrite.group, subject: subject, now: decisionWrite.now)
            if let expected = decisionWrite.expected, expected != GrantStamp(history) { return .changed }
        }
        if let binding = decisionWrite.binding, try isBound(binding, team: decisionWrite.team, grant: history?.grant?.number) {
            return .boundAlready
        }
        if let nonce = decisionWrite.nonce { try consume(nonce) }
        var grant = history?.grant?.number
        if grant == nil, decisionWrite.isVerified, case .external(let issuer, let subject) = decisionWrite.subject {
            grant = try addExternalGrant(decisionWrite, issuer: issuer, subject: subject, account: history?.accountNumber)
        }
        if let grant {
            if decisionWrite.isReturn { try rejoin(grant: grant, now: decisionWrite.now) }
            try run(
                """
                UPDATE grants SET real_user_status = COALESCE(real_user_status, ?2), first_asked_at = COALESCE(first_asked_at, ?3),
                    last_seen_at = CASE WHEN COALESCE(last_seen_at, 0) < ?3 THEN ?3 ELSE last_seen_at END, signup_check = CASE WHEN ?4 = 1 THEN 'pending' ELSE signup_check END
                WHERE id = ?1
                """,
                [
                    .integer(grant), .optional(decisionWrite.realUserStatus.map(Int64.init)), .integer(decisionWrite.now),
                    .bool(decisionWrite.makesPending),
                ])
            if decisionWrite.isSignUp { try countSignUp(decisionWrite, history) }
        }
        if var record = decisionWrite.record {
            record.grantNumber = grant
            try insert(record)
        }
        if let binding = decisionWrite.binding, let grant { try bind(binding, grant: grant, decisionWrite) }
        return .written(grant: grant)
    }

    func consumedNonce(_ mark: [UInt8]) throws -> ConsumedNonce? {
        let row = try row(
            "SELECT subject, claimed_event, event, decision_id, answer, expires_at FROM consumed_nonces WHERE mark = ?1",
            [.blob(mark)])
        return try row.map { row in
            ConsumedNonce(
                mark: mark, subject: try row.blob(0), claimedEvent: try row.text(1), event: try row.text(2),
                decisionID: try row.text(3), answer: try row.text(4), expiresAt: try row.integer(5))
        }
    }

    private func consume(_ nonce: ConsumedNonce) throws {
        try run(
            """
            INSERT INTO consumed_nonces (mark, subject, claimed_event, event, decision_id, answer, expires_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """,
            [
                .blob(nonce.mark), .blob(nonce.subject), .text(nonce.claimedEvent), .text(nonce.event), .text(nonce.decisionID),
                .text(nonce.answer), .integer(nonce.expiresAt),
            ])
    }

    /// The grant of an external issuer's subject, with an account where there is none. No user, no relay address.
    private func addExternalGrant(
        _ decisionWrite: DecisionWrite, issuer: String, subject: String, account: Int64?
    ) throws -> Int64? {
        // An app removed meanwhile takes its group along.
        guard try row("SELECT id FROM app_groups WHERE id = ?1 AND removed_from IS NULL", [.integer(decisionWrite.group)]) != nil
        else { return nil }
        let number: Int64
        if let account {
            number = account
        } else {
            let sub = Base32.characters(fromRandom: try SecureRandom.bytes(count: 32))
            let added = try row(
                "INSERT INTO accounts (team_id, sub, created_at) VALUES (?1, ?2, ?3) RETURNING id",
                [.integer(decisionWrite.team), .text(sub), .integer(decisionWrite.now)])
            guard let added else { return nil }
            number = try added.integer(0)
            try run(
                "INSERT INTO external_identities (team_id, issuer, subject, account_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                [
                    .integer(decisionWrite.team), .text(issuer), .text(subject), .integer(number), .integer(decisionWrite.now),
                ])
        }
        return try row(
            """
            INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
            VALUES (?1, ?2, 'authorized', ?3, ?3) ON CONFLICT (account_id, group_id) DO UPDATE SET account_id = excluded.account_id
            RETURNING id
            """, [.integer(number), .integer(decisionWrite.group), .integer(decisionWrite.now)])?.integer(0)
    }

    /// Consent given again after it was revoked: the status is delivered again, the earlier one is kept as the prior one, and the
    /// next question is a sign-up again. A check that was outstanding stays so. For whoever authorizes a revoked grant.
    func rejoin(grant: Int64, now: Int64) throws {
        let row = try row(
            """
            UPDATE grants SET state = 'authorized', revoked_at = NULL, last_authorized_at = ?2,
                prior_status = COALESCE(real_user_status, prior_status), real_user_status = NULL, first_asked_at = NULL
            WHERE id = ?1 AND state = 'revoked' RETURNING account_id
            """, [.integer(grant), .integer(now)])
        guard let row else { return }
        try count(DailyCounter(accountNumber: try row.integer(0), day: Day.number(now), kind: .rejoined, count: 1))
    }

    /// Whether an app's account is taken: by another grant, by another decision, or by a grant that was deleted.
    private func isBound(_ binding: AppAccountBinding, team: Int64, grant: Int64?) throws -> Bool {
        let row = try row(
            "SELECT grant_id, decision_id FROM upgraded_accounts WHERE team_id = ?1 AND app_account = ?2",
            [.integer(team), .blob(binding.mark)])
        guard let row else { return false }
        return try row.optionalInteger(0) == nil || row.optionalInteger(0) != grant || row.text(1) != binding.decisionID
    }

    /// Binds, and lets the grant have the decision and what was proved in it.
    private func bind(_ binding: AppAccountBinding, grant: Int64, _ decisionWrite: DecisionWrite) throws {
        try run(
            """
            INSERT INTO upgraded_accounts (team_id, app_account, grant_id, decision_id, bound_at) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (team_id, app_account) DO NOTHING
            """,
            [
                .integer(decisionWrite.team), .blob(binding.mark), .integer(grant), .text(binding.decisionID),
                .integer(decisionWrite.now),
            ])
        try run(
            "UPDATE decisions SET grant_id = ?2 WHERE decision_id = ?1 AND grant_id IS NULL",
            [.text(binding.decisionID), .integer(grant)])
        try run(
            "UPDATE checks SET grant_id = ?2 WHERE decision_id = ?1 AND grant_id IS NULL",
            [.text(binding.decisionID), .integer(grant)])
        if try row(
            "SELECT 1 FROM checks WHERE decision_id = ?1 AND passed_at IS NOT NULL LIMIT 1", [.text(binding.decisionID)]) != nil
        {
            try run("UPDATE grants SET signup_check = 'passed' WHERE id = ?1", [.integer(grant)])
        }
    }

    private func countSignUp(_ decisionWrite: DecisionWrite, _ history: GrantHistory?) throws {
        try run(
            """
            INSERT INTO app_signups (app_id, slice, count) SELECT id, ?2, 1 FROM apps WHERE id = ?1
            ON CONFLICT (app_id, slice) DO UPDATE SET count = app_signups.count + 1
            """, [.integer(decisionWrite.app), .integer(AppRates.slice(decisionWrite.now))])
        guard decisionWrite.isVerified, let history, let user = history.userNumber else { return }
        try run(
            """
            INSERT INTO verified_signups (velocity_index, team_id, user_id, day, at)
            SELECT i.velocity_index, ?2, ?3, ?4, ?5 FROM accounts a JOIN inboxes i ON i.id = a.target_inbox
            WHERE a.id = ?1 AND i.velocity_index IS NOT NULL
            ON CONFLICT (velocity_index, team_id, user_id, day) DO NOTHING
            """,
            [
                .integer(history.accountNumber), .integer(decisionWrite.team), .integer(user),
                .integer(Day.number(decisionWrite.now)), .integer(decisionWrite.now),
            ])
    }

    func noteSeen(_ grants: [Int64: Int64]) throws {
        for (grant, time) in grants {
            try run(
                "UPDATE grants SET last_seen_at = ?2 WHERE id = ?1 AND COALESCE(last_seen_at, 0) < ?2",
                [.integer(grant), .integer(time)])
        }
    }
}
