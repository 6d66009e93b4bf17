// Accounts, grants and relay addresses as administration sees them.

import Database
import InternetMessage

/// The kind of address that a team has of a user.
package enum EmailKind: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// A relay address. Only these have `email-*` events.
    case privateRelay = "private"
    /// The inbox itself, which the user chose to share.
    case real
    /// No address.
    case none
}

/// A user as one team sees them.
package struct Account: Sendable, Hashable {
    /// 1 ..< 2^35, never reused; part of address tokens.
    package let number: Int64
    package let teamID: String
    /// Nil for an account of an external issuer that is not linked.
    package let userID: String?
    /// The team-scoped subject: random, stable as long as the account lives.
    package let sub: String
    /// Whether the team gets the user's name.
    package let sharesName: Bool
    package let emailKind: EmailKind
    /// The inbox that the user chose for this team, or shared with it; nil for the default one.
    package let inboxNumber: Int64?
    package let createdAt: Int64

    /// Numbers are below this: address tokens have 35 bits for them.
    package static let numberLimit: Int64 = 1 << 35
}

/// An account's consent to one app group.
package struct Grant: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable { case authorized, revoked }
    /// The store's own number.
    package let number: Int64
    package let accountNumber: Int64
    package let group: AppGroup
    package let state: State
    package let firstAuthorizedAt: Int64
    package let lastAuthorizedAt: Int64
    /// The length of a visit in seconds.
    package static let day: Int64 = 86_400
    package let revokedAt: Int64?
    /// 0 unsupported, 1 unknown, 2 likely real; nil if no token ever stated it.
    package let realUserStatus: Int?
    /// The status before the last revocation and return; nil if there was none.
    package let priorStatus: Int?
    /// Increases with every revocation. Codes and tokens are valid only in the generation in which
    /// they were issued. So a revocation ends all of them, and a later consent does not make them
    /// valid again.
    package let generation: Int64
}

/// The state of a user's consent that a team's backend is given.
package enum CredentialState: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case authorized, revoked, transferred
    case notFound = "not_found"
}

/// The consent that a user gives at a sign-in.
package struct AuthorizationRequest: Sendable {
    /// Any app of the group; apps of one group share the grant.
    package var clientID: String
    package var userID: String
    /// Nil keeps the present kind; a new account gets a relay address.
    package var emailKind: EmailKind?
    /// The inbox for this account; nil keeps the present one; a new account gets the default one.
    package var inbox: InboxName?
    /// Whether the team gets the user's name; nil keeps the present setting.
    package var sharesName: Bool?
    /// The name that the team gets; nil keeps the present one.
    package var name: GivenName?
    /// 0 … 2. Stored at the first authorization, at a return, and when the grant has none yet.
    package var realUserStatus: Int?
    /// The status that a policy decided; it replaces `realUserStatus`.
    package var givenStatus: GivenStatus?

    package init(
        clientID: String, userID: String, emailKind: EmailKind? = nil, inbox: InboxName? = nil,
        sharesName: Bool? = nil,
        realUserStatus: Int? = nil
    ) {
        self.clientID = clientID
        self.userID = userID
        self.emailKind = emailKind
        self.inbox = inbox
        self.sharesName = sharesName
        self.realUserStatus = realUserStatus
    }
}

/// An authorization that took place.
package struct AuthorizedGrant: Sendable {
    package enum Kind: String, SQLCodable, Sendable, Hashable {
        /// The user had never consented to the group.
        case first
        /// The user had consented, and revoked the consent since.
        case returned
        /// The consent is already in force.
        case again
    }
    package let kind: Kind
    package let team: Team
    package let account: Account
    package let grant: Grant
    /// Nil if the account has no relay address.
    package let relayAddress: RelayAddress?
    /// Whether name and status are delivered now: the first time, and after a return.
    package var deliversProfile: Bool { kind != .again }
}

/// A relay address.
package struct RelayAddress: Sendable, Hashable {
    package let address: AddrSpec
    package let account: Account
    /// Whether new mail to the account's team carries this address.
    package let isCurrent: Bool
    package let isForwardingOn: Bool
    /// Seconds since 1970; nil while it works.
    package let retiredAt: Int64?
    /// Whether any grant of the account is live.
    package let hasLiveGrant: Bool
    package let createdAt: Int64
}
