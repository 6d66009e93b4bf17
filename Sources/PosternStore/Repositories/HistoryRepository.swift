// Reads a grant's whole history: one statement on one snapshot, however much there is to know.

/// What must be read for a question.
package struct HistoryRequest: Sendable {
    /// The store's number of the team asking; another team's accounts are not found.
    package var team: Int64
    /// The store's number of the group of apps.
    package var group: Int64
    /// Nil: no one known is asked about.
    package var subject: GrantSubject?
    /// The app whose rates are wanted too.
    package var ratesOfApp: Int64?
    /// `DecisionMarks.appAccount` of an app's own account.
    package var appAccountMark: [UInt8]?
    /// Seconds since 1970.
    package var now: Int64

    package init(team: Int64, group: Int64, subject: GrantSubject?, ratesOfApp: Int64?, appAccountMark: [UInt8]?, now: Int64) {
        self.team = team
        self.group = group
        self.subject = subject
        self.ratesOfApp = ratesOfApp
        self.appAccountMark = appAccountMark
        self.now = now
    }
}

/// What was read for a question, on one snapshot.
package struct QuestionHistory: Sendable {
    /// Nil where there is no such account.
    package let history: GrantHistory?
    /// Nil where they were not asked for.
    package let rates: AppRates?
    /// Whether the app's own account was bound by an upgrade before.
    package let isAppAccountBound: Bool
}

