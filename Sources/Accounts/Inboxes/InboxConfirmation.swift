// The verification of an inbox that is in progress, and how many messages may be sent for it.

import Database
import InternetMessage

/// Limits of the messages that Postern itself sends to inboxes, so that it cannot be used to annoy other people.
package struct NoticeLimits: Sendable, Hashable {
    /// Seconds for which code and link of a verification are valid.
    package let lifetime: Int64
    /// Wrong codes for one message.
    package let tries: Int
    /// Messages to one mailbox, whatever its spelling, in an hour, of each kind.
    package let perInbox: Int
    /// Messages for one user in an hour, over all inboxes.
    package let perUser: Int
    /// Messages from this installation to its users in an hour.
    package let perInstallation: Int
    /// Messages to people who are no users yet in an hour: users never wait for these.
    package let toStrangers: Int

    package init(
        lifetime: Int64 = 86_400, tries: Int = 5, perInbox: Int = 5, perUser: Int = 10, perInstallation: Int = 5_000,
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

/// Who had our own message sent, as keyed hashes: once half of an hour's messages are sent, each may have a share of the others,
/// so that a few cannot use them up.
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

    /// How many parts an hour's messages have for networks, and for domains: a provider's has many people.
    static let (networks, domains) = (100, 4)
}

/// What our own message is for.
package enum NoticeKind: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case verification, deletion, change
    case signIn = "sign-in"
    case newBrowser = "new-browser"
    case newPasskey = "new-passkey"
    case newAuthenticator = "new-authenticator"
    /// The operator removed the user's second factors.
    case recovery
    case plannedDeletion = "planned-deletion"
    case refusals
    /// To a user who replied to the message that verifies an inbox.
    case reply
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
