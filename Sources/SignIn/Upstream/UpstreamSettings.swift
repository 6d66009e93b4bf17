// The operator's existing OpenID provider, as a way to sign in here: the configuration, and the
// provider's metadata. Pure.

import Accounts
import Support

/// As configured (`sign_in.upstream`).
package struct UpstreamSettings: Sendable {
    /// The effect of a first sign-in if a user here has the verified inbox that the provider names.
    package enum Links: String, Sendable, CaseIterable {
        /// It signs in as that user.
        case verifiedAddress = "verified-address"
        /// The sign-in is refused: an inbox is proved only here.
        case never
    }

    /// The addresses that are trusted as the user's own.
    package enum Addresses: String, Sendable, CaseIterable {
        /// Those with `email_verified`.
        case verified
        /// All addresses: for a provider whose users cannot choose their address, and that does
        /// not mark addresses as verified.
        case all
    }

    /// `iss`, octet by octet.
    package let issuer: String
    package let clientID: String
    /// Nil for a public client.
    package let secret: ClientSecretText?
    /// On the button.
    package let name: String
    /// Including `openid`.
    package let scopes: [String]
    package let links: Links
    package let addresses: Addresses
    /// Whether this is the only way to sign in.
    package let isOnly: Bool

    package init(
        issuer: String, clientID: String, secret: ClientSecretText?, name: String,
        scopes: [String] = ["openid", "email"],
        links: Links = .never, addresses: Addresses = .verified, isOnly: Bool = false
    ) {
        self.issuer = issuer
        self.clientID = clientID
        self.secret = secret
        self.name = name
        self.scopes = scopes.contains("openid") ? scopes : ["openid"] + scopes
        self.links = links
        self.addresses = addresses
        self.isOnly = isOnly
    }
}

/// Postern's client secret at another provider. Prints nothing.
package struct ClientSecretText: Sendable, CustomStringConvertible, CustomReflectable {
    package let revealed: String
    package init(_ text: String) { revealed = text }
    package var description: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why a sign-in by the provider failed. The details are for the operator's log: they contain no
/// address and no token.
package enum UpstreamFailure: Error, Sendable, CustomStringConvertible {
    /// The provider cannot be reached, or its response is not valid.
    case unavailable(String)
    /// The provider sent the user back with an error. Only its code is kept, because anyone
    /// may have written its text.
    case declined(String)
    /// The response does not belong to this browser's attempt, or came too late.
    case stale
    /// The response is not proved to come from the provider.
    case unproved(String)

    package var description: String {
        switch self {
        case .unavailable(let detail): "the provider is not available: \(detail)"
        case .declined(let code): "the provider declined: \(code)"
        case .stale: "the answer belongs to no sign-in of this browser"
        case .unproved(let detail): "the provider's answer is not valid: \(detail)"
        }
    }
}

/// The provider's metadata (OpenID Connect Discovery section 3).
package struct UpstreamMetadata: Sendable, Hashable {
    package let authorizationEndpoint: String
    package let tokenEndpoint: String
    package let userInfoEndpoint: String?
    package let keys: String
    /// Whether responses name their issuer (RFC 9207).
    package let namesIssuer: Bool
    /// Whether the secret is sent in the form instead of a header field.
    package let secretInForm: Bool

    /// Reads a discovery document. Throws `unavailable` for a document of another issuer, and for
    /// addresses that must not be used.
    package init(_ document: [UInt8], issuer: String) throws(UpstreamFailure) {
        guard let object = try? StrictJSON.parseObject(document, limit: document.count) else {
            throw .unavailable("its metadata is not a valid JSON object")
        }
        func text(_ name: String) -> String? { object[name]?.string }
        guard let said = text("issuer"), said.utf8.elementsEqual(issuer.utf8) else {
            throw .unavailable("its metadata names another issuer")
        }
        func address(_ name: String) throws(UpstreamFailure) -> String? {
            guard let address = text(name) else { return nil }
            if let objection = KeySetAddress.objection(address) {
                throw .unavailable("\(name): \(objection)")
            }
            return address
        }
        func required(_ name: String) throws(UpstreamFailure) -> String {
            guard let address = try address(name) else {
                throw .unavailable("its metadata has no \(name)")
            }
            return address
        }
        authorizationEndpoint = try required("authorization_endpoint")
        tokenEndpoint = try required("token_endpoint")
        keys = try required("jwks_uri")
        userInfoEndpoint = try address("userinfo_endpoint")
        namesIssuer = object["authorization_response_iss_parameter_supported"] == .bool(true)
        // By default the secret is sent in the header field (OpenID Connect Discovery section
        // 3). In a form every secret arrives unchanged, while not all providers decode the
        // header field (RFC 6749 section 2.3.1).
        let methods =
            object["token_endpoint_auth_methods_supported"]?.array?.compactMap(\.string) ?? []
        secretInForm = methods.contains("client_secret_post")
    }
}
