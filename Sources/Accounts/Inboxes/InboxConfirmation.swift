// An inbox on its way to being verified, and how many messages may be written for that.

import Database
import InternetMessage

/// Limits of what Postern writes to inboxes of its own accord, so that it is of no use for pestering strangers.
package struct NoticeLimits: Sendable, Hashable {
    /// Seconds for which code, link and answer of a verification are good.
    package let lifetime: Int64
    /// Wrong codes for one message.
    package let tries: Int
    /// Messages to one mailbox, whatever its spelling, in an hour, of each kind.
    package let perInbox: Int
    /// Messages for one user in an hour, over all inboxes.
    package let perUser: Int
    /// Messages of this installation in an hour.
    package let perInstallation: Int
    /// Of these, to people who are no users yet: whoever has any number of strangers written to leaves the other half to users.
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

/// A verification that was begun: what the message to the inbox has to carry. Its secrets are nowhere else.
package struct PendingConfirmation: Sendable {
    /// 1 ..< 2^35; is in the address that an answer goes to.
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

/// How a verification stands, without its secrets.
package struct VerificationState: Sendable, Hashable {
    package let inboxNumber: Int64
    package let createdAt: Int64
    package let expiresAt: Int64
    /// Wrong codes that may still be tried.
    package let triesLeft: Int
}

/// An inbox that was confirmed, and whose it is.
package struct ConfirmedInbox: Sendable, Hashable {
    package let userID: String
    package let inbox: Inbox
    /// False where it had been confirmed before.
    package let isNew: Bool
}
