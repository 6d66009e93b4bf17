// The only place where an account change becomes an event: all changes of forwarding, consent or
// existence go through it.

import Database
import Foundation
import MailCrypto
import Support

/// The accounts whose state a transaction is about to change.
package enum AccountScope: Sendable, Hashable {
    case account(Int64)
    /// All accounts of a user, by the store's number.
    case user(Int64)
    /// All accounts whose mail goes to an inbox.
    case inbox(Int64)
    /// An account that ends, or one of its consents with the app. Endpoints of apps that were
    /// removed before get this event, and no other.
    case ending(Int64)
}

/// Runs changes of accounts, and writes in the same transaction the events for the endpoints.
package struct AccountEvents: Sendable {
    package let database: any Database
    let signal: OutboxSignal

    /// Runs `body` in one durable transaction. `body` must call `tracker.snapshot` for an account
    /// **before** it changes the account. Afterwards the differences are written to the outbox, and
    /// the delivery is woken after the commit.
    /// - Parameter now: seconds since 1970.
    package func write<T>(
        at now: Int64,
        _ body: (_ connection: any DatabaseConnection, _ tracker: AccountChangeTracker)
            throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        let (value, isTold) = try database.write(.durable) { connection throws(StoreFailure) in
            let tracker = AccountChangeTracker(connection)
            let value = try body(connection, tracker)
            return (value, try tracker.emitEvents(at: EventMoment(now)))
        }
        if isTold { signal.raise() }
        return value
    }
}

/// When a change was made.
package struct EventMoment {
    /// Due at once, even if the clock of the delivering host is slow.
    package static let atOnce: Int64 = 0

    /// Since 1970, like all times in the store.
    let seconds: Int64
    /// Since 1970, as sent to endpoints.
    let milliseconds: Int64

    /// - Parameter seconds: since 1970. The system clock adds the milliseconds if
    ///   it shows the same time.
    package init(_ seconds: Int64) {
        let exact = Int64(Date().timeIntervalSince1970 * 1000)
        self.init(
            seconds,
            milliseconds: (seconds * 1000..<(seconds + 2) * 1000).contains(exact)
                ? exact : seconds * 1000)
    }

    private init(_ seconds: Int64, milliseconds: Int64) {
        (self.seconds, self.milliseconds) = (seconds, milliseconds)
    }

    /// Later than the last event, even if the clock was set back: receivers ignore an event that is
    /// older than the last one they got.
    func after(_ last: Int64) -> EventMoment {
        EventMoment(seconds, milliseconds: max(milliseconds, last + 1))
    }
}