/// Reads for decisions.
package struct HistoryRepository: Sendable {
    let database: any Database

    private static let day: Int64 = 86_400

    /// Everything about the grant of a subject to a group of apps; nil where there is no such account.
    /// - Parameters:
    ///   - team: the store's number of the team asking; another team's accounts are not found.
    ///   - now: seconds since 1970.
    package func history(team: Int64, group: Int64, subject: GrantSubject, now: Int64) throws -> GrantHistory? {
        try database.read { try $0.grantHistory(team: team, group: group, subject: subject, now: now) }
    }

    /// Everything that a question is decided on, together with others that come at the same time.
    package func read(_ request: HistoryRequest, in group: GroupRead) async throws -> QuestionHistory {
        try await group.run { connection in
            QuestionHistory(
                history: try request.subject.flatMap {
                    try connection.grantHistory(team: request.team, group: request.group, subject: $0, now: request.now)
                },
                rates: try request.ratesOfApp.map { try connection.appRates(app: $0, now: request.now) },
                isAppAccountBound: try request.appAccountMark.map {
                    try connection.isUpgraded(team: request.team, appAccount: $0)
                } ?? false)
        }
    }

    static let ownAccount = "(SELECT o.id FROM accounts o WHERE o.sub = ?3 AND o.team_id = ?1)"
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

    private static func lastPass(_ challenge: String) -> String {
        "(SELECT MAX(k.passed_at) FROM checks k WHERE k.grant_id = g.id AND k.challenge = '\(challenge)')"
    }

    private static func select(_ account: String) -> String {
        """
        SELECT a.id, a.user_id, g.id, g.state, g.first_authorized_at, g.last_authorized_at, g.revoked_at, g.real_user_status,
            g.prior_status, g.signup_check, g.first_asked_at, g.last_seen_at, g.transferred_at,
            CASE WHEN e.account_id IS NULL THEN 0 ELSE 1 END, e.forwarding_on, r.forwarding_on, i.id, i.verified_at,
            u.is_managed,
            \(counter(.bouncedPermanently, since: 5)), \(counter(.replied, since: 6)),
            \(counter(.forwardingToggled, since: 5)), \(counter(.rejoined, since: 6)),
            (SELECT COUNT(*) FROM checks k WHERE k.grant_id = g.id AND k.passed_at IS NULL
                AND (k.failed_at > ?4 OR (k.failed_at IS NULL AND k.initiated_at > ?8 AND k.initiated_at <= ?9))),
            (SELECT COUNT(*) FROM checks k WHERE k.grant_id = g.id AND k.passed_at > ?7),
            \(lastPass("human_check")), \(lastPass("email_code")), \(lastPass("reauthenticate")),
            (SELECT COUNT(*) FROM verified_signups s WHERE s.velocity_index = i.velocity_index AND s.at > ?4),
            (SELECT COUNT(*) FROM verified_signups s WHERE s.velocity_index = i.velocity_index AND s.team_id = a.team_id
                AND s.user_id = a.user_id AND s.at > ?4),
            (SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM accounts b JOIN daily_counters c ON c.account_id = b.id
                WHERE b.user_id = a.user_id AND b.target_inbox = i.id
                AND c.day > ?5 AND c.kind = \(CounterKind.bouncedPermanently.rawValue)),
            (SELECT CAST(COALESCE(SUM(d.deletions), 0) AS BIGINT) FROM tombstones d
                WHERE d.mark = i.tombstone_index AND d.day > ?6),
            CASE WHEN g.id IS NULL AND EXISTS (SELECT 1 FROM account_transfers m JOIN app_transfers w ON w.id = m.transfer_id
                WHERE m.old_account = a.id AND w.group_id = ?2) THEN 1 ELSE 0 END
        FROM accounts a
        LEFT JOIN grants g ON g.account_id = a.id AND g.group_id = ?2
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

    fileprivate static func arguments(team: Int64, group: Int64, subject: GrantSubject, now: Int64) -> [SQLValue] {
        let today = Day.number(now)
        var arguments: [SQLValue] = [.integer(team), .integer(group)]
        switch subject {
        case .own(let sub), .named(let sub): arguments.append(.text(sub))
        case .external(_, let subject): arguments.append(.text(subject))
        }
        arguments += [
            .integer(now - day), .integer(today - 7), .integer(today - 30), .integer(now - 90 * day),
            .integer(now - day - CheckRecord.timeout), .integer(now - CheckRecord.timeout),
        ]
        if case .external(let issuer, _) = subject { arguments.append(.text(issuer)) }
        return arguments
    }
}

extension DatabaseConnection {
    /// The history within a transaction: settling reads again what a decision was made on.
    func grantHistory(team: Int64, group: Int64, subject: GrantSubject, now: Int64) throws -> GrantHistory? {
        let sql =
            switch subject {
            case .own: HistoryRepository.own
            case .external: HistoryRepository.external
            case .named: HistoryRepository.named
            }
        let arguments = HistoryRepository.arguments(team: team, group: group, subject: subject, now: now)
        return try row(sql, arguments).map(GrantHistory.init(row:))
    }
}

extension GrantHistory {
    fileprivate init(row: SQLRow) throws {
        accountNumber = try row.integer(0)
        userNumber = try row.optionalInteger(1)
        if let number = try row.optionalInteger(2) {
            grant = GrantFacts(
                number: number, isAuthorized: try row.text(3) == "authorized", firstAuthorizedAt: try row.integer(4),
                lastAuthorizedAt: try row.integer(5), revokedAt: try row.optionalInteger(6),
                realUserStatus: try row.optionalInteger(7).map(Int.init), priorStatus: try row.optionalInteger(8).map(Int.init),
                signUpCheck: SignUpCheck(rawValue: try row.text(9)) ?? .none, firstAskedAt: try row.optionalInteger(10),
                lastSeenAt: try row.optionalInteger(11), transferredAt: try row.optionalInteger(12))
        }
        isTransferred = try row.bool(32)
        isExternal = try row.bool(13) && userNumber == nil
        hasEmail = isExternal ? nil : !row.isNull(15) && !row.isNull(17)
        isForwardingOn = try row.optionalInteger(isExternal ? 14 : 15).map { $0 != 0 }
        isManaged = try row.optionalInteger(18).map { $0 != 0 }
        bounces7d = try row.integer(19)
        userReplies30d = try row.integer(20)
        forwardingToggles7d = try row.integer(21)
        rejoins30d = try row.integer(22)
        failedChecks24h = try row.integer(23)
        passedChecks90d = try row.integer(24)
        lastPasses = LastPasses(
            humanCheck: try row.optionalInteger(25), emailCode: try row.optionalInteger(26),
            reauthenticate: try row.optionalInteger(27))
        if !row.isNull(16) {
            inbox = InboxFacts(
                signUps24h: try row.integer(28), isOwnSignUpCounted: try row.bool(29), deletions30d: try row.integer(31),
                bounces7d: try row.integer(30))
        }
    }
}
