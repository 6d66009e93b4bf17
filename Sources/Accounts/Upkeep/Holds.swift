// Holds: data that is kept beyond its retention because of a dispute or an order.

import Database
import InternetMessage

/// What a hold is about.
package enum HoldScope: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// A user with all accounts.
    case user
    /// A team with its users' accounts at this team.
    case team
    /// A relay address: the account that it belongs to.
    case address
}

/// What an administrator names for a hold.
package enum HoldTarget: Sendable, Hashable {
    /// By identifier.
    case user(String)
    /// By identifier.
    case team(String)
    case address(AddrSpec)

    package var scope: HoldScope {
        switch self {
        case .user: .user
        case .team: .team
        case .address: .address
        }
    }
}

/// What a hold keeps, why, and until when.
package struct HoldTerms: Sendable, Hashable {
    /// Days from now after which a hold ends at the latest: three years, about as long as the audit
    /// is kept by default. An administrator who needs more decides that again, with a line in the
    /// audit.
    package static let maximumDays = 1_096
    /// Holds in force at a time. Each deletion of expired rows compares rows with all of them.
    package static let maximumHolds = 200

    /// Empty: every kind that there is of the target.
    package let data: [DataClass]
    /// One line without an address: the audit shows it.
    package let reason: String
    /// Seconds since 1970.
    package let endsAt: Int64
    /// Whether the user's download leaves the hold out.
    package let isConfidential: Bool

    package init(data: [DataClass], reason: String, endsAt: Int64, isConfidential: Bool) {
        (self.data, self.reason, self.endsAt, self.isConfidential) = (
            data, reason, endsAt, isConfidential
        )
    }
}

/// A hold in force.
package struct Hold: Sendable, Hashable {
    package let number: Int64
    package let scope: HoldScope
    /// As the audit names it: `user:ID`, `team:ID`, or `account:NUMBER` for an address.
    package let subject: String
    /// In the order of names.
    package let data: [DataClass]
    package let reason: String
    package let isConfidential: Bool
    /// Seconds since 1970.
    package let createdAt: Int64
    /// Seconds since 1970.
    package let endsAt: Int64
    /// Accounts of it that were deleted, of which held rows are kept.
    package let deletedAccounts: Int
}
