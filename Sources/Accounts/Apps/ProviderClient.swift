// An app as a client of the provider.

/// A public key that a team signs its client secrets and assertions with.
package struct ClientKey: Sendable, Hashable {
    /// `kid`, unique within the team.
    package let keyID: String
    /// SubjectPublicKeyInfo of a key on P-256 or of RSA, PEM.
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
    /// Whether it has no secret, and authenticates by PKCE alone.
    package let isPublic: Bool
    /// The algorithm of the identity tokens that it gets: `RS256` or `ES256`.
    package let identityTokenAlgorithm: String

    package init(
        clientID: String, appNumber: Int64, groupNumber: Int64, teamNumber: Int64, teamID: String,
        keys: [ClientKey],
        isPublic: Bool, identityTokenAlgorithm: String
    ) {
        self.clientID = clientID
        self.appNumber = appNumber
        self.groupNumber = groupNumber
        self.teamNumber = teamNumber
        self.teamID = teamID
        self.keys = keys
        self.isPublic = isPublic
        self.identityTokenAlgorithm = identityTokenAlgorithm
    }
}
