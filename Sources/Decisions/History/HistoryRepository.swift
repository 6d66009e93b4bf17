// Reads the whole history of a grant: one statement on one snapshot.

import Accounts
import Database
import RiskPolicy
import SignIn

/// The data to read for a request.
package struct HistoryRequest: Sendable {
    /// The store's number of the requesting team; accounts of other teams are not found.
    package var team: Int64
    /// The store's number of the group of apps.
    package var group: Int64
    /// Nil: the request names no known subject.
    package var subject: GrantSubject?
    /// The app whose rates are read too.
    package var ratesOfApp: Int64?
    /// `DecisionMarks.appAccount` of an app's own account.
    package var appAccountMark: [UInt8]?
    /// The counts of the policy for the request; nil if it counts nothing.
    package var velocity: VelocityQuestion?
    /// Returns the class of an inbox's domain; nil if the policy does not read it.
    package var domainClass: (@Sendable (String) -> DomainClass)?
    /// Determines the request's event from the history that was found.
    package var event: @Sendable (GrantHistory?) -> PolicyEvent
    /// Seconds since 1970.
    package var now: Int64

    package init(
        team: Int64, group: Int64, subject: GrantSubject?, ratesOfApp: Int64?,
        appAccountMark: [UInt8]?,
        velocity: VelocityQuestion? = nil, domainClass: (@Sendable (String) -> DomainClass)? = nil,
        event: @escaping @Sendable (GrantHistory?) -> PolicyEvent, now: Int64
    ) {
        self.team = team
        self.group = group
        self.subject = subject
        self.ratesOfApp = ratesOfApp
        self.appAccountMark = appAccountMark
        self.velocity = velocity
        self.domainClass = domainClass
        self.event = event
        self.now = now
    }
}

/// The result of the read for a request, from one snapshot.
package struct QuestionHistory: Sendable {
    /// Nil if the account does not exist.
    package fileprivate(set) var history: GrantHistory?
    /// Nil if rates were not requested.
    package let rates: AppRates?
    /// Whether the app's own account was bound by an upgrade before.
    package let isAppAccountBound: Bool
    /// The request's tallies for the policy's counters, and the stored value of each.
    package var tallies: [VelocityTally] = []
    package var stored: [StoredVelocity] = []
}

