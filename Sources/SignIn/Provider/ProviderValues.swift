// Sign-in as the provider's clients see it.

import Accounts
import InternetMessage
import Support

/// The lifetimes of codes and tokens, in seconds, and their limits.
package enum ProviderLifetime {
    package static let code: Int64 = 300
    package static let accessToken: Int64 = 3_600
    /// Refresh tokens of one grant and app: one for each device on which a user signed in. A new
    /// one replaces the oldest.
    package static let refreshTokensPerGrant = 50
}

/// The content of `POST /v1/authorizations`.
package struct ProviderAuthorization: Sendable {
    package var grant: AuthorizationRequest
    package var redirectURI: String
    package var scopes: Set<String>
    package var nonce: String?
    /// SHA-256 of the verifier (RFC 7636, S256); nil if the client sent none.
    package var challenge: [UInt8]?
    /// For a managed account.
    package var orgID: String?
    /// When the user signed in at the operator's page, seconds since 1970.
    package var authenticatedAt: Int64
    package var method = AuthenticationMethod()
    /// The method on the built-in page; nil on the operator's own.
    package var signIn: SignInMethod?
    /// The number of the session on the built-in page; nil on the operator's own.
    package var session: Int64?

    package init(
        grant: AuthorizationRequest, redirectURI: String, scopes: Set<String>, nonce: String?,
        challenge: [UInt8]?,
        orgID: String?,
        authenticatedAt: Int64
    ) {
        self.grant = grant
        self.redirectURI = redirectURI
        self.scopes = scopes
        self.nonce = nonce
        self.challenge = challenge
        self.orgID = orgID
        self.authenticatedAt = authenticatedAt
    }
}

/// How a user was authenticated.
package struct AuthenticationMethod: Sendable, Hashable {
    /// `amr` (RFC 8176), in alphabetical order; empty if not known.
    package let references: [String]
    /// `acr`; nil if not known.
    package let contextClass: String?

    package init(references: Set<String> = [], contextClass: String? = nil) {
        self.references = references.sorted()
        self.contextClass = contextClass
    }

    /// How surely the user signed in.
    package var level: SignInLevel {
        if let contextClass, contextClass.hasSameOctets(as: AuthenticationClass.passkey.rawValue) {
            return .passkey
        }
        return references.contains { $0.hasSameOctets(as: "mfa") } ? .twoFactor : .any
    }
}

/// The claims of an identity token about a user.
package struct TokenSubject: Sendable {
    package let clientID: String
    /// Team-scoped.
    package let sub: String
    package let scopes: Set<String>
    /// Set if the scopes include it, and the account has one.
    package let email: ClientEmail?
    package let nonce: String?
    /// Only in the first tokens of a grant.
    package let realUserStatus: Int?
    package let orgID: String?
    package let authenticatedAt: Int64
    /// Set for some time after the app moved to another team.
    package let transferSub: String?
    package let method: AuthenticationMethod
    /// `sid`, if the user signed in on the built-in page.
    package let sessionID: String?
}

extension TokenSubject: CustomStringConvertible, CustomReflectable {
    package var description: String { "<subject of a token>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// An issued code; prints nothing of it.
package struct IssuedCode: Sendable, CustomStringConvertible, CustomReflectable {
    package let code: String
    package let subject: TokenSubject
    /// Whether name and status are delivered now: with the first authorization, and after the user
    /// returns.
    package let deliversProfile: Bool
    /// The stored name of the user, if it is delivered now.
    package let userName: String?

    package var description: String { "<code>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Issued tokens; prints nothing of them.
package struct IssuedTokens: Sendable, CustomStringConvertible, CustomReflectable {
    package let accessToken: String
    /// With an authorization code; for a public app with each refresh too.
    package let refreshToken: String?
    package let subject: TokenSubject

    package var description: String { "<tokens>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why no token is issued.
package enum GrantRefusal: Error, Sendable, Hashable {
    /// `invalid_grant`: unknown, expired, used, revoked, another client's, or for another redirect
    /// URI. The client learns only this text.
    case invalid(String)
    /// `invalid_scope`: the request exceeds the granted scopes.
    case scope
    /// The daily number is used up until midnight UTC.
    case tooMany
}

/// The result of an exchange. Even a refusal may have changed something, which is committed.
package enum TokenOutcome<Value: Sendable>: Sendable {
    case issued(Value)
    case refused(GrantRefusal)
}

/// The result of a revocation.
package enum RevocationOutcome: Sendable, Hashable {
    /// The grant ended, or the client's own token.
    case revoked
    /// The token is unknown, or its grant ended before.
    case unknown
    /// The token belongs to another client.
    case otherClient
}

/// The holder of an access token.
package struct AccessTokenHolder: Sendable, Hashable {
    package let clientID: String
    package let teamID: String
    package let scopes: Set<String>
}

/// An app that acts for itself.
package struct AppCaller: Sendable, Hashable {
    package let clientID: String
    /// The store's number of its group.
    package let group: Int64
    package let team: APIKey.TeamName
    package let scopes: Set<String>
}
