// One visit of a browser to the operator's OpenID provider: the request, and the
// expected response. Pure.

import Accounts
import Database
import InternetMessage
import MailCrypto
import Support

/// The value that a browser stores, sealed, while its user is at the provider. The store keeps
/// nothing for users who do not return.
package struct UpstreamAttempt: Sendable, Codable {
    /// Seconds for which the user may be at the provider.
    package static let lifetime: Int64 = 15 * 60
    /// Random octets of each value.
    private static let randomLength = 32

    package let state: String
    let nonce: String
    /// The verifier of PKCE (RFC 7636).
    let verifier: String
    /// Keyed hash of the cookie of the browser.
    let browser: [UInt8]
    /// The handle of the app's request that the user signs in for; nil for none.
    package let request: String?
    /// Seconds since 1970.
    package let begunAt: Int64
    /// Whether the user must sign in again.
    let isFresh: Bool
    /// The most seconds since the sign-in; nil for any.
    let maximumAge: Int64?

    init(
        browser: [UInt8], request: String?, now: Int64, isFresh: Bool, maximumAge: Int64?
    ) throws(StoreFailure) {
        state = Base64URL.encode(try SecureRandom.octets(Self.randomLength))
        nonce = Base64URL.encode(try SecureRandom.octets(Self.randomLength))
        verifier = Base64URL.encode(try SecureRandom.octets(Self.randomLength))
        self.browser = browser
        self.request = request
        begunAt = now
        self.isFresh = isFresh
        self.maximumAge = maximumAge
    }

    /// The address to which the browser is sent.
    package func address(
        _ metadata: UpstreamMetadata, _ settings: UpstreamSettings, redirectURI: String,
        language: String
    ) -> String {
        var parameters = [
            ("response_type", "code"), ("client_id", settings.clientID),
            ("redirect_uri", redirectURI),
            ("scope", settings.scopes.joined(separator: " ")), ("state", state), ("nonce", nonce),
            ("code_challenge", Base64URL.encode(SHA256.hash(verifier.utf8))),
            ("code_challenge_method", "S256"),
            ("ui_locales", language),
        ]
        if isFresh { parameters.append(("prompt", "login")) }
        if let maximumAge { parameters.append(("max_age", "\(maximumAge)")) }
        let address = metadata.authorizationEndpoint
        return address + (address.contains("?") ? "&" : "?") + FormEncoding.encode(parameters)
    }

    /// The code of the response. Throws `stale`, `declined`, and `unproved` for a
    /// response of another issuer.
    /// - Parameter parameter: a value of the query.
    package func code(
        _ metadata: UpstreamMetadata, _ settings: UpstreamSettings, now: Int64,
        _ parameter: (String) -> String?
    ) throws(UpstreamFailure) -> String {
        guard let state = parameter("state"),
            constantTimeEqual(Array(state.utf8), Array(self.state.utf8)),
            now < begunAt + Self.lifetime
        else { throw .stale }
        if let issuer = parameter("iss") {
            guard issuer.utf8.elementsEqual(settings.issuer.utf8) else {
                throw .unproved("it names another issuer")
            }
        } else if metadata.namesIssuer {
            throw .unproved("it names no issuer")
        }
        if let error = parameter("error") {
            throw .declined(
                error.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F }
                    ? error.withoutControls(limit: 64) : "?")
        }
        guard let code = parameter("code"), (1...4096).contains(code.utf8.count) else {
            throw .unproved("it has no code")
        }
        return code
    }

    /// When the user signed in there, in seconds since 1970. Throws `unproved` if the sign-in must
    /// be recent and the claims do not show that.
    func authenticationTime(
        _ claims: IdentityClaims, leeway: Int64, now: Int64
    ) throws(UpstreamFailure) -> Int64 {
        let time = claims.authenticatedAt
        if isFresh || maximumAge != nil {
            guard let time else { throw .unproved("auth_time is missing") }
            if isFresh, time < begunAt - leeway {
                throw .unproved("the user did not sign in again")
            }
            if let maximumAge, time < begunAt - maximumAge - leeway {
                throw .unproved("the user signed in too long ago")
            }
        }
        // A sign-in during this visit counts as now, because the two clocks may differ.
        return min(now, time.map { $0 >= begunAt - leeway ? now : $0 } ?? now)
    }
}

/// The user who signed in at the provider, according to its signed token.
package struct UpstreamIdentity: Sendable {
    package let issuer: String
    package let subject: String
    /// Nil if the provider gives none that can be trusted as the user's own.
    package let address: InboxAddress?
    package let name: String?
    /// Seconds since 1970.
    package let authenticatedAt: Int64
    /// The known values of `amr` (RFC 8176).
    package let references: Set<String>

    /// - Parameter profile: the response of the userinfo endpoint; nil if it was not queried.
    init(
        _ claims: IdentityClaims, profile: JSONObject?, _ settings: UpstreamSettings,
        authenticatedAt: Int64
    ) throws(UpstreamFailure) {
        issuer = claims.issuer
        subject = claims.subject
        self.authenticatedAt = authenticatedAt
        let words = claims.all["amr"]?.array?.compactMap(\.string) ?? []
        references = Set(words).intersection(Self.knownReferences)
        guard let profile else {
            (address, name) = (
                Self.address(claims.email, claims.emailVerified, settings),
                claims.all["name"]?.string
            )
            return
        }
        // With a substituted access token, an attacker could give the user someone else's address.
        guard profile["sub"]?.string?.utf8.elementsEqual(claims.subject.utf8) == true else {
            throw .unproved("the userinfo is of another user")
        }
        let isVerified = (try? ClaimReader(profile).flag("email_verified")) ?? nil
        let email = profile["email"]?.string.flatMap { AddrSpec(envelope: $0) }.map(
            InboxAddress.init)
        address = Self.address(email, isVerified, settings)
        name = (profile["name"] ?? claims.all["name"])?.string
    }

    private static func address(
        _ email: InboxAddress?, _ isVerified: Bool?, _ settings: UpstreamSettings
    ) -> InboxAddress? {
        switch settings.addresses {
        case .verified: isVerified == true ? email : nil
        // An address that the provider reports as unverified proves nothing.
        case .all: isVerified == false ? nil : email
        }
    }

    /// The registered values (RFC 8176 section 2).
    private static let knownReferences: Set<String> = [
        "face", "fpt", "geo", "hwk", "iris", "kba", "mca", "mfa", "otp", "pin", "pop", "pwd", "rba",
        "retina", "sc", "sms", "swk",
        "tel", "user", "vbm", "wia",
    ]
}

extension UpstreamIdentity: CustomStringConvertible, CustomReflectable {
    package var description: String { "<identity>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
