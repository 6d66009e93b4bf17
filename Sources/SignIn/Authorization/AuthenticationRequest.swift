// An authentication request (OpenID Connect Core section 3.1.2.1) that was checked: what a sign-in page works with. Pure.

import Accounts
import InternetMessage

/// A client as `/auth/authorize` needs to know it.
package struct AuthorizationClient: Sendable, Hashable {
    package let clientID: String
    /// As registered; compared octet by octet.
    package let redirectURIs: [String]
    /// Whether it has no secret, and so must use PKCE (RFC 9700 section 2.1.1).
    package let isPublic: Bool

    package init(clientID: String, redirectURIs: [String], isPublic: Bool) {
        self.clientID = clientID
        self.redirectURIs = redirectURIs
        self.isPublic = isPublic
    }
}

/// What the authorization endpoint gives (OAuth 2.0 Multiple Response Types section 3).
package enum AuthorizationResponseType: String, Sendable, Hashable, CaseIterable, Codable {
    case code
    case codeIDToken = "code id_token"

    /// How it is answered where the client does not say: what holds a token is never in a query.
    package var defaultMode: AuthorizationResponseMode { self == .code ? .query : .fragment }
}

/// How an answer travels (OAuth 2.0 Multiple Response Types section 2.1, Form Post Response Mode; `web_message` is a message to
/// the window that opened the page).
package enum AuthorizationResponseMode: String, Sendable, Hashable, CaseIterable, Codable {
    case query, fragment
    case formPost = "form_post"
    case webMessage = "web_message"
}

/// How the user is asked (OpenID Connect Core section 3.1.2.1).
package enum AuthorizationPrompt: String, Sendable, Hashable, CaseIterable, Codable {
    case none, login, consent
    case selectAccount = "select_account"
}

/// Where an answer goes, and how.
package struct AuthorizationResponseTarget: Sendable, Hashable, Codable {
    /// Registered for the client.
    package let redirectURI: String
    package let mode: AuthorizationResponseMode
    /// As the client sent it.
    package let state: String?
    /// Our own `iss`: in every answer (RFC 9207).
    package let issuer: String
}

/// A request that may be shown to the user. Prints nothing: `loginHint` may be an address.
package struct AuthenticationRequest: Sendable, Hashable, Codable {
    package let clientID: String
    package let target: AuthorizationResponseTarget
    package let responseType: AuthorizationResponseType
    /// Of `openid`, `email`, `name`; unknown ones are left out (OpenID Connect Core section 3.1.2.1).
    package let scopes: Set<String>
    package let nonce: String?
    /// SHA-256 of the `code_verifier` (RFC 7636, S256).
    package let challenge: [UInt8]?
    /// `none` is alone.
    package let prompts: Set<AuthorizationPrompt>
    /// Seconds since the user signed in, at most.
    package let maximumAge: Int64?
    /// Whom the client expects: an address or anything else. Never logged.
    package let loginHint: String?
    /// A token of ours about the user whom the client expects; its signature is not checked yet.
    package var identityTokenHint: String?
    /// Language tags (RFC 5646), the preferred one first.
    package let uiLocales: [String]
    /// `acr` values, the preferred one first.
    package let contextClasses: [String]
}

extension AuthenticationRequest: CustomStringConvertible, CustomReflectable {
    package var description: String { "<request of \(clientID)>" }
    package var customMirror: Mirror { Mirror(self, children: ["clientID": clientID]) }
}

/// What becomes of a request.
package enum AuthorizationVerdict: Sendable, Hashable {
    /// To be shown to the user.
    case accepted(AuthenticationRequest)
    /// Client or redirect URI is wrong: a page for the user, never a redirect (RFC 6749 section 4.1.2.1).
    case page(AuthorizationPageReason)
    /// An error for the client.
    case error(AuthorizationError, AuthorizationResponseTarget)
}

/// Why the client gets no answer. The texts are for a developer who looks at the page; they repeat nothing that was sent.
package enum AuthorizationPageReason: String, Sendable, Hashable, CaseIterable {
    case malformed = "The request cannot be read."
    case clientMissing = "The request has no client_id, or more than one."
    case clientUnknown = "The client_id is not registered."
    case redirectMissing = "The request has no redirect_uri, or more than one."
    case redirectUnregistered = "The redirect_uri is not registered for this client_id."
}

/// An error of the authorization endpoint (RFC 6749 section 4.1.2.1, OpenID Connect Core section 3.1.2.6).
package struct AuthorizationError: Error, Sendable, Hashable {
    package enum Code: String, Sendable, Hashable, CaseIterable, Codable {
        case invalidRequest = "invalid_request"
        case unauthorizedClient = "unauthorized_client"
        case accessDenied = "access_denied"
        case unsupportedResponseType = "unsupported_response_type"
        case invalidScope = "invalid_scope"
        case serverError = "server_error"
        case temporarilyUnavailable = "temporarily_unavailable"
        case interactionRequired = "interaction_required"
        case loginRequired = "login_required"
        case accountSelectionRequired = "account_selection_required"
        case consentRequired = "consent_required"
        case requestNotSupported = "request_not_supported"
        case requestURINotSupported = "request_uri_not_supported"
        case registrationNotSupported = "registration_not_supported"
    }

    package let code: Code
    /// Printable ASCII without `"` and `\`; repeats nothing that was sent.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
