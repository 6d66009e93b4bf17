// Events that other issuers send about their accounts. Each counts once, and an older event never
// replaces a newer one.

import Database
import InternetMessage

/// A report of an issuer about one of its accounts. All checks of its signature are done.
package struct ExternalEvent: Sendable, Hashable {
    package let issuer: String
    package let jti: String
    package let subject: String
    /// `aud`: the client that it is about.
    package let clientID: String
    /// Nil for an unknown kind; `test` has no effect either.
    package let type: EventType?
    /// When it happened, milliseconds since 1970.
    package let happenedAt: Int64

    package init(
        issuer: String, jti: String, subject: String, clientID: String, type: EventType?,
        happenedAt: Int64
    ) {
        self.issuer = issuer
        self.jti = jti
        self.subject = subject
        self.clientID = clientID
        self.type = type
        self.happenedAt = happenedAt
    }
}

/// A report of a transmitter about one of its own accounts.
package struct ExternalRiskEvent: Sendable {
    /// The account or user that it is about.
    package enum Subject: Sendable, Hashable {
        /// The issuer's name for its account.
        case named(String)
        /// An address of the user of one of its accounts: a relay address of that account, or a
        /// confirmed inbox of that user.
        case address(InboxAddress)
    }

    package let issuer: String
    package let jti: String
    package let subject: Subject
    /// The app that it was sent for; nil for all of them.
    package let clientID: String?
    /// As policies read it.
    package let kind: String
    /// Seconds since 1970.
    package let happenedAt: Int64

    package init(
        issuer: String, jti: String, subject: Subject, clientID: String?, kind: String,
        happenedAt: Int64
    ) {
        (self.issuer, self.jti, self.subject) = (issuer, jti, subject)
        (self.clientID, self.kind, self.happenedAt) = (clientID, kind, happenedAt)
    }
}

/// The outcome of such an event. The response is the same for all outcomes, because the issuer need
/// not send any of them again.
package enum ExternalEventOutcome: String, Sendable, Hashable {
    /// It changed something, or confirmed it.
    case taken
    /// It was applied before.
    case repeated
    /// A later event of its kind, or a later authorization, was handled before it.
    case outdated
    /// This subject is unknown.
    case unknownSubject
    /// Postern does not use this kind of event.
    case unknownType
}

