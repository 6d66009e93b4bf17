// Identity tokens, and answers that hold them.

import Database
import Accounts
import SignIn
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import JSON

/// Makes identity tokens.
struct TokenMaker: Sendable {
    /// Seconds. As long as an access token: anyone who needs a fresh one refreshes.
    private static let lifetime = ProviderLifetime.accessToken

    let issuer: String
    let key: IdentitySigningKey
    let now: Int64

    /// An identity token for a subject. That it cannot be signed is a failure of the transaction that it is made in.
    /// - Parameters:
    ///   - code, accessToken: what it comes with.
    func token(_ subject: TokenSubject, code: String? = nil, accessToken: String? = nil) throws(StoreFailure) -> String {
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
        content.method = subject.method
        content.transferSubject = subject.transferSub
        content.orgID = subject.orgID
        content.code = code
        content.accessToken = accessToken
        do { return try key.sign(content.claims) } catch {
            throw .temporary(.resources, "an identity token cannot be signed: \(error)")
        }
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
        Response(
            status: status, type: "application/json", headers: headers,
            body: ByteBuffer(bytes: JSONValue.object(object).octets))
    }

    /// One that no cache may keep.
    static func unstored(_ object: JSONObject) -> Response { .object(object, headers: HTTPFields().notStored) }
}

extension JSONObject {
    /// Adds the address that an app gets; nothing where it gets none.
    mutating func setEmail(_ email: ClientEmail?) {
        switch email {
        case .relay(let address): self["email"] = .string(address.wireForm)
        case .shared(let inbox): self["email"] = .string(inbox.revealed.wireForm)
        case nil: break
        }
    }
}
