// The verification of an inbox that is in progress, and how many messages may be sent for it.

import Database
import InternetMessage

/// Limits of the messages that Postern itself sends to inboxes, so that it cannot be used to annoy other people.
package struct NoticeLimits: Sendable, Hashable {
    /// Seconds for which code, link and answer of a verification are valid.
    package let lifetime: Int64
    /// Wrong codes for one message.
    package let tries: Int
    /// Messages to one mailbox, whatever its spelling, in an hour, of each kind.
    package let perInbox: Int
    /// Messages for one user in an hour, over all inboxes.
    package let perUser: Int
    /// Messages from this installation in an hour.
    package let perInstallation: Int
    /// Of these, messages to people who are not users yet: a caller who triggers many leaves the other half for users.
    var toStrangers: Int { max(1, perInstallation / 2) }

    package init(lifetime: Int64 = 86_400, tries: Int = 5, perInbox: Int = 5, perUser: Int = 10, perInstallation: Int = 500) {
        self.lifetime = lifetime
        self.tries = tries
        self.perInbox = perInbox
        self.perUser = perUser
        self.perInstallation = perInstallation
    }
}

/// What our own message is for.
package enum NoticeKind: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case verification, deletion, change
    case signIn = "sign-in"
    case newBrowser = "new-browser"
    case newPasskey = "new-passkey"
    case plannedDeletion = "planned-deletion"
    case refusals
    /// To an address that a team wants to send from.
    case source
}

/// A verification that was started: the content of the message to the inbox. Its secrets are nowhere else.
package struct PendingConfirmation: Sendable {
    /// 1 ..< 2^35; part of the address that an answer goes to.
    package let number: Int64
    package let inbox: Inbox
    /// Six digits.
    package let code: String
    /// 32 characters of base32.
    package let linkToken: String
    /// 40 bits, for the address that an answer goes to.
    package let answerNonce: Int64
    /// Seconds since 1970.
    package let expiresAt: Int64
}

extension PendingConfirmation: CustomStringConvertible, CustomReflectable {
    /// Never the code or the link.
    package var description: String { "<verification \(number)>" }
    package var customMirror: Mirror { Mirror(self, children: ["number": number]) }
}

/// The state of a verification, without its secrets.
package struct VerificationState: Sendable, Hashable {
    package let inboxNumber: Int64
    package let createdAt: Int64
    package let expiresAt: Int64
    /// How many more wrong codes are allowed.
    package let triesLeft: Int
}

/// A confirmed inbox and its user.
package struct ConfirmedInbox: Sendable, Hashable {
    package let userID: String
    package let inbox: Inbox
    /// False if it was already confirmed.
    package let isNew: Bool
}
