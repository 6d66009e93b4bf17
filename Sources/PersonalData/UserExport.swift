// A user as they see themselves.

import Accounts
import InternetMessage

/// An account as its user sees it.
package struct UserExportAccount: Sendable, Hashable {
    /// The store's own number.
    package let number: Int64
    package let team: Team
    /// The address that the team has; nil where every one is retired, or the team has none.
    package let address: AddrSpec?
    package let isForwardingOn: Bool
    /// When that switches by itself, seconds since 1970; nil for never.
    package let switchesAt: Int64?
    /// After how many messages more it is turned off; nil for never.
    package let messagesLeft: Int?
    /// Of the account, seconds since 1970.
    package let createdAt: Int64
    /// The inbox that its mail goes to; nil where there is none.
    package let inboxNumber: Int64?
    /// Whether that inbox was chosen for this account, and not the default.
    package let hasOwnInbox: Bool
    /// Which address of the user the team was given.
    package let emailKind: EmailKind
    /// Whether the team was given the user's name.
    package let sharesName: Bool
    /// The last day (days since 1970) on which a forward held an inbox of the user's; nil where none did, as far back as counts
    /// are kept.
    package let inboxWrittenDay: Int64?
    /// The last day (days since 1970) on which a message came through; nil where none did, as far back as counts are kept.
    package let lastUsedDay: Int64?
    package let notes: AccountNotes
    /// The oldest first.
    package let consents: [UserExportConsent]
    /// Where the last consents went with their apps; nil where some are left, or none went.
    package let move: UserExportMove?
    /// Messages relayed since the day asked for.
    package let recent: DailyUsage
    /// Messages relayed, as far back as counts are kept.
    package let total: DailyUsage

    /// The last day on which the team wrote an inbox that it was not given.
    package var probingDay: Int64? { emailKind == .real ? nil : inboxWrittenDay }

    /// As the user calls it, otherwise as the team calls itself.
    package var title: String { notes.name.isEmpty ? team.name : notes.name }

    /// Whether some app may use it.
    package var hasConsent: Bool { consents.contains(where: \.isLive) }

    /// Whether mail can come at all.
    package var isActive: Bool { address != nil && hasConsent }
}

/// An app that went to another team, and the user's consent with it.
package struct UserExportMove: Sendable, Hashable {
    /// The new team, by its name.
    package let team: String
    /// The user's account with it, by the store's own number.
    package let account: Int64
    /// Any app that went; nil for mail alone.
    package let app: UserExportApp?
    /// Seconds since 1970.
    package let movedAt: Int64
    /// Until when the old address takes the new team's mail, seconds since 1970.
    package let endsAt: Int64
}

/// An app as its users see it.
package struct UserExportApp: Sendable, Hashable {
    package let clientID: String
    /// As the operator calls it for people; nil where they do not.
    package let name: String?
    package let hasIcon: Bool

    /// For people.
    package var title: String { name ?? clientID }
}

/// A consent as its user sees it.
package struct UserExportConsent: Sendable, Hashable {
    package let group: AppGroup
    /// Every app that it covers.
    package let apps: [UserExportApp]
    package let isLive: Bool
    package let firstAuthorizedAt: Int64
    package let lastAuthorizedAt: Int64

    /// The app that stands for the others; nil for mail alone.
    package var title: String? { primary?.title ?? group.primaryClientID }

    /// The client_id of the app whose icon stands for the others; nil where it has none.
    package var icon: String? { primary.flatMap { $0.hasIcon ? $0.clientID : nil } }

    private var primary: UserExportApp? { apps.first { $0.clientID == group.primaryClientID } ?? apps.first }
}

/// One section of what is stored about a user: rows of named values.
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
        /// JSON that is stored as such.
        case json(String)
    }

    package let name: String
    /// In the order of the columns.
    package let rows: [[(name: String, value: Value)]]
}
