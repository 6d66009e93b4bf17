// Accounts, grants and relay addresses as administration sees them.

import InternetMessage

/// A user as one team sees them.
package struct Account: Sendable, Hashable {
    /// 1 ..< 2^35, never used twice; stands in address tokens.
    package let number: Int64
    package let teamID: String
    /// Nil for an account of an external issuer that is not linked.
    package let userID: String?
    /// The team-scoped subject: random, stable as long as the account lives.
    package let sub: String
    /// Whether the team gets the user's name.
    package let sharesName: Bool
    package let createdAt: Int64

    /// Numbers are below this: address tokens have 35 bits for them.
    package static let numberLimit: Int64 = 1 << 35
}

/// An account's consent to one app group.
package struct Grant: Sendable, Hashable {
    package enum State: String, Sendable, Hashable { case authorized, revoked }
    package let accountNumber: Int64
    package let group: AppGroup
    package let state: State
    package let firstAuthorizedAt: Int64
    package let lastAuthorizedAt: Int64
    /// 0 unsupported, 1 unknown, 2 likely real; nil where no token ever said.
    package let realUserStatus: Int?
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