/// Reads for decisions.
package struct HistoryRepository: Sendable {
    let database: any Database
    let sealer: Sealer

    private static let day: Int64 = 86_400

    /// All facts about the grant of a subject to a group of apps; nil if the account does not
    /// exist.
    /// - Parameters:
    ///   - team: the store's number of the requesting team; accounts of other teams are not found.
    ///   - now: seconds since 1970.
    package func history(
        team: Int64, group: Int64, subject: GrantSubject, now: Int64
    ) throws(StoreFailure) -> GrantHistory? {
        try database.read { connection throws(StoreFailure) in
            try connection.grantHistory(team: team, group: group, subject: subject, now: now)
        }
    }

    /// Reads all data that the decision needs, together with other requests that come at the same
    /// time.
    package func read(
        _ request: HistoryRequest, in group: GroupRead
    ) async throws(StoreFailure) -> QuestionHistory {
        try await group.run { connection throws(StoreFailure) in
            let row = try request.subject.flatMap { subject throws(StoreFailure) in
                try connection.row(
                    HistoryRepository.sql(
                        team: request.team, group: request.group, subject: subject, now: request.now
                    ))
            }
            var read = QuestionHistory(
                history: try row.map { row throws(StoreFailure) in
                    try connection.grantHistory(row, now: request.now)
                },
                rates: try request.ratesOfApp.map { row throws(StoreFailure) in
                    try connection.appRates(app: row, now: request.now)
                },
                isAppAccountBound: try request.appAccountMark.map { row throws(StoreFailure) in
                    try connection.isUpgraded(team: request.team, appAccount: row)
                } ?? false)
            var domain: String?
            if let domainClass = request.domainClass, let row, try row["inbox_id"] as Int64? != nil
            {
                domain = try self.sealer.inbox(row, user: row["inbox_user"]).revealed.domain
                read.history?.domainClass = domain.map(domainClass)
            }
            if let velocity = request.velocity {
                let isOneOwners = [.own, .disposable].contains(read.history?.domainClass)
                read.tallies = velocity.tallies(
                    request.event(read.history), inbox: read.history?.inboxMark,
                    domain: isOneOwners ? domain : nil)
                read.stored = try connection.storedVelocity(read.tallies)
            }
            return read
        }
    }

    // The longest statement, run for every decision: its texts are built once,
    // with numbered placeholders.

    static let ownAccount =
        "(SELECT o.id FROM accounts o WHERE o.sub = ?3 AND \(SQL.filter("o.team_id").text) = ?1)"
    static let namedExternal = """
        (SELECT x.account_id FROM external_identities x WHERE x.team_id = ?1 AND x.subject = ?3 ORDER BY x.issuer LIMIT 1)
        """
    static let externalAccount = """
        (SELECT x.account_id FROM external_identities x WHERE x.team_id = ?1 AND x.subject = ?3 AND x.issuer = ?10)
        """

    private static func counter(_ kind: CounterKind, since parameter: Int) -> String {
        """
        (SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM daily_counters c
            WHERE c.account_id = a.id AND c.day > ?\(parameter) AND c.kind = \(kind.rawValue))
        """
    }

    /// Whether a row of `checks` is more than a price that was paid.
    private static let isProof = "COALESCE(k.method, '') <> '\(CheckMethod.proofOfWork.rawValue)'"

    private static func lastPass(_ condition: String) -> String {
        "(SELECT MAX(k.passed_at) FROM checks k WHERE k.grant_id = g.id AND \(condition))"
    }

    private static func lastPass(of challenge: HostedChallenge) -> String {
        lastPass("k.challenge = '\(challenge.rawValue)' AND \(isProof)")
    }

    private static func select(_ account: String) -> String {
        """
        SELECT a.id, a.user_id, g.id AS grant_id, g.state, g.first_authorized_at, g.last_authorized_at, g.revoked_at, g.real_user_status,
            g.prior_status, g.signup_check, g.first_asked_at, g.last_seen_at, g.visit_at, g.earlier_seen_at,
            g.transferred_at,
            CASE WHEN e.account_id IS NULL THEN 0 ELSE 1 END AS is_external, e.forwarding_on AS external_forwarding_on,
            r.forwarding_on, i.id AS inbox_id, i.user_id AS inbox_user, i.address_key, i.address_sealed, i.velocity_index, i.verified_at, u.is_managed,
            \(counter(.bouncedPermanently, since: 5)) AS bounces_7d, \(counter(.replied, since: 6)) AS replies_30d,
            \(counter(.forwardingToggled, since: 5)) AS toggles_7d, \(counter(.rejoined, since: 6)) AS rejoins_30d,
            \(counter(.riskEvents, since: 6)) AS risk_events_30d, e.risk_event, e.risk_event_at,
            (SELECT COUNT(*) FROM checks k WHERE k.grant_id = g.id AND k.passed_at IS NULL
                AND (k.failed_at > ?4 OR (k.failed_at IS NULL AND k.initiated_at > ?8 AND k.initiated_at <= ?9))) AS failed_24h,
            (SELECT COUNT(*) FROM checks k WHERE k.grant_id = g.id AND k.passed_at > ?7 AND \(isProof)) AS passed_90d,
            (SELECT COUNT(*) FROM checks k WHERE k.grant_id = g.id AND k.passed_at > ?7 AND k.method IS NOT NULL AND \(isProof))
                AS observed_90d,
            CASE WHEN EXISTS (SELECT 1 FROM rule_snoozes z WHERE z.grant_id = g.id) THEN 1 ELSE 0 END AS has_snoozes,
            \(lastPass(of: .humanCheck)) AS human_check, \(lastPass(of: .emailCode)) AS email_code,
            \(lastPass(of: .reauthenticate)) AS reauthenticate,
            \(lastPass("k.method IS NOT NULL AND \(isProof)")) AS observed,
            \(lastPass("k.method = '\(CheckMethod.proofOfWork.rawValue)'")) AS proof_of_work,
            (SELECT COUNT(*) FROM verified_signups s WHERE s.velocity_index = i.velocity_index AND s.at > ?4) AS signups_24h,
            (SELECT COUNT(*) FROM verified_signups s WHERE s.velocity_index = i.velocity_index AND s.team_id = a.team_id
                AND s.user_id = a.user_id AND s.at > ?4) AS own_signups_24h,
            (SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM accounts b JOIN daily_counters c ON c.account_id = b.id
                WHERE b.user_id = a.user_id AND b.target_inbox = i.id
                AND c.day > ?5 AND c.kind = \(CounterKind.bouncedPermanently.rawValue)) AS inbox_bounces_7d,
            (SELECT CAST(COALESCE(SUM(d.deletions), 0) AS BIGINT) FROM tombstones d
                WHERE d.mark = i.tombstone_index AND d.day > ?6) AS deletions_30d,
            CASE WHEN g.id IS NULL AND EXISTS (SELECT 1 FROM account_transfers m JOIN app_transfers w ON w.id = m.transfer_id
                WHERE m.old_account = a.id AND w.group_id = ?2) THEN 1 ELSE 0 END AS is_transferred
        FROM accounts a
        LEFT JOIN grants g ON g.account_id = a.id AND \(SQL.filter("g.group_id").text) = ?2
        LEFT JOIN external_identities e ON e.account_id = a.id
        LEFT JOIN relay_addresses r ON r.account_id = a.id AND r.is_current = 1
        LEFT JOIN users u ON u.id = a.user_id
        LEFT JOIN inboxes i ON i.id = a.target_inbox
        WHERE a.id = \(account)
        """
    }

    fileprivate static let own = select(ownAccount)
    fileprivate static let external = select(externalAccount)
    fileprivate static let named = select("COALESCE(\(ownAccount), \(namedExternal))")

    fileprivate static func sql(team: Int64, group: Int64, subject: GrantSubject, now: Int64) -> SQL
    {
        let (text, sub, issuer): (String, String, [String]) =
            switch subject {
            case .own(let sub): (own, sub, [])
            case .named(let sub): (named, sub, [])
            case .external(let issuer, let subject): (external, subject, [issuer])
            }
        let today = Day.number(now)
        let values: [any SQLBindable] = [
            team, group, sub, now - day, today - 7, today - 30, now - 90 * day,
            now - day - CheckRecord.timeout,
            now - CheckRecord.timeout,
        ]
        return SQL(text, (values + issuer).map(\.sqlValue))
    }
}

