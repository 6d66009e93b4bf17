// The address of a user that a client gets.

import Database
import InternetMessage

/// The address that a client gets.
package enum ClientEmail: Sendable, Hashable {
    case relay(AddrSpec)
    /// The user's own, verified and shared.
    case shared(InboxAddress)
}

extension InboxRepository {
    /// The relay address, or the inbox itself if the account shares it and it is verified. The
    /// inbox is the one that the user shared; nil if that one was removed.
    package func email(
        _ connection: any DatabaseConnection, _ account: Account
    ) throws(StoreFailure) -> ClientEmail? {
        switch account.emailKind {
        case .none: return nil
        case .privateRelay:
            let row = try connection.row(
                "SELECT local_part, domain FROM relay_addresses WHERE account_id = \(account.number) AND is_current = 1"
            )
            return try row.map { row throws(StoreFailure) in .relay(try AddrSpec(row: row)) }
        case .real:
            let row = try connection.row(
                """
                SELECT i.user_id, i.address_key, i.address_sealed FROM accounts a JOIN inboxes i ON i.id = a.inbox_id
                WHERE a.id = \(account.number) AND i.verified_at IS NOT NULL
                """)
            return try row.map { row throws(StoreFailure) in
                .shared(try sealer.inbox(row, user: row["user_id"]))
            }
        }
    }
}
