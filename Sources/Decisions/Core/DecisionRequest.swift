// A request as a backend sends it, before any lookup.

import CEL
import RiskPolicy
import SignIn

/// "Does this person need an extra check before I continue?"
package struct DecisionRequest: Sendable {
    /// The event as the backend names it; Postern determines the actual event.
    package var event: PolicyEvent
    /// The app's `client_id`.
    package var clientID: String
    /// A JWT of a configured issuer.
    package var identityToken: String?
    /// As the app created it, before any hash.
    package var nonce: String?
    /// The account, if it is known.
    package var sub: String?
    /// The app's own account, for an upgrade that begins without a `sub`.
    package var appAccount: String?
    /// The device that the user is on, by its id from `/v1/attestations`.
    package var device: String?
    /// Where the result goes if the page carries out the check; nil if the app does that itself.
    package var challenge: ChallengeRequest?
    /// Values that the backend adds, by the name under `context.`.
    package var context: [(name: String, value: CELValue)]
    /// Whether a person typed the values as text, so that the policy's declared types decide how
    /// they are read.
    package var isContextTyped = false

    package init(
        event: PolicyEvent, clientID: String, identityToken: String? = nil, nonce: String? = nil,
        sub: String? = nil,
        appAccount: String? = nil, device: String? = nil, challenge: ChallengeRequest? = nil,
        context: [(name: String, value: CELValue)] = []
    ) {
        self.event = event
        self.clientID = clientID
        self.identityToken = identityToken
        self.nonce = nonce
        self.sub = sub
        self.appAccount = appAccount
        self.device = device
        self.challenge = challenge
        self.context = context
    }

    /// Longest `sub` and `app_account`, in octets (OpenID Connect Core section 2).
    package static let maximumNameLength = 255

    /// Checks that the request names a subject only once.
    func check() throws(DecisionError) {
        guard identityToken != nil || sub != nil || appAccount != nil else {
            throw .invalid(
                "/identity_token",
                "name the subject: identity_token, sub, or app_account for an upgrade")
        }
        if appAccount != nil {
            guard event == .upgrade else {
                throw .invalid("/app_account", "app_account is only for the event upgrade")
            }
            guard identityToken == nil, sub == nil else {
                throw .invalid(
                    "/app_account",
                    "app_account is only for an upgrade without sub and identity_token")
            }
        }
        guard nonce == nil || identityToken != nil else {
            throw .invalid("/nonce", "a nonce needs an identity_token, and there is none")
        }
        for (pointer, text) in [("/sub", sub), ("/app_account", appAccount)] {
            guard let text else { continue }
            guard (1...Self.maximumNameLength).contains(text.utf8.count) else {
                throw .invalid(pointer, "must be 1 to \(Self.maximumNameLength) octets")
            }
        }
    }
}

/// A check that the built-in page is to carry out, if one is required.
package struct ChallengeRequest: Sendable, Hashable {
    /// One of the app's.
    package let redirectURI: String
    /// `response_mode`; nil for a query.
    package let mode: AuthorizationResponseMode?
    /// Returned with the result.
    package let state: String?

    package init(redirectURI: String, mode: AuthorizationResponseMode? = nil, state: String? = nil)
    {
        self.redirectURI = redirectURI
        self.mode = mode
        self.state = state
    }
}

extension DecisionRequest: CustomStringConvertible, CustomReflectable {
    /// Never contains the token, the nonce or the subject.
    package var description: String { "<question \(event.rawValue) for \(clientID)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The requesting team.
package struct Requester: Sendable, Hashable {
    package let id: String
    /// The store's own number.
    package let number: Int64

    package init(id: String, number: Int64) {
        self.id = id
        self.number = number
    }
}

/// Why a request or a report gets no answer. The texts are for the requesting team: they contain
/// nothing about other teams, tokens or people.
package enum DecisionError: Error, Sendable, Hashable {
    /// The backend must change the request first (422). `pointer`: the member, as a JSON pointer.
    case invalid(String, String)
    /// The request conflicts with the current state (409).
    case conflict(String)
    /// The team has no such decision (404).
    case notFound
    /// Not available now (503); retry after this many seconds.
    case unavailable(String, retryAfter: Int64)
    /// Too many requests at the same time (429); retry after a second.
    case busy
}

extension DecisionError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .invalid(let pointer, let detail): "\(pointer.dropFirst()): \(detail)"
        case .conflict(let detail): detail
        case .notFound: "unknown decision"
        case .unavailable(let detail, let seconds): "\(detail); try again in \(seconds) s"
        case .busy: "too many requests at once; try again in 1 s"
        }
    }
}
