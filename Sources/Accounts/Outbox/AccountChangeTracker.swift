// The one place where a change of an account becomes an event: whatever changes forwarding, consent or existence goes through it.

import Database
import Foundation
import MailCrypto
import Support

/// Whose state a transaction is about to change.
package enum AccountScope: Sendable, Hashable {
    case account(Int64)
    /// All accounts of a user, by the store's number.
    case user(Int64)
    /// An account that ends, or a consent of it with its app: endpoints of what was removed before are told of it too, and of
    /// nothing else.
    case ending(Int64)
}

/// Runs changes of accounts, and writes in the same transaction what the endpoints must be notified of them.
package struct AccountEvents: Sendable {
    package let database: any Database
    let signal: OutboxSignal

    /// Runs `body` in one durable transaction. It names what it is going to change with `tracker.snapshot` **before** it changes
    /// it; what differs afterwards is written to the outbox, and the delivery woken once that is committed.
    /// - Parameter now: seconds since 1970.
    package func write<T>(
        at now: Int64, _ body: (_ connection: any DatabaseConnection, _ tracker: AccountChangeTracker) throws(StoreFailure) -> T
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
    /// When a new event is due: no clock is asked, as the one that delivers has another.
    package static let atOnce: Int64 = 0

    /// Since 1970, as all times of the store.
    let seconds: Int64
    /// Since 1970, as endpoints get it.
    let milliseconds: Int64

    /// - Parameter seconds: since 1970. What is below a second the system's clock adds, where it has the same time.
    package init(_ seconds: Int64) {
        let exact = Int64(Date().timeIntervalSince1970 * 1000)
        self.init(seconds, milliseconds: (seconds * 1000..<(seconds + 2) * 1000).contains(exact) ? exact : seconds * 1000)
    }

    private init(_ seconds: Int64, milliseconds: Int64) {
        (self.seconds, self.milliseconds) = (seconds, milliseconds)
    }

    /// Later than what was told before, whatever the clocks say: receivers leave alone what is older than what they know.
    func after(_ last: Int64) -> EventMoment { EventMoment(seconds, milliseconds: max(milliseconds, last + 1)) }
}

/// Compares what endpoints may know of accounts before and after a change. For one transaction.
package final class AccountChangeTracker {
    /// An event that cannot be delivered for so long is parked. Seconds.
    package static let timeout: Int64 = 3 * 86_400
    /// Octets of a `jti`: 160 bits.
    private static let jtiLength = 32

    /// What one endpoint may know of one account.
    private struct Known: Hashable {
        let account: Int64
        let endpoint: Int64
        let sub: String
        let isAuthorized: Bool
        /// Nil where the team does not have a relay address of ours.
        let isReachable: Bool?
        let email: String?

        struct Key: Hashable {
            let account: Int64
            let endpoint: Int64
        }
        var key: Key { Key(account: account, endpoint: endpoint) }
    }

    /// What is told although nothing of the account differs.
    private struct Notice {
        let type: EventType
        let account: Int64
        let endpoint: Int64
        let sub: String
        var decision: String?
    }

    private let connection: any DatabaseConnection
    private var notices: [Notice] = []
    private var scopes: [AccountScope] = []
    private var known: Set<AccountScope> = []
    private var before: [Known] = []
    private var seen: Set<Known.Key> = []
    /// The time of each account's last event; the account may be gone by the end.
    private var lastTimes: [Int64: Int64] = [:]

    init(_ connection: any DatabaseConnection) { self.connection = connection }

    /// Records the current state of what is about to change. A repetition for the same changes nothing.
    package func snapshot(_ scope: AccountScope) throws(StoreFailure) {
        guard known.insert(scope).inserted else { return }
        scopes.append(scope)
        for known in try read(scope) where seen.insert(known.key).inserted { before.append(known) }
    }

    /// Notes that an account's user objects to a decision about a group of apps. Where the apps went to another team since, no
    /// one is told: that team does not know the decision.
    package func note(objectionOf account: Int64, group: Int64, team: Int64, decision: String) throws(StoreFailure) {
        let rows = try connection.rows(
            """
            SELECT e.id, a.sub, a.event_time FROM accounts a
            JOIN app_groups p ON p.id = \(group) AND p.team_id = a.team_id AND p.team_id = \(team) AND p.removed_from IS NULL
            JOIN event_endpoints e ON e.group_id = p.id WHERE a.id = \(account)
            """)
        for row in rows {
            notices.append(
                try Notice(type: .checkObjected, account: account, endpoint: row["id"], sub: row["sub"], decision: decision))
            lastTimes[account] = try row["event_time"]
        }
    }

    /// Notes that an account's user complained about a message. Every endpoint of apps that the user still uses is told: which of
    /// them sent it is not known.
    package func note(complaintOf account: Int64) throws(StoreFailure) {
        for known in try read(.account(account)) where known.isAuthorized {
            notices.append(Notice(type: .spamComplaint, account: account, endpoint: known.endpoint, sub: known.sub))
        }
    }

    /// Writes the events for what differs now; whether there were any.
    func emitEvents(at moment: EventMoment) throws(StoreFailure) -> Bool {
        guard !before.isEmpty || !notices.isEmpty else { return false }
        var after: [Known.Key: Known] = [:]
        for scope in scopes {
            for known in try read(scope) { after[known.key] = known }
        }
        // One change is one moment, however many endpoints hear of it.
        var told: [Int64: EventMoment] = [:]
        for was in before {
            guard let (type, email) = try event(was, after[was.key]) else { continue }
            let moment = moment.after(lastTimes[was.account] ?? 0)
            try connection.post(
                type, endpoint: was.endpoint, account: was.account, sub: was.sub, email: email, jti: try Self.jti(), at: moment)
            told[was.account] = moment
        }
        for notice in notices {
            let moment = moment.after(lastTimes[notice.account] ?? 0)
            try connection.post(
                notice.type, endpoint: notice.endpoint, account: notice.account, sub: notice.sub, email: nil,
                decision: notice.decision, jti: try Self.jti(), at: moment)
            told[notice.account] = moment
        }
        for (account, moment) in told.sorted(by: { $0.key < $1.key }) {
            try connection.run("UPDATE accounts SET event_time = \(moment.milliseconds) WHERE id = \(account)")
        }
        return !told.isEmpty
    }

    private static func jti() throws(StoreFailure) -> String {
        Base32.characters(fromRandom: try SecureRandom.octets(jtiLength))
    }

    private func event(_ was: Known, _ now: Known?) throws(StoreFailure) -> (EventType, email: String?)? {
        guard let now else {
            // One that was removed may be there still, with a team that was removed.
            let account = try connection.row(
                """
                SELECT a.id FROM accounts a JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
                WHERE a.id = \(was.account)
                """)
            if account == nil { return (.accountDelete, nil) }
            return was.isAuthorized ? (.consentRevoked, nil) : nil
        }
        guard was.isAuthorized else { return nil }
        guard now.isAuthorized else { return (.consentRevoked, nil) }
        guard let wasReachable = was.isReachable, let isReachable = now.isReachable,
            wasReachable != isReachable || isReachable && was.email != now.email
        else { return nil }
        return isReachable ? (.emailEnabled, now.email) : (.emailDisabled, was.email)
    }

    /// Accounts of external issuers have no relay address of ours: no one is notified of them. In the middle of a transfer the
    /// apps and their endpoint are the new team's already: it is not told of accounts that are still the old one's.
    private static func select(_ isTold: SQL) -> SQL {
        """
        SELECT a.id, e.id AS endpoint_id, a.sub, g.state, a.email_kind,
            CASE WHEN c.forwarding_on = 1 AND i.verified_at IS NOT NULL THEN 1 ELSE 0 END AS is_reachable, c.local_part, c.domain, a.event_time
        FROM accounts a
        JOIN grants g ON g.account_id = a.id
        JOIN app_groups p ON p.id = g.group_id AND \(isTold)
        JOIN event_endpoints e ON e.group_id = g.group_id
        LEFT JOIN relay_addresses c ON c.account_id = a.id AND c.is_current = 1
        LEFT JOIN inboxes i ON i.id = a.target_inbox
        WHERE (c.account_id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM external_identities x WHERE x.account_id = a.id))
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
            }
        return try connection.rows("\(condition) ORDER BY a.id, g.id").map { row throws(StoreFailure) in
            let (account, state, kind): (Int64, Grant.State, EmailKind) = try (row["id"], row["state"], row["email_kind"])
            let (local, domain): (String?, String?) = try (row["local_part"], row["domain"])
            lastTimes[account] = try row["event_time"]
            return try Known(
                account: account, endpoint: row["endpoint_id"], sub: row["sub"], isAuthorized: state == .authorized,
                isReachable: kind == .privateRelay ? row["is_reachable"] as Bool : nil,
                email: local.map { "\($0)@\(domain ?? "")" })
        }
    }
}

extension DatabaseConnection {
    /// Puts an event into the outbox.
    package func post(
        _ type: EventType, endpoint: Int64, account: Int64, sub: String, email: String?, decision: String? = nil, jti: String,
        at moment: EventMoment
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO outbox
                (jti, endpoint_id, account_id, type, sub, email, decision_id, event_time, created_at, state, park_at, next_attempt_at)
            VALUES (\(jti), \(endpoint), \(account), \(type), \(sub), \(email), \(decision), \(moment.milliseconds),
                \(moment.seconds), 'pending', \(moment.seconds + AccountChangeTracker.timeout), \(EventMoment.atOnce))
            """)
    }
}
