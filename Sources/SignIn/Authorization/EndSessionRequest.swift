// Sign-out at an app's request (OpenID Connect RP-Initiated Logout 1.0 section 2). Pure.

import Accounts
import Support

/// A checked request to `/auth/end-session`.
package struct EndSessionRequest: Sendable, Hashable, Codable {
    /// The app; nil if it did not identify itself.
    package let clientID: String?
    /// The user, by the app's token; without it the page asks the user.
    package let subject: String?
    /// The address to which the user returns: registered for the app, octet by octet.
    package let redirectURI: String?
    package let state: String?

    /// The address to which the browser goes after sign-out; nil for none.
    package var destination: String? {
        guard let redirectURI else { return nil }
        guard let state else { return redirectURI }
        let mark = redirectURI.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        return "\(redirectURI)\(mark)\(FormEncoding.encode([("state", state)]))"
    }

    /// Why the user gets a page and no redirect.
    package enum Refusal: String, Error, Sendable, Hashable, CaseIterable {
        case malformed = "The request cannot be read."
        case clientDiffers = "The client_id is not that of the id_token_hint."
        case redirectUnregistered =
            "The post_logout_redirect_uri is not registered for this client_id."
    }

    /// The app that a request names by `client_id`, unless the token names it.
    package static func clientID(
        _ parameters: AuthorizationParameters, hint: IdentityClaims?
    ) -> String? {
        hint?.audience ?? parameters.clientID
    }

    /// - Parameters:
    ///   - hint: the claims of `id_token_hint`, if it is one of the provider's tokens;
    ///     it may have expired.
    ///   - redirectURIs: the URIs registered for `clientID(_:hint:)`.
    package init(
        _ parameters: AuthorizationParameters, hint: IdentityClaims?, redirectURIs: [String]
    ) throws(Refusal) {
        let names: Set<WireText> = [
            "client_id", "id_token_hint", "post_logout_redirect_uri", "state",
        ]
        guard parameters.repeated.isDisjoint(with: names) else { throw .malformed }
        if let hint, let clientID = parameters.clientID, !hint.audience.hasSameOctets(as: clientID)
        {
            throw .clientDiffers
        }
        clientID = Self.clientID(parameters, hint: hint)
        subject = hint?.subject
        redirectURI = parameters["post_logout_redirect_uri"]?.text
        if let redirectURI,
            !redirectURIs.contains(where: { RedirectURI.matches(redirectURI, registered: $0) })
        {
            throw .redirectUnregistered
        }
        state = parameters["state"].flatMap {
            $0.octets.count <= AuthenticationRequestReader.maximumState ? $0.text : nil
        }
    }
}