extension DatabaseConnection {
    /// The history within a transaction: a decision write reads the basis of the decision again.
    func grantHistory(
        team: Int64, group: Int64, subject: GrantSubject, now: Int64
    ) throws(StoreFailure) -> GrantHistory? {
        try row(HistoryRepository.sql(team: team, group: group, subject: subject, now: now)).map {
            row throws(StoreFailure) in
            try grantHistory(row, now: now)
        }
    }

    fileprivate func grantHistory(_ row: SQLRow, now: Int64) throws(StoreFailure) -> GrantHistory {
        var history = try GrantHistory(row: row)
        // Few grants have a snooze.
        if let grant = history.grant?.number, try row["has_snoozes"] {
            history.snoozes = try rows(
                "SELECT policy_name, rule FROM rule_snoozes WHERE grant_id = \(grant) AND expires_at > \(now)"
            )
            .map { row throws(StoreFailure) in
                try SnoozedRule(policy: row["policy_name"], rule: row["rule"])
            }
        }
        return history
    }
}

extension GrantHistory {
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        accountNumber = try row["id"]
        userNumber = try row["user_id"]
        if let number: Int64 = try row["grant_id"] {
            let state: Grant.State = try row["state"]
            grant = try GrantFacts(
                number: number, isAuthorized: state == .authorized,
                firstAuthorizedAt: row["first_authorized_at"],
                lastAuthorizedAt: row["last_authorized_at"], revokedAt: row["revoked_at"],
                realUserStatus: row["real_user_status"], priorStatus: row["prior_status"],
                signUpCheck: row["signup_check"],
                firstAskedAt: row["first_asked_at"], lastSeenAt: row["last_seen_at"],
                visitAt: row["visit_at"], earlierSeenAt: row["earlier_seen_at"],
                transferredAt: row["transferred_at"])
        }
        isTransferred = try row["is_transferred"]
        isExternal = try row["is_external"] && userNumber == nil
        let (isRelaying, verifiedAt): (Bool?, Int64?) = try (
            row["forwarding_on"], row["verified_at"]
        )
        hasEmail = isExternal ? nil : isRelaying != nil && verifiedAt != nil
        isForwardingOn = isExternal ? try row["external_forwarding_on"] : isRelaying
        isManaged = try row["is_managed"]
        bounces7d = try row["bounces_7d"]
        userReplies30d = try row["replies_30d"]
        forwardingToggles7d = try row["toggles_7d"]
        rejoins30d = try row["rejoins_30d"]
        riskEvents30d = try row["risk_events_30d"]
        lastRiskEvent = riskEvents30d > 0 ? try row["risk_event"] : nil
        failedChecks24h = try row["failed_24h"]
        passedChecks90d = try row["passed_90d"]
        observedChecks90d = try row["observed_90d"]
        lastPasses = try LastPasses(
            humanCheck: row["human_check"], emailCode: row["email_code"],
            reauthenticate: row["reauthenticate"], observed: row["observed"],
            proofOfWork: row["proof_of_work"])
        if try row["inbox_id"] as Int64? != nil {
            inbox = try InboxFacts(
                signUps24h: row["signups_24h"], isOwnSignUpCounted: row["own_signups_24h"],
                deletions30d: row["deletions_30d"],
                bounces7d: row["inbox_bounces_7d"])
            inboxMark = try row["velocity_index"]
        }
    }
}
