// Writes the changes of a request in one transaction: nonce, first status, pending check, sign-up
// counts and the log.

import Accounts
import Database
import MailCrypto
import Support

/// Applies decision writes and manages nonces.
package struct DecisionWriteRepository: Sendable {
    let database: any Database

    /// Applies one decision write, durably.
    package func apply(_ decisionWrite: DecisionWrite) throws(StoreFailure) -> DecisionWriteResult {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.apply(decisionWrite)
        }
    }

    /// Applies one decision write, durably, together with others that come at the same time.
    package func apply(
        _ decisionWrite: DecisionWrite, in group: GroupCommit
    ) async throws(StoreFailure) -> DecisionWriteResult {
        try await group.run { connection throws(StoreFailure) in try connection.apply(decisionWrite)
        }
    }

    /// The earlier use of a nonce; nil for a new one.
    package func consumedNonce(_ mark: [UInt8]) throws(StoreFailure) -> ConsumedNonce? {
        try database.read { connection throws(StoreFailure) in try connection.consumedNonce(mark) }
    }

    /// Records the last requests about grants; a time before the stored one changes nothing.
    package func noteSeen(_ grants: [Int64: Int64]) throws(StoreFailure) {
        guard !grants.isEmpty else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.noteSeen(grants)
        }
    }

    /// Deletes expired nonces, at most `limit`; returns how many.
    package func deleteExpiredNonces(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM consumed_nonces WHERE mark IN
                    (SELECT mark FROM consumed_nonces WHERE expires_at <= \(now) ORDER BY expires_at LIMIT \(limit))
                """)
        }
    }

    /// Records whether an external issuer forwards mail of its own relay address for the subject,
    /// in one team.
    package func noteExternalForwarding(
        issuer: String, subject: String, team: Int64, isOn: Bool
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE external_identities SET forwarding_on = \(isOn)
                WHERE team_id = \(team) AND subject = \(subject) AND issuer = \(issuer)
                """)
        }
    }
}

extension DatabaseConnection {
    /// Applies a decision write within a transaction.
    func apply(_ decisionWrite: DecisionWrite) throws(StoreFailure) -> DecisionWriteResult {
        if let nonce = decisionWrite.nonce, let consumed = try consumedNonce(nonce.mark) {
            return .nonceConsumed(consumed)
        }
        var history: GrantHistory?
        if let subject = decisionWrite.subject {
            history = try grantHistory(
                team: decisionWrite.team, group: decisionWrite.group, subject: subject,
                now: decisionWrite.now)
            if let expected = decisionWrite.expected, expected != GrantStamp(history) {
                return .changed
            }
        }
        if let binding = decisionWrite.binding,
            try isBound(binding, team: decisionWrite.team, grant: history?.grant?.number)
        {
            return .boundAlready
        }
        if let nonce = decisionWrite.nonce { try consume(nonce) }
        var grant = history?.grant?.number
        if grant == nil, decisionWrite.isVerified,
            case .external(let issuer, let subject) = decisionWrite.subject
        {
            grant = try addExternalGrant(
                decisionWrite, issuer: issuer, subject: subject, account: history?.accountNumber)
        }
        if let known = grant, decisionWrite.isReturn {
            if try isLive(group: decisionWrite.group) {
                try rejoin(grant: known, now: decisionWrite.now)
            } else {
                grant = nil
            }
        }
        if let grant {
            // A user who must pass a check was not let through yet: only a pass or the next request
            // counts as seen.
            let seen: SQL =
                decisionWrite.record?.isAsked == true ? "" : "\(Self.seen(at: decisionWrite.now)),"
            try run(
                """
                UPDATE grants SET real_user_status = COALESCE(real_user_status, \(decisionWrite.realUserStatus)),
                    first_asked_at = COALESCE(first_asked_at, \(decisionWrite.now)), \(seen)
                    signup_check = CASE WHEN \(decisionWrite.makesPending) = 1 THEN 'pending' ELSE signup_check END
                WHERE id = \(grant)
                """)
            if decisionWrite.isSignUp { try countSignUp(decisionWrite, history) }
        }
        if var record = decisionWrite.record {
            record.grantNumber = grant
            try insert(record)
        }
        if let binding = decisionWrite.binding, let grant {
            try bind(binding, grant: grant, decisionWrite)
        }
        return .written(grant: grant)
    }

    func consumedNonce(_ mark: [UInt8]) throws(StoreFailure) -> ConsumedNonce? {
        let row = try row(
            "SELECT subject, claimed_event, event, decision_id, answer, expires_at FROM consumed_nonces WHERE mark = \(mark)"
        )
        return try row.map { row throws(StoreFailure) in
            try ConsumedNonce(
                mark: mark, subject: row["subject"], claimedEvent: row["claimed_event"],
                event: row["event"],
                decisionID: row["decision_id"], answer: row["answer"], expiresAt: row["expires_at"])
        }
    }

