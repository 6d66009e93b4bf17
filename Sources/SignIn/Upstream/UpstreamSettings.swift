// The OpenID provider that the operator already has, as a way to sign in here: what is configured, and what the provider says of
// itself. Pure.

import Accounts
import JSON
import Support

/// As configured (`sign_in.upstream`).
package struct UpstreamSettings: Sendable {
    /// What a first sign-in does where a user here has the verified inbox that the provider names.
    package enum Links: String, Sendable, CaseIterable {
        /// It signs in as that user.
        case verifiedAddress = "verified-address"
        /// It is refused: whose inbox it is, is shown here alone.
        case never
    }

    /// Whose addresses are taken for the user's own.
    package enum Addresses: String, Sendable, CaseIterable {
        /// Those with `email_verified`.
        case verified
        /// All: for a provider whose users cannot choose their address, and that does not say so.
        case all
    }

    /// `iss`, octet by octet.
    package let issuer: String
    package let clientID: String
    /// Nil for a public client.
    package let secret: ClientSecretText?
    /// On the button.
    package let name: String
    /// With `openid`.
    package let scopes: [String]
    package let links: Links
    package let addresses: Addresses
    /// Whether there is no other way in.
    package let isOnly: Bool

    package init(
        issuer: String, clientID: String, secret: ClientSecretText?, name: String, scopes: [String] = ["openid", "email"],
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

/// A client secret of ours at another provider. Prints nothing.
package struct ClientSecretText: Sendable, CustomStringConvertible, CustomReflectable {
    package let revealed: String
    package init(_ text: String) { revealed = text }
    package var description: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why someone did not come in by the provider. The details are for the operator's log: they have no address and no token.
package enum UpstreamFailure: Error, Sendable, CustomStringConvertible {
    /// The provider cannot be asked, or says something that is no answer.
    case unavailable(String)
    /// It sent the user back with an error: its code alone, as its text is anyone's.
    case declined(String)
    /// What came back does not belong to what was begun in this browser, or too late.
    case stale
    /// It is not proved that the provider said so.
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

/// What the provider says of itself (OpenID Connect Discovery section 3).
package struct UpstreamMetadata: Sendable, Hashable {
    package let authorizationEndpoint: String
    package let tokenEndpoint: String
    package let userInfoEndpoint: String?
    package let keys: String
    /// Whether answers name their issuer (RFC 9207).
    package let namesIssuer: Bool
    /// Whether the secret goes into the form and not into a header field.
    package let secretInForm: Bool

    /// Reads a discovery document. Throws `unavailable` for one of another issuer, and for addresses that are not to be used.
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
            if let objection = KeySetAddress.objection(address) { throw .unavailable("\(name): \(objection)") }
            return address
        }
        func required(_ name: String) throws(UpstreamFailure) -> String {
            guard let address = try address(name) else { throw .unavailable("its metadata has no \(name)") }
            return address
        }
        authorizationEndpoint = try required("authorization_endpoint")
        tokenEndpoint = try required("token_endpoint")
        keys = try required("jwks_uri")
        userInfoEndpoint = try address("userinfo_endpoint")
        namesIssuer = object["authorization_response_iss_parameter_supported"] == .bool(true)
        // Where nothing is said the header field (OpenID Connect Discovery section 3). In a form every secret arrives as it is,
        // while not all providers decode what stands in the field (RFC 6749 section 2.3.1).
        let methods = object["token_endpoint_auth_methods_supported"]?.array?.compactMap(\.string) ?? []
        secretInForm = methods.contains("client_secret_post")
    }
}
