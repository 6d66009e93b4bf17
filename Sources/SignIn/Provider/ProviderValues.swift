// Sign-in as the provider's clients see it.

import Accounts
import InternetMessage

/// How long codes and tokens live, in seconds, and how many there are.
package enum ProviderLifetime {
    package static let code: Int64 = 300
    package static let accessToken: Int64 = 3_600
    /// Refresh tokens of one grant and app: one for each device that a user signed in on. The oldest makes room for a new one.
    package static let refreshTokensPerGrant = 50
}

/// What is asked for with `POST /v1/authorizations`.
package struct ProviderAuthorization: Sendable {
    package var grant: AuthorizationRequest
    package var redirectURI: String
    package var scopes: Set<String>
    package var nonce: String?
    /// SHA-256 of the verifier (RFC 7636, S256); nil where the client sent none.
    package var challenge: [UInt8]?
    /// Of a managed account.
    package var orgID: String?
    /// When the user signed in at the operator's, seconds since 1970.
    package var authenticatedAt: Int64
    package var method = AuthenticationMethod()
    /// At the built-in page; nil at the operator's own.
    package var signIn: SignInMethod?
    /// Whether `/auth/userinfo` may give the user's name as it is stored: not where the user gave another one for this app.
    package var givesStoredName = true

    package init(
        grant: AuthorizationRequest, redirectURI: String, scopes: Set<String>, nonce: String?, challenge: [UInt8]?,
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
    /// `amr` (RFC 8176), in alphabetical order; empty where it is not known.
    package let references: [String]
    /// `acr`; nil where it is not known.
    package let contextClass: String?

    package init(references: Set<String> = [], contextClass: String? = nil) {
        self.references = references.sorted()
        self.contextClass = contextClass
    }
}

/// What an identity token says of a user.
package struct TokenSubject: Sendable {
    package let clientID: String
    /// Team-scoped.
    package let sub: String
    package let scopes: Set<String>
    /// Where the scopes hold it, and the account has one.
    package let email: ClientEmail?
    package let nonce: String?
    /// In the first tokens of a grant alone.
    package let realUserStatus: Int?
    package let orgID: String?
    package let authenticatedAt: Int64
    /// For some time after the app moved to another team.
    package let transferSub: String?
    package let method: AuthenticationMethod
}

extension TokenSubject: CustomStringConvertible, CustomReflectable {
    package var description: String { "<subject of a token>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A code that was issued; prints nothing of it.
package struct IssuedCode: Sendable, CustomStringConvertible, CustomReflectable {
    package let code: String
    package let subject: TokenSubject
    /// Whether name and status are delivered now: at the first time and after a return.
    package let deliversProfile: Bool
    /// The user's name as the store has it, where it is delivered now.
    package let userName: String?

    package var description: String { "<code>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Tokens that were issued; prints nothing of them.
package struct IssuedTokens: Sendable, CustomStringConvertible, CustomReflectable {
    package let accessToken: String
    /// With an authorization code alone.
    package let refreshToken: String?
    package let subject: TokenSubject

    package var description: String { "<tokens>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why no token is given.
package enum GrantRefusal: Error, Sendable, Hashable {
    /// `invalid_grant`: unknown, expired, used, revoked, another client's, or for another redirect URI. The client is told no
    /// more than the text.
    case invalid(String)
    /// `invalid_scope`: more is asked for than was granted.
    case scope
    /// The daily number is used up until midnight UTC.
    case tooMany
}

/// What an exchange came to. A refusal may have changed something all the same: it is committed.
package enum TokenOutcome<Value: Sendable>: Sendable {
    case issued(Value)
    case refused(GrantRefusal)
}

/// What came of a revocation.
package enum RevocationOutcome: Sendable, Hashable {
    /// The grant ended, or the client's own token.
    case revoked
    /// No one knows the token, or what it was for ended before.
    case unknown
    /// It was given to another client.
    case otherClient
}

/// Who holds an access token.
package struct AccessTokenHolder: Sendable, Hashable {
    package let clientID: String
    package let teamID: String
    package let scopes: Set<String>
}

/// An app that asks for itself.
package struct AppCaller: Sendable, Hashable {
    package let clientID: String
    /// The store's number of its group.
    package let group: Int64
    package let team: APIKey.TeamName
    package let scopes: Set<String>
}