/// Compares what endpoints may know about accounts before and after a change. For one transaction.
package final class AccountChangeTracker {
    /// An event that could not be delivered for this many seconds is given up.
    package static let timeout: Int64 = 3 * 86_400
    /// Octets of a `jti`: 160 bits.
    private static let jtiLength = 32

    /// The facts about one account that one endpoint may know.
    private struct Known: Hashable {
        let account: Int64
        let endpoint: Int64
        let sub: String
        let isAuthorized: Bool
        /// Nil if the team does not have a relay address.
        let isReachable: Bool?
        /// Whether the user's mail waits because the inbox refuses too much.
        let isWaiting: Bool
        let email: String?
        let wanted: WantedEvents

        struct Key: Hashable {
            let account: Int64
            let endpoint: Int64
        }
        var key: Key { Key(account: account, endpoint: endpoint) }
    }

    /// A notice to endpoints although nothing about the account differs.
    private struct Notice {
        let type: EventType
        let account: Int64
        let endpoint: Int64
        let sub: String
        var email: String?
        var decision: String?
        var detail: String?
    }

    private let connection: any DatabaseConnection
    private var notices: [Notice] = []
    private var scopes: [AccountScope] = []
    private var known: Set<AccountScope> = []
    private var before: [Known] = []
    private var seen: Set<Known.Key> = []
    /// The time of each account's last event; the account may be deleted by the end.
    private var lastTimes: [Int64: Int64] = [:]

    init(_ connection: any DatabaseConnection) { self.connection = connection }

    /// Records the current state of the scope before its change. A repetition for the same scope
    /// changes nothing.
    package func snapshot(_ scope: AccountScope) throws(StoreFailure) {
        guard known.insert(scope).inserted else { return }
        scopes.append(scope)
        for known in try read(scope) where seen.insert(known.key).inserted { before.append(known) }
    }

    /// Notes that an account's user objects to a decision about a group of apps. If the apps have
    /// moved to another team, no endpoint is notified, because that team does not know the
    /// decision.
    package func note(
        objectionOf account: Int64, group: Int64, team: Int64, decision: String
    ) throws(StoreFailure) {
        let rows = try connection.rows(
            """
            SELECT e.id, a.sub, a.event_time, e.dialect, s.types FROM accounts a
            JOIN app_groups p ON p.id = \(group) AND p.team_id = a.team_id AND p.team_id = \(team) AND p.removed_from IS NULL
            \(Self.endpoints(of: "p.id")) WHERE a.id = \(account) AND \(Self.isHeard)
            """)
        for row in rows where try WantedEvents(row: row).contains(.checkObjected) {
            notices.append(
                try Notice(
                    type: .checkObjected, account: account, endpoint: row["id"], sub: row["sub"],
                    decision: decision))
            lastTimes[account] = try row["event_time"]
        }
    }

    /// Notes that an account's user complained about a message. Every endpoint of apps that the
    /// user still uses is notified, because the app that sent the message is not known.
    package func note(complaintOf account: Int64) throws(StoreFailure) {
        try note(.spamComplaint, of: .account(account))
    }

    /// Notes an event although nothing about the account differs. Every endpoint of apps that the
    /// user still uses is notified if it wants this type.
    /// - Parameters:
    ///   - email: the relay address that the event is about; nil if it is about none.
    ///   - detail: as in `outbox.detail` for this type.
    package func note(
        _ type: EventType, of scope: AccountScope, email: String? = nil, detail: String? = nil
    ) throws(StoreFailure) {
        for known in try read(scope) where known.isAuthorized && known.wanted.contains(type) {
            notices.append(
                Notice(
                    type: type, account: known.account, endpoint: known.endpoint, sub: known.sub,
                    email: email, detail: detail))
        }
    }

    /// Writes the events for the differences between before and now. Returns whether any were
    /// written.
    func emitEvents(at moment: EventMoment) throws(StoreFailure) -> Bool {
        guard !before.isEmpty || !notices.isEmpty else { return false }
        var after: [Known.Key: Known] = [:]
        for scope in scopes {
            for known in try read(scope) { after[known.key] = known }
        }
        // One change has one time for all endpoints.
        var told: [Int64: EventMoment] = [:]
        // One `txn` for one change of one account. If two accounts had the same one, teams would
        // learn that both belong to one user.
        var transactions: [Int64: String] = [:]
        for account in Set(before.map(\.account) + notices.map(\.account)) {
            transactions[account] = try Self.jti()
        }
        for was in before {
            for change in try changes(was, after[was.key]) where was.wanted.contains(change.type) {
                let moment = moment.after(lastTimes[was.account] ?? 0)
                try connection.post(
                    change.type, endpoint: was.endpoint, account: was.account, sub: was.sub,
                    email: change.email,
                    detail: change.former, jti: try Self.jti(), txn: transactions[was.account],
                    at: moment)
                told[was.account] = moment
            }
        }
        for notice in notices {
            let moment = moment.after(lastTimes[notice.account] ?? 0)
            try connection.post(
                notice.type, endpoint: notice.endpoint, account: notice.account, sub: notice.sub,
                email: notice.email,
                decision: notice.decision, detail: notice.detail, jti: try Self.jti(),
                txn: transactions[notice.account],
                at: moment)
            told[notice.account] = moment
        }
        for (account, moment) in told.sorted(by: { $0.key < $1.key }) {
            try connection.run(
                "UPDATE accounts SET event_time = \(moment.milliseconds) WHERE id = \(account)")
        }
        return !told.isEmpty
    }

    private static func jti() throws(StoreFailure) -> String {
        Base32.characters(fromRandom: try SecureRandom.octets(jtiLength))
    }

    /// A difference; differences are reported in order.
    private struct Difference {
        let type: EventType
        let email: String?
        /// The previous address, if it changed.
        var former: String?
    }

    private func changes(_ was: Known, _ now: Known?) throws(StoreFailure) -> [Difference] {
        guard let now else {
            // The row of a removed account may still exist, in a removed team.
            let account = try connection.row(
                """
                SELECT a.id FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                WHERE a.id = \(was.account)
                """)
            if account == nil { return [Difference(type: .accountDelete, email: nil)] }
            return was.isAuthorized ? [Difference(type: .consentRevoked, email: nil)] : []
        }
        guard was.isAuthorized else { return [] }
        guard now.isAuthorized else { return [Difference(type: .consentRevoked, email: nil)] }
        guard let wasReachable = was.isReachable, let isReachable = now.isReachable else {
            return []
        }
        var changes: [Difference] = []
        if was.wanted.isStream, let email = now.email, email != was.email {
            let former =
                if let email = was.email { email as String? } else { try former(of: was.account) }
            if let former {
                changes.append(Difference(type: .identifierChanged, email: email, former: former))
            }
        }
        if wasReachable != isReachable || isReachable && was.email != now.email {
            changes.append(
                isReachable
                    ? Difference(type: .emailEnabled, email: now.email)
                    : Difference(type: .emailDisabled, email: was.email))
        }
        // While forwarding is off, no mail waits and none is resumed.
        if was.isWaiting != now.isWaiting, isReachable {
            changes.append(
                Difference(type: now.isWaiting ? .inboxSuspended : .inboxResumed, email: nil))
        }
        return changes
    }

    /// The last address of an account that has none now.
    private func former(of account: Int64) throws(StoreFailure) -> String? {
        let row = try connection.row(
            """
            SELECT local_part, domain FROM relay_addresses WHERE account_id = \(account) AND is_current = 0
            ORDER BY ordinal DESC LIMIT 1
            """)
        return try row.map { row throws(StoreFailure) in
            "\(try row["local_part"] as String)@\(try row["domain"] as String)"
        }
    }

    /// Joins the endpoint of a group and its stream, as `e` and `s`.
    private static func endpoints(of group: SQL) -> SQL {
        """
        JOIN event_endpoints e ON (e.group_id = \(group) OR e.stream_group = \(group))
        LEFT JOIN event_streams s ON s.endpoint_id = e.id
        """
    }

    /// Whether an endpoint is notified about account `a`. It is not if its stream is disabled, or
    /// if the subject was removed from the stream.
    private static let isHeard: SQL = """
        (s.endpoint_id IS NULL OR s.status <> 'disabled' AND NOT EXISTS (
            SELECT 1 FROM stream_exclusions x WHERE x.account_id = a.id AND x.endpoint_id = e.id))
        """

    /// Accounts of external issuers have no relay address here, so no endpoint is notified about
    /// them. During a transfer the apps and their endpoint already belong to the new team. That
    /// endpoint is not notified about accounts that are still the old team's.
    private static func select(_ isTold: SQL) -> SQL {
        """
        SELECT a.id, e.id AS endpoint_id, a.sub, g.state, a.email_kind,
            CASE WHEN c.forwarding_on = 1 AND i.verified_at IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM user_freezes f WHERE f.user_id = a.user_id) THEN 1 ELSE 0 END AS is_reachable,
            CASE WHEN i.suspended_at IS NOT NULL THEN 1 ELSE 0 END AS is_suspended, c.local_part, c.domain, a.event_time,
            e.dialect, s.types
        FROM accounts a
        JOIN grants g ON g.account_id = a.id
        JOIN app_groups p ON p.id = \(SQL.filter("g.group_id")) AND \(isTold)
        \(endpoints(of: "g.group_id"))
        LEFT JOIN relay_addresses c ON c.account_id = a.id AND c.is_current = 1
        LEFT JOIN inboxes i ON i.id = a.target_inbox
        WHERE (c.account_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM external_identities x WHERE x.account_id = a.id))
            AND \(isHeard)
        """
    }
    private static let ofApps = select("p.team_id = a.team_id AND p.removed_from IS NULL")
    private static let ofRemovedAppsToo = select("COALESCE(p.removed_from, p.team_id) = a.team_id")

    private func read(_ scope: AccountScope) throws(StoreFailure) -> [Known] {
        let condition: SQL =
            switch scope {
            case .account(let account): "\(Self.ofApps) AND a.id = \(account)"
            case .ending(let account): "\(Self.ofRemovedAppsToo) AND a.id = \(account)"
            case .user(let user): "\(Self.ofApps) AND a.user_id = \(user)"
            case .inbox(let inbox):
                "\(Self.ofApps) AND a.user_id = (SELECT user_id FROM inboxes WHERE id = \(inbox)) AND a.target_inbox = \(inbox)"
            }
        return try connection.rows("\(condition) ORDER BY a.id, g.id, e.id").map {
            row throws(StoreFailure) in
            let (account, state, kind): (Int64, Grant.State, EmailKind) = try (
                row["id"], row["state"], row["email_kind"]
            )
            let (local, domain): (String?, String?) = try (row["local_part"], row["domain"])
            lastTimes[account] = try row["event_time"]
            let (isReachable, isSuspended): (Bool, Bool) = try (
                row["is_reachable"], row["is_suspended"]
            )
            return try Known(
                account: account, endpoint: row["endpoint_id"], sub: row["sub"],
                isAuthorized: state == .authorized,
                isReachable: kind == .privateRelay ? isReachable : nil,
                isWaiting: isReachable && isSuspended,
                email: local.map { "\($0)@\(domain ?? "")" }, wanted: WantedEvents(row: row))
        }
    }
}

