// Notifies users by mail of refused messages: of the first refusal of each kind for each address,
// and at most once a week.

import Accounts
import Database
import InternetMessage
import RelayCore

/// The content of one message.
package struct RefusalNotice: Sendable {
    package let userID: String
    /// The default inbox, verified.
    package let inbox: InboxAddress
    package let kinds: Set<UserRefusal>
    fileprivate let user: Int64
    fileprivate let toldBefore: Int64?
}

extension UserRefusal {
    /// Kinds that a user could not know and may want to change. The user's own choices are not
    /// among them, nor refusals while the user cannot read mail.
    static let told: [UserRefusal] = [.limit, .stranger, .unproved, .content]
}

extension UserExportRepository {
    /// Seconds between two messages to a user.
    private static let pause: Int64 = 7 * 86_400
    /// Days after which the same kind is reported again.
    private static let memory: Int64 = 90

    /// Whether the user wants these messages.
    package func wantsRefusals(user id: String) throws(StoreFailure) -> Bool {
        try database.value("SELECT wants_refusals FROM users WHERE handle = \(id)") ?? true
    }

    /// Sets whether the user wants these messages.
    package func setWantsRefusals(
        user id: String, _ isWanted: Bool, _ change: Change
    ) throws(StoreFailure) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let user = try connection.userNumber(id)
            try connection.run("UPDATE users SET wants_refusals = \(isWanted) WHERE id = \(user)")
            try connection.audit(
                change, "user.refusal-messages", "user:\(id)", isWanted ? "on" : "off")
        }
    }

    /// The refusals about which users may be notified now.
    private static func fresh(_ now: Int64) -> SQL {
        let kinds = UserRefusal.told.dropFirst().reduce("\(UserRefusal.told[0])" as SQL) {
            "\($0), \($1)"
        }
        return """
            FROM account_refusals x JOIN accounts a ON a.id = x.account_id JOIN teams t ON t.id = a.team_id AND t.removed_at IS NULL
            WHERE x.day > \(Day.number(now) - 7) AND x.kind IN (\(kinds)) AND NOT EXISTS (
                SELECT 1 FROM account_refusals_told d WHERE d.account_id = x.account_id AND d.kind = x.kind
                    AND d.told_at >= \(forgotten(now)))
            """
    }

    /// Users who may be notified now.
    private static func ready(_ now: Int64) -> SQL {
        """
        FROM users u JOIN inboxes i ON i.user_id = u.id AND i.is_default = 1 AND i.verified_at IS NOT NULL AND i.suspended_at IS NULL
        WHERE u.wants_refusals = 1 AND (u.refusals_told_at IS NULL OR u.refusals_told_at <= \(now - pause))
        """
    }

    /// The users whose messages are due, by the store's numbers, at most `limit`.
    /// Reads all refusals of a week.
    /// - Parameter now: seconds since 1970, as in `takeRefusalNotices`.
    package func usersToTell(now: Int64, limit: Int) throws(StoreFailure) -> [Int64] {
        try database.values(
            "SELECT u.id \(Self.ready(now)) AND u.id IN (SELECT a.user_id \(Self.fresh(now))) ORDER BY u.id LIMIT \(limit)"
        )
    }

    /// Claims the messages due to these users, so that no other host sends them. A few users at a
    /// time, because others wait to write.
    package func takeRefusalNotices(
        of users: [Int64], now: Int64
    ) throws(StoreFailure) -> [RefusalNotice] {
        try database.write(.durable) { connection throws(StoreFailure) in
            let users = try connection.rows(for: users) {
                """
                SELECT u.id, u.handle, u.refusals_told_at, i.address_key, i.address_sealed \(Self.ready(now)) AND u.id IN \($0)
                """
            }
            var notices: [RefusalNotice] = []
            for row in users {
                let user: Int64 = try row["id"]
                let found = try connection.rows(
                    "SELECT DISTINCT x.account_id, x.kind \(Self.fresh(now)) AND a.user_id = \(user)"
                )
                guard !found.isEmpty else { continue }
                var told: Set<UserRefusal> = []
                for row in found {
                    let (account, kind): (Int64, UserRefusal) = try (row["account_id"], row["kind"])
                    try connection.run(
                        """
                        INSERT INTO account_refusals_told (account_id, kind, told_at) VALUES (\(account), \(kind), \(now))
                        ON CONFLICT (account_id, kind) DO UPDATE SET told_at = excluded.told_at
                        """)
                    told.insert(kind)
                }
                try connection.run("UPDATE users SET refusals_told_at = \(now) WHERE id = \(user)")
                notices.append(
                    try RefusalNotice(
                        userID: row["handle"], inbox: sealer.inbox(row, user: user), kinds: told,
                        user: user,
                        toldBefore: row["refusals_told_at"]))
            }
            return notices
        }
    }

    /// Kinds reported before this time are reported again (seconds since 1970).
    private static func forgotten(_ now: Int64) -> Int64 { now - memory * 86_400 }

    /// Deletes records of reports that are too old to count, at most `limit`; returns how many.
    package func deleteTold(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM account_refusals_told WHERE (account_id, kind) IN (
                    SELECT account_id, kind FROM account_refusals_told WHERE told_at < \(Self.forgotten(now)) LIMIT \(limit))
                """)
        }
    }

    /// Returns a message that could not be submitted: it is due again.
    /// - Parameter now: the time when it was claimed.
    package func giveBack(_ notice: RefusalNotice, now: Int64) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM account_refusals_told WHERE told_at = \(now)
                    AND account_id IN (SELECT id FROM accounts WHERE user_id = \(notice.user))
                """)
            try connection.run(
                "UPDATE users SET refusals_told_at = \(notice.toldBefore) WHERE id = \(notice.user)"
            )
        }
    }
}