/// Applies events of external issuers.
package struct ExternalEventRepository: Sendable {
    /// How long a `jti` is kept, in seconds: longer than an event is accepted (7 days).
    private static let memory: Int64 = 9 * 86_400

    let accounts: AccountRepository
    let index: BlindIndex
    private var database: any Database { accounts.database }

    /// Applies an event. Email events set the known state of the issuer's own forwarding, never
    /// ours. `consent-revoked` ends the grant to the client's app group. `account-delete` deletes
    /// the account and leaves a tombstone.
    package func apply(
        _ event: ExternalEvent, _ change: Change
    ) throws(StoreFailure) -> ExternalEventOutcome {
        try accounts.events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let isNew =
                try connection.run(
                    """
                    INSERT INTO received_events (mark, received_at)
                    VALUES (\(accounts.marks.receivedEvent(issuer: event.issuer, jti: event.jti)), \(change.now))
                    ON CONFLICT (mark) DO NOTHING
                    """) > 0
            guard isNew else { return .repeated }
            let (team, group) = try connection.appGroup(clientID: event.clientID)
            let row = try connection.row(
                """
                SELECT x.account_id, COALESCE(x.email_event_at, -1) AS email_event_at,
                    COALESCE(x.consent_event_at, -1) AS consent_event_at,
                    (SELECT g.last_authorized_at FROM grants g
                        WHERE g.account_id = x.account_id AND \(SQL.filter("g.group_id")) = \(group.number)) AS authorized_at
                FROM external_identities x
                WHERE x.team_id = \(team.number) AND x.issuer = \(event.issuer) AND x.subject = \(event.subject)
                """)
            guard let row else { return .unknownSubject }
            let account: Int64 = try row["account_id"]
            switch event.type {
            case .emailDisabled, .emailEnabled:
                guard try event.happenedAt > row["email_event_at"] else { return .outdated }
                try forwarding(
                    connection, account, isOn: event.type == .emailEnabled, event, change)
            case .consentRevoked, .accountDelete:
                // The authorization time has only seconds: an event in
                // the same second counts as later.
                let authorizedAt: Int64? = try row["authorized_at"]
                guard try event.happenedAt > row["consent_event_at"],
                    event.happenedAt / 1000 >= authorizedAt ?? 0
                else {
                    return .outdated
                }
                try connection.run(
                    "UPDATE external_identities SET consent_event_at = \(event.happenedAt) WHERE account_id = \(account)"
                )
                if event.type == .accountDelete {
                    try accounts.recordTombstone(connection, account: account, now: change.now)
                    var rows = RemovalRepository.rows
                    try accounts.remove(
                        connection, tracker, account: account, rows: &rows, now: change.now)
                    try connection.audit(
                        change, "account.delete", "account:\(account)", "team:\(team.id)")
                } else {
                    try tracker.snapshot(.account(account))
                    _ = try connection.revoke(
                        account: account, group: group, at: event.happenedAt / 1000, change)
                }
            default: return .unknownType
            }
            return .taken
        }
    }

    /// Records a transmitter's report about its account, for policies; it has no other
    /// effect. If one person has accounts with several teams, the event is about all of
    /// them unless it names an app.
    package func note(
        _ event: ExternalRiskEvent, _ change: Change
    ) throws(StoreFailure) -> ExternalEventOutcome {
        try database.write(.durable) { connection throws(StoreFailure) in
            let isNew =
                try connection.run(
                    """
                    INSERT INTO received_events (mark, received_at)
                    VALUES (\(accounts.marks.receivedEvent(issuer: event.issuer, jti: event.jti)), \(change.now))
                    ON CONFLICT (mark) DO NOTHING
                    """) > 0
            guard isNew else { return .repeated }
            let team = try event.clientID.map { client throws(StoreFailure) in
                try connection.appGroup(clientID: client).team.number
            }
            let found: [Int64] = try connection.values(
                """
                SELECT x.account_id FROM external_identities x WHERE x.issuer = \(event.issuer) AND \(isMeant(event.subject))
                    AND \(team.map { "x.team_id = \($0)" } ?? "1 = 1" as SQL) ORDER BY x.account_id
                """)
            guard !found.isEmpty else { return .unknownSubject }
            // An event with a future time would stay the latest one forever.
            let time = min(event.happenedAt, change.now)
            for account in found {
                try connection.count(
                    DailyCounter(
                        accountNumber: account, day: Day.number(time), kind: .riskEvents, count: 1))
                try connection.run(
                    """
                    UPDATE external_identities SET risk_event = \(event.kind), risk_event_at = \(time)
                    WHERE account_id = \(account) AND COALESCE(risk_event_at, 0) <= \(time)
                    """)
            }
            return .taken
        }
    }

    /// Whether an event is about identity `x` of its issuer. An address names only accounts that
    /// signed in with this issuer: it says nothing about other accounts.
    private func isMeant(_ subject: ExternalRiskEvent.Subject) -> SQL {
        switch subject {
        case .named(let name): return "x.subject = \(name)"
        case .address(let address):
            let folded = address.revealed.folded
            let exact = index.search(address.revealed).exact
            return """
                x.account_id IN (
                    SELECT account_id FROM relay_addresses
                    WHERE local_part = \(folded.localPart) AND domain = \(folded.domain) AND is_current = 1
                    UNION SELECT a.id FROM accounts a JOIN inboxes i ON i.user_id = a.user_id
                    WHERE i.address_index IN (\(exact.0), \(exact.1)) AND i.verified_at IS NOT NULL)
                """
        }
    }

    private func forwarding(
        _ connection: any DatabaseConnection, _ account: Int64, isOn: Bool, _ event: ExternalEvent,
        _ change: Change
    ) throws(StoreFailure) {
        let was: Bool? = try connection.value(
            "SELECT forwarding_on FROM external_identities WHERE account_id = \(account)")
        try connection.run(
            """
            UPDATE external_identities SET forwarding_on = \(isOn), email_event_at = \(event.happenedAt)
            WHERE account_id = \(account)
            """)
        guard was != isOn else { return }
        try connection.count(
            DailyCounter(
                accountNumber: account, day: Day.number(change.now), kind: .forwardingToggled,
                count: 1))
    }

    /// Deletes records that are older than any event that would be accepted, at most `limit` at a
    /// time. Returns the number.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM received_events WHERE mark IN (SELECT mark FROM received_events
                    WHERE received_at <= \(now - Self.memory) LIMIT \(limit))
                """)
        }
    }
}
