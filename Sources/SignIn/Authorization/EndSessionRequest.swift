// Signing out at an app's request (OpenID Connect RP-Initiated Logout 1.0 section 2). Pure.

import Support

/// A request to `/auth/end-session` that was checked.
package struct EndSessionRequest: Sendable, Hashable, Codable {
    /// The app; nil where it did not say who it is.
    package let clientID: String?
    /// Whom the app means, by its token: without it the user is to be asked.
    package let subject: String?
    /// Where the user goes afterwards: registered for the app, octet by octet.
    package let redirectURI: String?
    package let state: String?

    /// Where the browser goes once the user is signed out; nil for nowhere.
    package var destination: String? {
        guard let redirectURI else { return nil }
        guard let state else { return redirectURI }
        let mark = redirectURI.contains("?") ? "&" : "?"
        return "\(redirectURI)\(mark)\(FormEncoding.encode([("state", state)]))"
    }

    /// Why the user gets a page and goes nowhere.
    package enum Refusal: String, Error, Sendable, Hashable {
        case malformed = "The request cannot be read."
        case clientDiffers = "The client_id is not that of the id_token_hint."
        case redirectUnregistered = "The post_logout_redirect_uri is not registered for this client_id."
    }

    /// The app that a request names by `client_id`, unless the token names one.
    package static func clientID(_ parameters: AuthorizationParameters, hint: IdentityClaims?) -> String? {
        hint?.audience ?? parameters.clientID
    }

    /// - Parameters:
    ///   - hint: the claims of `id_token_hint`, where it is a token of ours; it may have expired.
    ///   - redirectURIs: those that are registered for `clientID(_:hint:)`.
    package init(
        _ parameters: AuthorizationParameters, hint: IdentityClaims?, redirectURIs: [String]
    ) throws(Refusal) {
        let names: Set = ["client_id", "id_token_hint", "post_logout_redirect_uri", "state"]
        guard parameters.repeated.isDisjoint(with: names) else { throw .malformed }
        if let hint, let clientID = parameters.clientID, !hint.audience.hasSameOctets(as: clientID) { throw .clientDiffers }
        clientID = Self.clientID(parameters, hint: hint)
        subject = hint?.subject
        redirectURI = parameters["post_logout_redirect_uri"]
        if let redirectURI, !redirectURIs.contains(where: redirectURI.hasSameOctets(as:)) { throw .redirectUnregistered }
        state = parameters["state"].flatMap { $0.utf8.count <= AuthenticationRequestReader.maximumState ? $0 : nil }
    }
}
