// What the relay reads about one recipient.

import Database
import InternetMessage

/// Everything needed to decide about mail to a relay address, from one read.
package struct RelayAddressRecord: Sendable {
    package let accountNumber: Int64
    package let team: Team
    /// The requested address.
    package let address: AddrSpec
    /// The address that the team should see now; differs from `address` if that is an older one.
    package let currentAddress: AddrSpec
    package let isForwardingOn: Bool
    package let isRetired: Bool
    package let hasLiveGrant: Bool
    /// The inbox that mail goes to; nil if the user has none to forward to.
    package let inbox: InboxAddress?
    package let isInboxVerified: Bool
    /// Whether forwarding to it is suspended.
    package let isInboxSuspended: Bool
    /// For 60 days after an app of the account moved to another team: the accounts that the address stands for in that team's
    /// mail.
    package var successors: [RelayAddressRecord] = []
    /// What the account's team may send from, by value.
    package var sources: [OutboundSource] = []
    /// Messages forwarded for the account on the requested day.
    package var forwarded = 0
    /// Whether the user has blocked senders (`RelayRepository.isBlocked`).
    package var hasBlocks = false
}

/// One inbox of an account's user.
package struct InboxRecord: Sendable {
    package let address: InboxAddress
    package let isVerified: Bool
    package let isReplyOnly: Bool
    package let isDefault: Bool
    package let isSuspended: Bool
}

/// Everything needed to decide about mail to a reverse address or return path, from one read.
package struct AccountRecord: Sendable {
    package let accountNumber: Int64
    package let team: Team
    /// The account's current relay address; nil if all are retired.
    package let currentAddress: AddrSpec?
    /// The current address, or else the last retired one: it identifies the account to the team in a report.
    package let lastAddress: AddrSpec?
    package let isForwardingOn: Bool
    package let hasLiveGrant: Bool
    /// Where the account's mail goes; nil where the user has no inbox to forward to.
    package let inbox: InboxAddress?
    package let isInboxVerified: Bool
    /// Whether forwarding to it is suspended.
    package let isInboxSuspended: Bool
    /// All inboxes of the user, including unverified ones: more inboxes must be hidden than can prove a sender.
    package let inboxes: [InboxRecord]
    package let sharedName: PersonName?
    /// The team's registered sources.
    package let sources: [OutboundSource]
    /// What was counted for the account on the requested day.
    package let usage: DailyUsage
}

extension AccountRecord: CustomStringConvertible, CustomReflectable {
    /// Never the name.
    package var description: String { "<account \(accountNumber)>" }
    package var customMirror: Mirror { Mirror(self, children: ["accountNumber": accountNumber]) }
}

/// An address kept under a token, because it does not fit into one.
package struct StoredToken: Sendable {
    package let accountNumber: Int64
    package let address: AddrSpec
    /// Seconds since 1970.
    package let expiresAt: Int64
}

/// An address to be kept under a token.
package struct NewStoredToken: Sendable, Hashable {
    /// The lookup key in lower case: the local part of a reverse address, or the part that all return paths for one account and
    /// sender share.
    package let token: String
    package let address: AddrSpec
    package let purpose: StoredTokenPurpose
    /// Until when at least a return path needs it, in seconds since 1970. The repository sets the expiry of a reverse address.
    package let expiresAt: Int64?

    /// A reverse address.
    package init(reverse token: String, address: AddrSpec) {
        (self.token, self.address, purpose, expiresAt) = (token.lowercased(), address, .reverse, nil)
    }

    package init(returnPath token: String, address: AddrSpec, expiresAt: Int64) {
        (self.token, self.address, purpose, self.expiresAt) = (token.lowercased(), address, .returnPath, expiresAt)
    }
}

/// What a stored token is for.
package enum StoredTokenPurpose: String, SQLCodable, Sendable, Hashable {
    /// A correspondent's address; kept for a year after the last mail that used it.
    case reverse
    /// A sender's address that reports go back to; kept some days beyond the last return path that needs it.
    case returnPath = "return"
}
