// Identity tokens for signed-in users, on either sign-in page.

import Accounts
import Database
import Support

/// Makes identity tokens.
package struct TokenMaker: Sendable {
    /// Seconds. The same as for an access token: a client that needs a new one refreshes.
    private static let lifetime = ProviderLifetime.accessToken

    let issuer: String
    let key: IdentitySigningKey
    let now: Int64

    package init(issuer: String, key: IdentitySigningKey, now: Int64) {
        self.issuer = issuer
        self.key = key
        self.now = now
    }

    /// An identity token for a subject. If it cannot be signed, its transaction fails.
    /// - Parameters:
    ///   - code, accessToken: the code or token sent with it.
    package func token(
        _ subject: TokenSubject, code: String? = nil, accessToken: String? = nil
    ) throws(StoreFailure) -> String {
        var content = IdentityTokenContent(
            issuer: issuer, subject: subject.sub, audience: subject.clientID, issuedAt: now,
            lifetime: Self.lifetime)
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
        content.sessionID = subject.sessionID
        content.code = code
        content.accessToken = accessToken
        do { return try key.sign(content.claims) } catch {
            throw .temporary(.resources, "an identity token cannot be signed: \(error)")
        }
    }
}

extension JSONObject {
    /// Adds the address that an app gets, if it gets one.
    package mutating func setEmail(_ email: ClientEmail?) {
        switch email {
        case .relay(let address): self["email"] = .string(address.wireForm)
        case .shared(let inbox): self["email"] = .string(inbox.revealed.wireForm)
        case nil: break
        }
    }
}

extension IdentitySigner {
    /// Makes identity tokens issued now.
    /// - Parameter algorithm: the one registered for the client.
    package func maker(issuer: String, _ algorithm: String, now: Int64) async throws -> TokenMaker {
        TokenMaker(
            issuer: issuer, key: try await key(SignatureAlgorithm(rawValue: algorithm) ?? .es256),
            now: now)
    }
}
