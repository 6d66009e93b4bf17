// Issuers of identity tokens and the provider's own keys, for administration.

import Database

/// An issuer whose identity tokens and events are accepted.
package struct Issuer: Sendable, Hashable {
    /// Where its keys come from.
    package enum Source: String, SQLCodable, Sendable, Hashable { case uri, file, inline }

    /// The store's own number.
    package let number: Int64
    /// The identifier that the administrator chose.
    package let name: String
    /// `iss`, octet by octet.
    package let iss: String
    package let source: Source
    /// An address, a path, or the JWK Set itself.
    package let location: String
    /// Whether the address may be `http:` beyond loopback.
    package let allowsHTTP: Bool
    /// `RS256`, `ES256`; sorted, not empty.
    package let algorithms: [String]
    /// `raw` or `sha256_hex`.
    package let nonceForm: String
    /// Seconds by which clocks may differ.
    package let leeway: Int64
    package let createdAt: Int64

    package init(
        number: Int64 = 0, name: String, iss: String, source: Source, location: String,
        allowsHTTP: Bool = false,
        algorithms: [String], nonceForm: String, leeway: Int64, createdAt: Int64 = 0
    ) {
        self.number = number
        self.name = name
        self.iss = iss
        self.source = source
        self.location = location
        self.allowsHTTP = allowsHTTP
        self.algorithms = algorithms.sorted()
        self.nonceForm = nonceForm
        self.leeway = leeway
        self.createdAt = createdAt
    }
}

/// The last good key set of an issuer.
package struct IssuerKeys: Sendable, Hashable {
    /// The JWK Set as fetched.
    package let document: [UInt8]
    /// Seconds since 1970.
    package let fetchedAt: Int64
    /// Until when the issuer allows its use without another fetch.
    package let freshUntil: Int64

    package init(document: [UInt8], fetchedAt: Int64, freshUntil: Int64) {
        self.document = document
        self.fetchedAt = fetchedAt
        self.freshUntil = freshUntil
    }
}

/// A key of the provider, without its private part.
package struct IdentityKey: Sendable, Hashable {
    /// next → active → retiring → retired.
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// Published, but does not sign yet: verifiers learn it before it is used.
        case next
        /// Signs identity tokens and events. There is one for each algorithm.
        case active
        /// Replaced: no longer signs, and stays published for the tokens that it signed.
        case retiring
        /// Ended: no longer published, and the private part is deleted.
        case retired
    }

    /// The store's own number.
    package let number: Int64
    /// `kid`.
    package let keyID: String
    package let algorithm: SignatureAlgorithm
    /// The public part as a JWK, one JSON object.
    package let publicJWK: String
    package let state: State
    package let createdAt: Int64
    package let activatedAt: Int64?
    package let deactivatedAt: Int64?
    package let retiredAt: Int64?
}

/// A new key of the provider, for the store. Prints only its id.
package struct NewIdentityKey: Sendable, CustomStringConvertible, CustomReflectable {
    /// `kid`.
    package let keyID: String
    package let algorithm: SignatureAlgorithm
    /// The public part as a JWK, one JSON object.
    package let publicJWK: String
    /// The private key as unencrypted PKCS#8 PEM.
    package let pem: String

    package init(
        keyID: String, algorithm: SignatureAlgorithm = .es256, publicJWK: String, pem: String
    ) {
        self.keyID = keyID
        self.algorithm = algorithm
        self.publicJWK = publicJWK
        self.pem = pem
    }

    package var description: String { "<key \(keyID)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
