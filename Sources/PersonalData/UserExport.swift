// A user's own data.

import Accounts
import InternetMessage

/// An account as its user sees it.
package struct UserExportAccount: Sendable, Hashable {
    /// The store's number.
    package let number: Int64
    package let team: Team
    /// The address that the team has; nil if all are retired, or the team has none.
    package let address: AddrSpec?
    package let isForwardingOn: Bool
    /// The last switch; nil if there was none.
    package let switched: ForwardingSwitch?
    package let blocks: AccountBlocks
    /// When forwarding switches, seconds since 1970; nil for never.
    package let switchesAt: Int64?
    /// After how many more messages forwarding ends; nil for never.
    package let messagesLeft: Int?
    /// When the account was created, seconds since 1970.
    package let createdAt: Int64
    /// The inbox that its mail goes to; nil if there is none.
    package let inboxNumber: Int64?
    /// Whether that inbox was chosen for this account, instead of the default.
    package let hasOwnInbox: Bool
    /// The kind of the user's address that the team has.
    package let emailKind: EmailKind
    /// The name that the team has; nil if it has none.
    package let teamName: PersonName?
    /// The last day (days since 1970) on which a message was relayed; nil if there was none in the
    /// time for which counts are kept.
    package let lastUsedDay: Int64?
    /// The last message of the past 30 days.
    package let lastMail: LastMail?
    /// Messages that were refused in the past seven days.
    package let refusedOfWeek: Int
    /// Domains other than the team's that are proved to have used one of its addresses in the past
    /// 30 days.
    package let usingDomains: Int
    package let notes: AccountNotes
    /// The oldest first.
    package let consents: [UserExportConsent]
    /// The team to which the last consents moved with their apps; nil if some remain, or none
    /// moved.
    package let move: UserExportMove?
    /// Messages relayed since the requested day.
    package let recent: DailyUsage
    /// Messages relayed in the time for which counts are kept.
    package let total: DailyUsage

    /// The user's own name for it, otherwise the team's name.
    package var title: String { notes.name.isEmpty ? team.name : notes.name }

    /// Whether any app may use it.
    package var hasConsent: Bool { consents.contains(where: \.isLive) }

    /// Whether it can receive mail.
    package var isActive: Bool { address != nil && hasConsent }

    /// Whether mail of the team reaches the user: forwarding is on, and the user does not block
    /// every sender.
    package var isReached: Bool { isActive && isForwardingOn && !blocks.isEverySender }
}

/// An app that moved to another team, with the user's consent.
package struct UserExportMove: Sendable, Hashable {
    /// The name of the new team.
    package let team: String
    /// The user's account with the new team, by the store's number.
    package let account: Int64
    /// Any app that moved; nil for mail only.
    package let app: UserExportApp?
    /// Seconds since 1970.
    package let movedAt: Int64
    /// Until when the old address accepts the new team's mail, seconds since 1970.
    package let endsAt: Int64
}

/// An app as its users see it.
package struct UserExportApp: Sendable, Hashable {
    package let clientID: String
    /// The operator's display name for it; nil if none.
    package let name: String?
    package let hasIcon: Bool

    /// The name shown to people.
    package var title: String { name ?? clientID }
}

/// A consent as its user sees it.
package struct UserExportConsent: Sendable, Hashable {
    package let group: AppGroup
    /// All apps that it covers.
    package let apps: [UserExportApp]
    package let isLive: Bool
    package let firstAuthorizedAt: Int64
    package let lastAuthorizedAt: Int64

    /// The app that represents the others; nil for mail only.
    package var title: String? { primary?.title ?? group.primaryClientID }

    /// The client_id of the app whose icon represents the others; nil if it has none.
    package var icon: String? { primary.flatMap { $0.hasIcon ? $0.clientID : nil } }

    private var primary: UserExportApp? {
        apps.first { $0.clientID == group.primaryClientID } ?? apps.first
    }
}

/// One section of the stored data about a user: rows of named values.
package struct UserExportRecords: Sendable {
    package enum Value: Sendable, Hashable {
        case null
        case integer(Int64)
        case text(String)
        case flag(Bool)
        /// Seconds since 1970.
        case time(Int64)
        /// Days since 1970.
        case day(Int64)
        case words([String])
        /// Stored JSON.
        case json(String)
    }

    package let name: String
    /// In the order of the columns.
    package let rows: [[(name: String, value: Value)]]
}