    private func consume(_ nonce: ConsumedNonce) throws(StoreFailure) {
        try run(
            """
            INSERT INTO consumed_nonces (mark, subject, claimed_event, event, decision_id, answer, expires_at)
            VALUES (\(nonce.mark), \(nonce.subject), \(nonce.claimedEvent), \(nonce.event), \(nonce.decisionID),
                \(nonce.answer), \(nonce.expiresAt))
            """)
    }

    /// A group is removed together with its app.
    private func isLive(group: Int64) throws(StoreFailure) -> Bool {
        try row("SELECT id FROM app_groups WHERE id = \(group) AND removed_from IS NULL") != nil
    }

    /// The grant of an external issuer's subject; creates the account if there is none. It has no
    /// user and no relay address.
    private func addExternalGrant(
        _ decisionWrite: DecisionWrite, issuer: String, subject: String, account: Int64?
    ) throws(StoreFailure) -> Int64? {
        guard try isLive(group: decisionWrite.group) else { return nil }
        let number: Int64
        if let account {
            number = account
        } else {
            let sub = Base32.characters(fromRandom: try SecureRandom.octets(32))
            number = try inserted(
                """
                INSERT INTO accounts (team_id, sub, created_at) VALUES (\(decisionWrite.team), \(sub), \(decisionWrite.now))
                RETURNING id
                """)
            try run(
                """
                INSERT INTO external_identities (team_id, issuer, subject, account_id, created_at)
                VALUES (\(decisionWrite.team), \(issuer), \(subject), \(number), \(decisionWrite.now))
                """)
        }
        return try value(
            """
            INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
            VALUES (\(number), \(decisionWrite.group), 'authorized', \(decisionWrite.now), \(decisionWrite.now))
            ON CONFLICT (account_id, group_id) DO UPDATE SET account_id = excluded.account_id
            RETURNING id
            """)
    }

    /// Whether an app's account is already bound: to another grant, by another
    /// decision, or to a deleted grant.
    private func isBound(
        _ binding: AppAccountBinding, team: Int64, grant: Int64?
    ) throws(StoreFailure) -> Bool {
        let row = try row(
            "SELECT grant_id, decision_id FROM upgraded_accounts WHERE team_id = \(team) AND app_account = \(binding.mark)"
        )
        guard let row else { return false }
        let (owner, decision): (Int64?, String) = try (row["grant_id"], row["decision_id"])
        return owner == nil || owner != grant || decision != binding.decisionID
    }

    /// Binds the account, and links the decision and its proof to the grant.
    private func bind(
        _ binding: AppAccountBinding, grant: Int64, _ decisionWrite: DecisionWrite
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO upgraded_accounts (team_id, app_account, grant_id, decision_id)
            VALUES (\(decisionWrite.team), \(binding.mark), \(grant), \(binding.decisionID))
            ON CONFLICT (team_id, app_account) DO NOTHING
            """)
        try run(
            "UPDATE decisions SET grant_id = \(grant) WHERE decision_id = \(binding.decisionID) AND grant_id IS NULL"
        )
        try run(
            "UPDATE checks SET grant_id = \(grant) WHERE decision_id = \(binding.decisionID) AND grant_id IS NULL"
        )
        if try row(
            "SELECT 1 FROM checks WHERE decision_id = \(binding.decisionID) AND passed_at IS NOT NULL LIMIT 1"
        ) != nil {
            try run("UPDATE grants SET signup_check = 'passed' WHERE id = \(grant)")
        }
    }

    private func countSignUp(
        _ decisionWrite: DecisionWrite, _ history: GrantHistory?
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO app_signups (app_id, slice, count)
            SELECT id, \(AppRates.slice(decisionWrite.now)), 1 FROM apps WHERE id = \(decisionWrite.app)
            ON CONFLICT (app_id, slice) DO UPDATE SET count = app_signups.count + 1
            """)
        guard decisionWrite.isVerified, let history, let user = history.userNumber else { return }
        try run(
            """
            INSERT INTO verified_signups (velocity_index, team_id, user_id, day, at)
            SELECT i.velocity_index, \(decisionWrite.team), \(user), \(Day.number(decisionWrite.now)), \(decisionWrite.now)
            FROM accounts a JOIN inboxes i ON i.id = a.target_inbox
            WHERE a.id = \(history.accountNumber)
            ON CONFLICT (velocity_index, team_id, user_id, day) DO NOTHING
            """)
    }

    func noteSeen(_ grants: [Int64: Int64]) throws(StoreFailure) {
        for (grant, time) in grants {
            try run(
                "UPDATE grants SET \(Self.seen(at: time)) WHERE id = \(grant) AND COALESCE(last_seen_at, 0) < \(time)"
            )
        }
    }
}
