// Who a client is: client_id and client_secret, a JWT that its team signed.

import Accounts
import SignIn
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import Support

extension SignInRoutes {
    /// The client. In the body (`client_secret_post`) or by HTTP Basic, and not by both (RFC 6749 section 2.3).
    /// Throws `AuthError` (`invalid_client`, `invalid_request`) and what the store throws.
    func client(_ request: Request, _ form: FormBody) async throws -> ProviderClient {
        let (clientID, secret, byHeader) = try credentials(request, form)
        return try await client(id: clientID, secret: secret, byHeader: byHeader)
    }

    /// The client with this secret. Throws as `client(_:_:)`.
    func client(id clientID: String, secret: String, byHeader: Bool) async throws -> ProviderClient {
        guard let client = try await parts.run({ try $0.clients.client(clientID) }) else {
            throw AuthError.invalidClient("unknown client", byHeader: byHeader)
        }
        // They were checked when they were registered.
        let keys = client.keys.compactMap { try? VerificationKey(keyID: $0.keyID, pem: $0.pem) }
        do {
            try ClientSecret.verify(
                secret, team: client.teamID, clientID: clientID, issuer: settings.issuer, keys: JWKSet(keys), now: parts.now())
        } catch {
            throw AuthError.invalidClient("client_secret is refused: \(error)", byHeader: byHeader)
        }
        return client
    }

    private func credentials(_ request: Request, _ form: FormBody) throws -> (clientID: String, secret: String, byHeader: Bool) {
        let fields = request.headers[values: .authorization]
        guard !fields.isEmpty else {
            guard let clientID = form["client_id"], let secret = form["client_secret"] else {
                throw AuthError.invalidClient("client_id and client_secret are required", byHeader: false)
            }
            return (clientID, secret, false)
        }
        guard fields.count == 1, form["client_secret"] == nil else {
            throw AuthError.invalidRequest("the client authenticates in more than one way")
        }
        guard let basic = request.credentials(of: "basic"), let octets = Data(base64Encoded: basic),
            let colon = octets.firstIndex(of: UInt8(ascii: ":")),
            let clientID = FormEncoding.decode(octets[..<colon]), let secret = FormEncoding.decode(octets[(colon + 1)...])
        else {
            throw AuthError.invalidClient("the Authorization field is not Basic with client_id and client_secret", byHeader: true)
        }
        guard form["client_id"] ?? clientID == clientID else {
            throw AuthError.invalidRequest("client_id differs from that in the Authorization field")
        }
        return (clientID, secret, true)
    }
}
