// One row of an import, and its outcome.

import Accounts
import Database
import InternetMessage

/// The objects that should exist after the import: a user, and, if the row has them, an inbox and
/// an account with a team.
package struct ImportRow: Sendable {
    package struct Inbox: Sendable {
        package let address: InboxAddress
        /// Whether the inbox is known to be the user's: only if the administrator declared the
        /// source trusted.
        package let isVerified: Bool
        /// Whether mail goes to this inbox; only for an inbox that this row adds.
        package let isDefault: Bool
        package let isReplyOnly: Bool

        package init(address: InboxAddress, isVerified: Bool, isDefault: Bool, isReplyOnly: Bool) {
            self.address = address
            self.isVerified = isVerified
            self.isDefault = isDefault
            self.isReplyOnly = isReplyOnly
        }
    }

    package struct Account: Sendable {
        package let team: String
        /// `client_id` of the app that has the consent; nil for the team's usual group.
        package let app: String?
        /// The subject that the team already knows; nil for a random one.
        package let sub: String?
        /// The relay address that the team already knows; nil for a random one.
        package let address: AddrSpec?
        package let isForwardingOn: Bool
        package let sharesName: Bool
        /// 0 … 2; nil if no token ever stated it.
        package let realUserStatus: Int?
        /// First authorization in seconds since 1970; nil for now.
        package let since: Int64?
        /// When the account was last seen, in seconds since 1970; nil for now, because earlier use
        /// is not known.
        package let lastSeen: Int64?

        package init(
            team: String, app: String? = nil, sub: String? = nil, address: AddrSpec? = nil,
            isForwardingOn: Bool = true,
            sharesName: Bool = false, realUserStatus: Int? = nil, since: Int64? = nil,
            lastSeen: Int64? = nil
        ) {
            self.team = team
            self.app = app
            self.sub = sub
            self.address = address
            self.isForwardingOn = isForwardingOn
            self.sharesName = sharesName
            self.realUserStatus = realUserStatus
            self.since = since
            self.lastSeen = lastSeen
        }
    }

    package let user: String
    package let name: String?
    package let inbox: Inbox?
    package let account: Account?

    package init(user: String, name: String?, inbox: Inbox?, account: Account?) {
        self.user = user
        self.name = name
        self.inbox = inbox
        self.account = account
    }
}

extension ImportRow: CustomStringConvertible, CustomReflectable {
    /// Never the name.
    package var description: String { "<row of user \(user)>" }
    package var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// The objects that one row, or many, added.
package struct ImportCounts: Sendable, Hashable {
    package var users = 0
    package var names = 0
    package var inboxes = 0
    /// Existing inboxes that became verified.
    package var confirmed = 0
    package var accounts = 0
    package var grants = 0
    package var addresses = 0

    package init() {}

    /// Whether nothing was added: everything already existed.
    package var isEmpty: Bool { self == ImportCounts() }

    package static func += (left: inout ImportCounts, right: ImportCounts) {
        left.users += right.users
        left.names += right.names
        left.inboxes += right.inboxes
        left.confirmed += right.confirmed
        left.accounts += right.accounts
        left.grants += right.grants
        left.addresses += right.addresses
    }
}

/// The outcome of a row.
package enum ImportOutcome: Sendable {
    case done(ImportCounts)
    /// The row changed nothing. The reason contains no inbox address and no name.
    case refused(StoreFailure)
}
