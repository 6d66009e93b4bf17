// What the provider's endpoints are recognized by the configuration, and what they share.

import Hummingbird
import HTTPTypes
import Identity
import InternetMessage
import JSON
import PosternStore

/// The provider as configured.
package struct ProviderSettings: Sendable {
    /// `iss`: the address that the endpoints are reached at, without a final slash.
    package let issuer: String
    /// The operator's own sign-in page; nil where the discovery document names none.
    package let authorizationEndpoint: String?
    /// Refreshes with one token on one day (UTC).
    package let refreshesPerDay: Int

    package init(issuer: String, authorizationEndpoint: String?, refreshesPerDay: Int) {
        self.issuer = issuer
        self.authorizationEndpoint = authorizationEndpoint
        self.refreshesPerDay = refreshesPerDay
    }
}

/// Scopes that a client may ask for.
enum ProviderScope {
    /// Of a user.
    static let user: Set<String> = ["openid", "email", "name"]
    /// Of the client itself: for `/auth/usermigrationinfo`.
    static let migration = "user.migration"
}

/// Makes identity tokens.
struct TokenMaker: Sendable {
    /// Seconds. As long as an access token: anyone who needs a fresh one refreshes.
    private static let lifetime = ProviderLifetime.accessToken

    let issuer: String
    let key: IdentitySigningKey
    let now: Int64

    /// An identity token for a subject.
    /// - Parameters:
    ///   - code, accessToken: what it comes with.
    func token(_ subject: TokenSubject, code: String? = nil, accessToken: String? = nil) throws -> String {
        var content = IdentityTokenContent(
            issuer: issuer, subject: subject.sub, audience: subject.clientID, issuedAt: now, lifetime: Self.lifetime)
        content.nonce = subject.nonce
        content.email =
            switch subject.email {
            case .relay(let address): .relay(address)
            case .shared(let inbox): .shared(inbox)
            case nil: nil
            }
        content.realUserStatus = subject.realUserStatus.flatMap(RealUserStatus.init(rawValue:))
        content.authenticatedAt = subject.authenticatedAt
        content.transferSubject = subject.transferSub
        content.orgID = subject.orgID
        content.code = code
        content.accessToken = accessToken
        return try key.sign(content.claims)
    }
}

extension HTTPFields {
    /// With what answers that hold a token have to say (RFC 6749 section 5.1).
    var notStored: HTTPFields {
        var fields = self
        fields[.cacheControl] = "no-store"
        if let name = HTTPField.Name("Pragma") { fields[name] = "no-cache" }
        return fields
    }
}

extension Response {
    /// A JSON object as `Identity` writes it: members unchanged.
    static func object(_ object: JSONObject, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        return Response(
            status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: JSONValue.object(object).octets)))
    }
}
