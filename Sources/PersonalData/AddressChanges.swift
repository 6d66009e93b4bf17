// Changes that users make to their addresses: replacing one, and scheduling a switch of forwarding
// on a day or after a number of messages.

import Accounts
import Database
import InternetMessage
import Support

extension AddressRepository {
    /// New addresses of one account in a day.
    private static let newPerDay = 5

    /// Retires the account's address and gives it another one, with forwarding unchanged; its
    /// team is notified of the new one. Throws `unmet` if the account has none, and `limit`
    /// beyond five in 24 hours.
    package func replace(account number: Int64, _ change: Change) throws(StoreFailure) -> AddrSpec {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let row = try connection.row(
                "SELECT local_part, domain FROM relay_addresses WHERE account_id = \(number) AND is_current = 1"
            )
            guard let row else { throw .refused(.unmet, "there is no address to replace") }
            let made: Int? = try connection.value(
                """
                SELECT COUNT(*) AS count FROM relay_addresses
                WHERE account_id = \(number) AND is_current = 0 AND retired_at > \(change.now - 86_400)
                """)
            guard (made ?? 0) < Self.newPerDay else {
                throw .refused(.limit, "too many new addresses in one day: try again tomorrow")
            }
            try tracker.snapshot(.account(number))
            let old = try address(connection, AddrSpec(row: row))
            try retire(connection, old, change)
            let team = old.account.teamID
            let new = try current(
                connection, account: number, team: team, user: old.account.userID ?? "", change
            ).address.address
            if !old.isForwardingOn {
                try connection.run(
                    """
                    UPDATE relay_addresses SET forwarding_on = 0, (switched_at, switched_by) =
                        (SELECT o.switched_at, o.switched_by FROM relay_addresses o
                            WHERE o.local_part = \(old.address.localPart) AND o.domain = \(old.address.domain))
                    WHERE account_id = \(number) AND is_current = 1
                    """)
            }
            return new
        }
    }

    /// Gives the team a relay address in place of the user's own address, which it got before. The
    /// team's apps are notified as of any new address. Throws `unmet` if the team does not have the
    /// user's own address, or no app may use the account.
    package func hide(account number: Int64, _ change: Change) throws(StoreFailure) {
        try events.write(at: change.now) { connection, tracker throws(StoreFailure) in
            let row = try connection.row(
                """
                SELECT t.handle AS team, u.handle AS user_handle FROM accounts a JOIN teams t ON t.id = a.team_id
                JOIN users u ON u.id = a.user_id
                WHERE a.id = \(number) AND a.email_kind = \(EmailKind.real) AND \(GrantRepository.isLive("a.id"))
                """)
            guard let row else { throw .refused(.unmet, "there is no address of yours to hide") }
            try tracker.snapshot(.account(number))
            try connection.run(
                "UPDATE accounts SET email_kind = \(EmailKind.privateRelay) WHERE id = \(number)")
            _ = try current(
                connection, account: number, team: row["team"], user: row["user_handle"], change)
            try connection.audit(change, "account.hide", "account:\(number)", "")
        }
    }

    /// Schedules one switch of forwarding for the account's address; nil cancels it.
    /// - Parameters:
    ///   - time: seconds since 1970.
    ///   - messages: the number of messages from now on after which forwarding ends, if it is on.
    package func switchForwarding(
        account number: Int64, at time: Int64?, after messages: Int? = nil, _ change: Change
    ) throws(StoreFailure) {
        try events.database.write(.durable) { connection throws(StoreFailure) in
            let changed = try connection.run(
                """
                UPDATE relay_addresses SET switches_at = \(time),
                    ends_at_count = CAST(\(messages.map(Int64.init)) AS BIGINT) + \(CounterKind.forwarded.total(account: "\(number)"))
                WHERE account_id = \(number) AND is_current = 1
                """)
            guard changed > 0 else { throw .refused(.unmet, "there is no address to switch") }
            let whens = [
                time.map { "at \(UTCTime.text($0))" }, messages.map { "after \($0) messages" },
            ].compactMap { $0 }
            try connection.audit(
                change, "address.schedule", "account:\(number)",
                whens.isEmpty ? "no more" : whens.joined(separator: " "))
        }
    }

    /// Makes the switches that are due, the longest overdue first, at most a hundred at a time.
    /// - Parameter now: seconds since 1970.
    package func switchDue(now: Int64) throws(StoreFailure) {
        let due = try events.database.rows(
            """
            SELECT local_part, domain, forwarding_on FROM relay_addresses
            WHERE switches_at IS NOT NULL AND switches_at <= \(now) ORDER BY switches_at LIMIT 100
            """)
        for row in due {
            try switchOver(
                AddrSpec(row: row), on: !(row["forwarding_on"] as Bool), by: .day, now: now)
        }
    }

    /// Ends forwarding for accounts whose last allowed message was forwarded. Further messages in
    /// the same second may still be forwarded.
    /// - Parameter accounts: the accounts whose messages were counted since the
    ///   last call; nil for all.
    package func endCounted(accounts: [Int64]?, now: Int64) throws(StoreFailure) {
        let isAny: Int64? = try events.database.value(
            "SELECT 1 FROM relay_addresses WHERE ends_at_count IS NOT NULL LIMIT 1")
        guard isAny != nil else { return }
        let all = accounts ?? []
        // As many accounts at a time as fit into one statement.
        for start in stride(from: 0, to: accounts == nil ? 1 : all.count, by: 200) {
            let some = all[min(start, all.count)..<min(start + 200, all.count)]
            let which: SQL =
                accounts == nil
                ? ""
                : "AND r.account_id IN (\(some.dropFirst().reduce("\(some.first ?? 0)" as SQL) { "\($0), \($1)" }))"
            let ended = try events.database.rows(
                """
                SELECT r.local_part, r.domain FROM relay_addresses r WHERE r.ends_at_count IS NOT NULL \(which) AND r.ends_at_count <=
                    \(CounterKind.forwarded.total(account: "r.account_id"))
                """)
            for row in ended { try switchOver(AddrSpec(row: row), on: false, by: .count, now: now) }
        }
    }

    private func switchOver(
        _ address: AddrSpec, on isOn: Bool, by cause: SwitchCause, now: Int64
    ) throws(StoreFailure) {
        do {
            try setForwarding(address, on: isOn, by: cause, Change(actor: "serve", now: now))
        } catch {
            guard error.isRefusal else { throw error }
            // The team was removed, so no switch is needed.
            try events.database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.run(
                    """
                    UPDATE relay_addresses SET switches_at = NULL, ends_at_count = NULL
                    WHERE local_part = \(address.localPart) AND domain = \(address.domain)
                    """)
            }
        }
    }
}
