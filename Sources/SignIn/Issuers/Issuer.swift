// The issuers whose identity tokens are accepted, and under which conditions.

/// Where an issuer's keys come from.
package enum KeySource: Sendable, Hashable {
    /// An `https:` address of a JWK Set; `http:` on loopback, elsewhere only if allowed.
    case uri(String, allowsHTTP: Bool = false)
    /// A file on this host that contains a JWK Set.
    case file(String)
    /// The JWK Set itself, UTF-8.
    case inline(String)
}

/// An issuer as configured.
package struct IssuerConfiguration: Sendable, Hashable {
    /// Seconds by which clocks may differ, unless configured otherwise.
    package static let defaultLeeway: Int64 = 60
    /// More would only keep expired tokens valid.
    package static let maximumLeeway: Int64 = 300

    /// The operator's name for it, as in `apple`.
    package let name: String
    /// `iss`, octet by octet.
    package let issuer: String
    package let source: KeySource
    /// Not empty.
    package let algorithms: Set<SignatureAlgorithm>
    /// The form of the nonce in this issuer's tokens, unless an app says otherwise.
    package let nonceForm: NonceForm
    /// Seconds, 0 … `maximumLeeway`.
    package let leeway: Int64

    package init(
        name: String, issuer: String, source: KeySource,
        algorithms: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases),
        nonceForm: NonceForm = .raw, leeway: Int64 = IssuerConfiguration.defaultLeeway
    ) {
        self.name = name
        self.issuer = issuer
        self.source = source
        self.algorithms = algorithms
        self.nonceForm = nonceForm
        self.leeway = min(max(leeway, 0), Self.maximumLeeway)
    }
}

/// The known issuers.
package protocol IssuerDirectory: Sendable {
    /// The issuer with this `iss`, octet by octet; nil if there is none. Throws the store's errors.
    func issuer(_ iss: String) async throws -> IssuerConfiguration?
}

/// A source of keys: a cache in the service, a fixed set in tests and on the command line.
package protocol VerificationKeySource: Sendable {
    /// The keys of an issuer. If the current set has no key with this id, a newer
    /// set is fetched if possible.
    func keys(
        of issuer: IssuerConfiguration, for keyID: String?
    ) async throws(KeysUnavailable) -> JWKSet
}
