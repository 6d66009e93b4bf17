// Accounts, grants and relay addresses as administration sees them.

import Database
import InternetMessage

/// What a team has as a user's address.
package enum EmailKind: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// A relay address of ours; only of these are there `email-*` events.
    case privateRelay = "private"
    /// The inbox itself, as the user chose to share it.
    case real
    /// No address.
    case none
}

/// A user as one team sees them.
package struct Account: Sendable, Hashable {
    /// 1 ..< 2^35, never used twice; is in address tokens.
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
    /// How long a visit lasts, in seconds.
    package static let day: Int64 = 86_400
    package let revokedAt: Int64?
    /// 0 unsupported, 1 unknown, 2 likely real; nil where no token ever said.
    package let realUserStatus: Int?
    /// The status before the last revocation and return; nil where there was none.
    package let priorStatus: Int?
    /// Grows with every revocation. Codes and tokens are bound to the generation in which they were issued, and are worth
    /// nothing in another: so revoking ends them all, and a return does not revive them.
    package let generation: Int64
}

/// What a team's backend is notified of a user's consent.
package enum CredentialState: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case authorized, revoked, transferred
    case notFound = "not_found"
}

/// What a user consents to at a sign-in.
package struct AuthorizationRequest: Sendable {
    /// Any app of the group; apps of one group share the grant.
    package var clientID: String
    package var userID: String
    /// Nil leaves things as they are: a relay address for a new account.
    package var emailKind: EmailKind?
    /// The inbox for this account; nil leaves things as they are: the default one for a new account.
    package var inbox: InboxName?
    /// Whether the team gets the user's name; nil leaves things as they are.
    package var sharesName: Bool?
    /// 0 … 2; kept at the first authorization and at a return alone.
    package var realUserStatus: Int?
    /// In its place, where a policy decided.
    package var givenStatus: GivenStatus?

    package init(
        clientID: String, userID: String, emailKind: EmailKind? = nil, inbox: InboxName? = nil, sharesName: Bool? = nil,
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
        /// The group had never been consented to.
        case first
        /// It had been, and was revoked meanwhile.
        case returned
        /// It is consented to already.
        case again
    }
    package let kind: Kind
    package let team: Team
    package let account: Account
    package let grant: Grant
    /// For an account that has one.
    package let relayAddress: RelayAddress?
    /// Whether name and status are delivered now: as at the first time, so after a return.
    package var deliversProfile: Bool { kind != .again }
}

/// A relay address.
package struct RelayAddress: Sendable, Hashable {
    package let address: AddrSpec
    package let account: Account
    /// New mail to the account's team carries this one.
    package let isCurrent: Bool
    package let isForwardingOn: Bool
    /// Seconds since 1970; nil while it works.
    package let retiredAt: Int64?
    /// Whether any grant of the account is live.
    package let hasLiveGrant: Bool
    package let createdAt: Int64
}
