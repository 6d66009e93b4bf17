// A checked authentication request (OpenID Connect Core section 3.1.2.1), as a
// sign-in page uses it. Pure.

import Accounts
import InternetMessage

/// A client's data for `/auth/authorize`.
package struct AuthorizationClient: Sendable, Hashable {
    package let clientID: String
    /// As registered; compared octet by octet.
    package let redirectURIs: [String]
    /// Whether the client has no secret, and so must use PKCE (RFC 9700 section 2.1.1).
    package let isPublic: Bool

    package init(clientID: String, redirectURIs: [String], isPublic: Bool) {
        self.clientID = clientID
        self.redirectURIs = redirectURIs
        self.isPublic = isPublic
    }

    /// Whether responses may go to this URI. Redirect URIs are checked at registration. Checked
    /// again here, so that a scheme such as javascript: is never used.
    package func accepts(_ redirectURI: String) -> Bool {
        redirectURIs.contains { RedirectURI.matches(redirectURI, registered: $0) }
            && (try? RedirectURI.checked(redirectURI)) != nil
    }
}

/// The values that the authorization endpoint returns (OAuth 2.0 Multiple
/// Response Types section 3).
package enum AuthorizationResponseType: String, Sendable, Hashable, CaseIterable, Codable {
    case code
    case codeIDToken = "code id_token"

    /// The response mode if the client names none: a response with a token is never in a query.
    package var defaultMode: AuthorizationResponseMode { self == .code ? .query : .fragment }
}

/// How a response is sent (OAuth 2.0 Multiple Response Types section 2.1, Form Post Response Mode;
/// `web_message` is a message to the window that opened the page).
package enum AuthorizationResponseMode: String, Sendable, Hashable, CaseIterable, Codable {
    case query, fragment
    case formPost = "form_post"
    case webMessage = "web_message"

    /// A form or a message needs an origin.
    package func isPossible(for redirectURI: String) -> Bool {
        switch self {
        case .query, .fragment: true
        case .formPost, .webMessage: WebOrigin(redirectURI) != nil
        }
    }
}

/// How the provider may interact with the user (OpenID Connect Core section 3.1.2.1).
package enum AuthorizationPrompt: String, Sendable, Hashable, CaseIterable, Codable {
    case none, login, consent
    case selectAccount = "select_account"
}

/// Where a response is sent, and how.
package struct AuthorizationResponseTarget: Sendable, Hashable, Codable {
    /// A redirect URI registered for the client.
    package let redirectURI: String
    package let mode: AuthorizationResponseMode
    /// As the client sent it.
    package let state: String?
    /// The provider's `iss`: part of every response (RFC 9207).
    package let issuer: String
}

/// A request that may be shown to the user. Prints nothing, because `loginHint` may be an address.
package struct AuthenticationRequest: Sendable, Hashable, Codable {
    package let clientID: String
    package let target: AuthorizationResponseTarget
    package let responseType: AuthorizationResponseType
    /// Of `openid`, `email`, `name`; unknown ones are dropped (OpenID
    /// Connect Core section 3.1.2.1).
    package let scopes: Set<String>
    package let nonce: String?
    /// SHA-256 of the `code_verifier` (RFC 7636, S256).
    package let challenge: [UInt8]?
    /// `none` appears only alone.
    package let prompts: Set<AuthorizationPrompt>
    /// The most seconds since the user signed in.
    package let maximumAge: Int64?
    /// The user that the client expects: an address or any other text. Never logged.
    package let loginHint: String?
    /// One of the provider's tokens about the expected user; its signature is not checked yet.
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

/// The result of checking a request.
package enum AuthorizationVerdict: Sendable, Hashable {
    /// To be shown to the user.
    case accepted(AuthenticationRequest)
    /// Client or redirect URI is wrong: the user gets a page, never a redirect
    /// (RFC 6749 section 4.1.2.1).
    case page(AuthorizationPageReason)
    /// An error for the client.
    case error(AuthorizationError, AuthorizationResponseTarget)
}

/// Why the client gets no response. The texts are for a developer who reads the page;
/// they repeat no input.
package enum AuthorizationPageReason: String, Sendable, Hashable, CaseIterable {
    case malformed = "The request cannot be read."
    case clientMissing = "The request has no client_id, or more than one."
    case clientUnknown = "The client_id is not registered."
    case redirectMissing = "The request has no redirect_uri, or more than one."
    case redirectUnregistered = "The redirect_uri is not registered for this client_id."
}

/// An error of the authorization endpoint (RFC 6749 section 4.1.2.1, OpenID Connect
/// Core section 3.1.2.6).
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
        /// OpenID Connect Core Error Code unmet_authentication_requirements 1.0.
        case unmetAuthenticationRequirements = "unmet_authentication_requirements"
        case loginRequired = "login_required"
        case accountSelectionRequired = "account_selection_required"
        case consentRequired = "consent_required"
        case requestNotSupported = "request_not_supported"
        case requestURINotSupported = "request_uri_not_supported"
        case registrationNotSupported = "registration_not_supported"
    }

    package let code: Code
    /// Printable ASCII without `"` and `\`; repeats no input.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
