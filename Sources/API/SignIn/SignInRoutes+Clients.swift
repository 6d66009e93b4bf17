// Client authentication: a secret, an assertion, or PKCE alone.

import Accounts
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import SignIn
import Support

/// A client's credentials. Prints nothing.
struct ClientCredentials: Sendable, CustomStringConvertible, CustomReflectable {
    enum Proof: Sendable {
        /// `client_secret_post`, `client_secret_basic`: a JWT that its team signed, or
        /// a secret that Postern issued.
        case secret(String)
        /// `private_key_jwt`.
        case assertion(String)
        /// `none`: a public client.
        case nothing
    }

    let clientID: String
    let proof: Proof
    /// Whether the client sent an Authorization field.
    let isByHeader: Bool

    var description: String { "<credentials>" }
    var customMirror: Mirror { Mirror(self, children: [:]) }

    /// Reads them. Throws `AuthError`: `invalid_request` for more than one method (RFC 6749 section
    /// 2.3), `invalid_client` for none or for unreadable ones.
    init(_ request: Request, _ form: FormBody) throws {
        let fields = request.headers[values: .authorization]
        let (secret, assertion) = (form["client_secret"]?.text, form["client_assertion"]?.text)
        guard fields.count + (secret == nil ? 0 : 1) + (assertion == nil ? 0 : 1) <= 1 else {
            throw AuthError.invalidRequest("the client authenticates in more than one way")
        }
        if !fields.isEmpty {
            (clientID, proof, isByHeader) = try Self.basic(request, form)
        } else if let assertion {
            guard form["client_assertion_type"] == WireText(ClientAssertion.type) else {
                throw AuthError.invalidRequest(
                    "client_assertion_type must be \(ClientAssertion.type)")
            }
            guard let clientID = form["client_id"]?.text ?? ClientAssertion.clientID(assertion)
            else {
                throw AuthError.invalidClient("client_assertion names no client", byHeader: false)
            }
            (self.clientID, proof, isByHeader) = (clientID, .assertion(assertion), false)
        } else {
            guard let clientID = form["client_id"]?.text else {
                throw AuthError.invalidClient(
                    "client_id and client_secret are required", byHeader: false)
            }
            (self.clientID, proof, isByHeader) = (
                clientID, secret.map(Proof.secret) ?? .nothing, false
            )
        }
    }

    /// RFC 6749 section 2.3.1: both are form-urlencoded before they are joined.
    private static func basic(_ request: Request, _ form: FormBody) throws -> (String, Proof, Bool)
    {
        guard let basic = request.credentials(of: "basic"), let octets = Data(base64Encoded: basic),
            let colon = octets.firstIndex(of: UInt8(ascii: ":")),
            let clientID = FormEncoding.decode(octets[..<colon]),
            let secret = FormEncoding.decode(octets[(colon + 1)...])
        else {
            throw AuthError.invalidClient(
                "the Authorization field is not Basic with client_id and client_secret",
                byHeader: true)
        }
        guard (form["client_id"] ?? clientID) == clientID else {
            throw AuthError.invalidRequest("client_id differs from that in the Authorization field")
        }
        return (clientID.text, .secret(secret.text), true)
    }
}

extension SignInRoutes {
    /// The client. Throws `AuthError` (`invalid_client`, `invalid_request`) and the store's errors.
    /// - Parameters:
    ///   - endpoint: the requested path, which an assertion may name as its audience.
    ///   - allowsPublic: whether a public client is accepted without proof.
    func client(
        _ request: Request, _ form: FormBody, endpoint: String, allowsPublic: Bool = false
    ) async throws -> ProviderClient {
        let given = try ClientCredentials(request, form)
        switch given.proof {
        case .secret(let secret):
            return try await client(id: given.clientID, secret: secret, byHeader: given.isByHeader)
        case .assertion(let assertion):
            return try await client(id: given.clientID, assertion: assertion, endpoint: endpoint)
        case .nothing:
            let client = try await known(given.clientID, byHeader: false)
            guard client.isPublic, allowsPublic else {
                throw AuthError.invalidClient(
                    "client_id and client_secret are required", byHeader: false)
            }
            return client
        }
    }

    /// The client with this secret. Throws like `client(_:_:endpoint:allowsPublic:)`.
    func client(id clientID: String, secret: String, byHeader: Bool) async throws -> ProviderClient
    {
        let client = try await known(clientID, byHeader: byHeader)
        guard secret.contains(".") else {
            guard try await parts.run({ try $0.openIDClients.isSecret(secret, of: client) }) else {
                throw AuthError.invalidClient("client_secret is refused", byHeader: byHeader)
            }
            return client
        }
        do {
            try ClientSecret.verify(
                secret, team: client.teamID, clientID: clientID, issuer: settings.issuer,
                keys: Self.keys(client),
                now: parts.now())
        } catch {
            throw AuthError.invalidClient("client_secret is refused: \(error)", byHeader: byHeader)
        }
        return client
    }

    private func client(
        id clientID: String, assertion: String, endpoint: String
    ) async throws -> ProviderClient {
        let client = try await known(clientID, byHeader: false)
        let checked: ClientAssertion
        do {
            checked = try ClientAssertion(
                assertion, clientID: clientID,
                audiences: [
                    settings.issuer, settings.issuer + endpoint, settings.issuer + "/auth/token",
                ],
                keys: Self.keys(client), now: parts.now())
        } catch {
            throw AuthError.invalidClient("client_assertion is refused: \(error)", byHeader: false)
        }
        let isNew = try await parts.run {
            try $0.openIDClients.useAssertion(checked.jti, of: client, expiresAt: checked.expiresAt)
        }
        guard isNew else {
            throw AuthError.invalidClient("client_assertion was used before", byHeader: false)
        }
        return client
    }

    private func known(_ clientID: String, byHeader: Bool) async throws -> ProviderClient {
        guard let client = try await parts.run({ try $0.clients.client(clientID) }) else {
            throw AuthError.invalidClient("unknown client", byHeader: byHeader)
        }
        return client
    }

    /// The keys were checked at registration.
    private static func keys(_ client: ProviderClient) -> JWKSet {
        JWKSet(client.keys.compactMap { try? VerificationKey(keyID: $0.keyID, pem: $0.pem) })
    }
}
