// An app as a client of the provider.

/// A public key that a team signs its client secrets with.
package struct ClientKey: Sendable, Hashable {
    /// `kid`, unique within the team.
    package let keyID: String
    /// SubjectPublicKeyInfo of a key on P-256, PEM.
    package let pem: String
    package let createdAt: Int64
}

/// A client at `/auth/token`.
package struct ProviderClient: Sendable, Hashable {
    package let clientID: String
    /// The store's own numbers.
    package let appNumber: Int64
    package let groupNumber: Int64
    package let teamNumber: Int64
    package let teamID: String
    package let keys: [ClientKey]
}
