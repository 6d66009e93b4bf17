// The issuers whose tokens are accepted in requests: those of the store, and
// this installation itself.

import Support
import Synchronization

/// The issuers and keys used by the service.
package struct TokenTrust: IssuerDirectory, VerificationKeySource {
    private let ownIssuer: String?
    private let signer: IdentitySigner?
    private let others: IssuerTrust
    private let ownKeys = OwnKeys()

    /// The published keys as a set, parsed again only if they changed.
    private actor OwnKeys {
        private var document: [UInt8] = []
        private var keys = JWKSet()

        func keys(_ document: [UInt8]) throws -> JWKSet {
            if document == self.document { return keys }
            let parsed = try JWKSet.parse(document)
            (self.document, keys) = (document, parsed)
            return parsed
        }
    }

    /// - Parameter own: `iss` of this installation's tokens, and their signer;
    ///   nil if it issues none.
    package init(own: (issuer: String, signer: IdentitySigner)?, others: IssuerTrust) {
        ownIssuer = own?.issuer
        signer = own?.signer
        self.others = others
    }

    package func issuer(_ iss: String) async throws -> IssuerConfiguration? {
        if let ownIssuer, ownIssuer.hasSameOctets(as: iss) {
            return IssuerConfiguration(
                name: "postern", issuer: ownIssuer, source: .inline(""),
                algorithms: [.es256, .rs256])
        }
        return try await others.issuers.issuer(iss)
    }

    package func keys(
        of issuer: IssuerConfiguration, for keyID: String?
    ) async throws(KeysUnavailable) -> JWKSet {
        guard let ownIssuer, let signer, ownIssuer.hasSameOctets(as: issuer.issuer) else {
            return try await others.keys.keys(of: issuer, for: keyID)
        }
        do {
            return try await ownKeys.keys(try await signer.publishedKeys())
        } catch {
            throw KeysUnavailable(issuer: issuer.name, reason: "\(error)", retryAfter: 5)
        }
    }
}
