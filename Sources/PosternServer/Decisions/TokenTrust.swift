// Which issuers' tokens are taken in questions: those of the store, and this installation itself.

import Identity
import Synchronization

/// Issuers and keys in service.
package struct TokenTrust: IssuerDirectory, VerificationKeySource {
    private let ownIssuer: String?
    private let signer: IdentitySigner
    private let issuers: StoredIssuers
    private let cache: KeySetCache
    private let ownKeys = OwnKeys()

    /// The published keys as a set, parsed again only where they changed.
    private actor OwnKeys {
        private var document: [UInt8] = []
        private var keys = JWKSet()

        func keys(_ document: [UInt8]) async throws -> JWKSet {
            if document == self.document { return keys }
            let parsed = try await JWKSet.parse(document)
            (self.document, keys) = (document, parsed)
            return parsed
        }
    }

    /// - Parameter ownIssuer: `iss` of this installation's tokens; nil where it has no public address.
    package init(ownIssuer: String?, signer: IdentitySigner, issuers: StoredIssuers, cache: KeySetCache) {
        self.ownIssuer = ownIssuer
        self.signer = signer
        self.issuers = issuers
        self.cache = cache
    }

    package func issuer(_ iss: String) async throws -> IssuerConfiguration? {
        if let ownIssuer, ownIssuer.hasSameOctets(as: iss) {
            return IssuerConfiguration(name: "postern", issuer: ownIssuer, source: .inline(""), algorithms: [.es256])
        }
        return try await issuers.issuer(iss)
    }

    package func keys(of issuer: IssuerConfiguration, for keyID: String) async throws(KeysUnavailable) -> JWKSet {
        guard let ownIssuer, ownIssuer.hasSameOctets(as: issuer.issuer) else { return try await cache.keys(of: issuer, for: keyID) }
        do {
            return try await ownKeys.keys(try await signer.publishedKeys())
        } catch {
            throw KeysUnavailable(issuer: issuer.name, reason: "\(error)", retryAfter: 5)
        }
    }
}