/// The types of events that an endpoint gets.
package struct WantedEvents: Sendable, Hashable {
    package let isStream: Bool
    /// Nil for all.
    private let types: Set<EventType>?

    /// From the columns `dialect` and `types`.
    package init(row: SQLRow) throws(StoreFailure) {
        let (dialect, types): (EventDialect, String?) = try (row["dialect"], row["types"])
        isStream = dialect == .sharedSignals
        self.types =
            isStream
            ? types.map {
                Set($0.split(separator: " ").compactMap { EventType(rawValue: String($0)) })
            } : EventType.notifications
    }

    package func contains(_ type: EventType) -> Bool { types?.contains(type) ?? true }
}

extension DatabaseConnection {
    /// Puts an event into the outbox.
    /// - Parameters:
    ///   - account: 0 for an event about the endpoint itself.
    ///   - email, decision, detail: the values that the type needs.
    ///   - txn: the same in all events of one change (RFC 8417 section 2.2).
    package func post(
        _ type: EventType, endpoint: Int64, account: Int64, sub: String, email: String?,
        decision: String? = nil,
        detail: String? = nil, jti: String, txn: String? = nil, at moment: EventMoment
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO outbox
                (jti, endpoint_id, account_id, type, sub, email, decision_id, detail, txn, event_time, created_at, state, park_at,
                next_attempt_at)
            VALUES (\(jti), \(endpoint), \(account), \(type), \(sub), \(email), \(decision), \(detail), \(txn),
                \(moment.milliseconds), \(moment.seconds), 'pending', \(moment.seconds + AccountChangeTracker.timeout),
                \(EventMoment.atOnce))
            """)
    }
}
