// The confirmation of an inbox that is in progress, and how many messages may be sent for it.

import Database
import InternetMessage

/// Limits of the messages that Postern itself sends to inboxes, so that it cannot be used
/// to annoy other people.
package struct NoticeLimits: Sendable, Hashable {
    /// Seconds for which code and link of a confirmation are valid.
    package let lifetime: Int64
    /// Wrong codes for one message.
    package let tries: Int
    /// Messages of each kind to one mailbox in an hour. All spellings of an address are one
    /// mailbox.
    package let perInbox: Int
    /// Messages for one user in an hour, over all inboxes.
    package let perUser: Int
    /// Messages from this installation to its users in an hour.
    package let perInstallation: Int
    /// Messages in an hour to people who are not users yet. This limit never delays messages to
    /// users.
    package let toStrangers: Int

    package init(
        lifetime: Int64 = 86_400, tries: Int = 5, perInbox: Int = 5, perUser: Int = 10,
        perInstallation: Int = 5_000,
        toStrangers: Int = 2_000
    ) {
        self.toStrangers = toStrangers
        self.lifetime = lifetime
        self.tries = tries
        self.perInbox = perInbox
        self.perUser = perUser
        self.perInstallation = perInstallation
    }
}

/// The origin of a request that makes Postern send a message, as keyed hashes. After half of an
/// hour's messages are sent, each origin gets only a share of the rest, so that a few origins
/// cannot use them up.
package struct NoticeSource: Sendable {
    /// The widest network that the request counts for; nil if it is not known.
    let network: [UInt8]?
    /// The domain of the inbox; nil if it is a user's.
    let domain: [UInt8]?

    package static let unknown = NoticeSource(network: nil, domain: nil)

    package init(network: [UInt8]?, domain: [UInt8]?) {
        self.network = network
        self.domain = domain
    }

    /// A network's share is a hundredth of the limit, and a domain's share a quarter, because a
    /// provider's domain has many people.
    static let (networks, domains) = (100, 4)
}

/// The purpose of a message that Postern itself sends.
package enum NoticeKind: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case verification, deletion, change
    /// A code for a check that a team requires.
    case check
    case signIn = "sign-in"
    case newBrowser = "new-browser"
    case newPasskey = "new-passkey"
    case newAuthenticator = "new-authenticator"
    case recoveryCodeUsed = "recovery-code-used"
    /// Someone waits to sign in without the user's second factor.
    case recoveryBegun = "recovery-begun"
    /// The operator removed the user's second factors.
    case recovery
    case plannedDeletion = "planned-deletion"
    case refusals
    /// To a user who replied to the message that confirms an inbox.
    case reply
    /// To an address that a team wants to send from.
    case source
}

/// A confirmation that was started: the content of the message to the inbox. Its secrets are stored
/// nowhere else.
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

/// The state of a confirmation, without its secrets.
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
