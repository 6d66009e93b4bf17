// Who issues identity tokens that are taken here, and under which conditions.

/// Where an issuer's keys come from.
package enum KeySource: Sendable, Hashable {
    /// An `https:` address of a JWK Set; `http:` on loopback, elsewhere only where that is allowed.
    case uri(String, allowsHTTP: Bool = false)
    /// A file on this host that holds one.
    case file(String)
    /// The JWK Set itself, UTF-8.
    case inline(String)
}

/// An issuer as configured.
package struct IssuerConfiguration: Sendable, Hashable {
    /// Seconds by which clocks may differ, where nothing else is configured.
    package static let defaultLeeway: Int64 = 60
    /// More would keep expired tokens alive for no honest reason.
    package static let maximumLeeway: Int64 = 300

    /// The operator's name for it, as in `apple`.
    package let name: String
    /// `iss`, octet by octet.
    package let issuer: String
    package let source: KeySource
    /// Not empty.
    package let algorithms: Set<SignatureAlgorithm>
    /// Which form the nonce has in this issuer's tokens, where an app does not say otherwise.
    package let nonceForm: NonceForm
    /// Seconds, 0 … `maximumLeeway`.
    package let leeway: Int64

    package init(
        name: String, issuer: String, source: KeySource, algorithms: Set<SignatureAlgorithm> = Set(SignatureAlgorithm.allCases),
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

/// Which issuers there are.
package protocol IssuerDirectory: Sendable {
    /// The issuer with this `iss`, octet by octet; nil where there is none. Throws what the store throws.
    func issuer(_ iss: String) async throws -> IssuerConfiguration?
}

/// Where keys come from: a cache in service, a fixed set in tests and on the command line.
package protocol VerificationKeySource: Sendable {
    /// The keys of an issuer. Where the set held has no key of this id, a newer one is fetched if one may be had.
    func keys(of issuer: IssuerConfiguration, for keyID: String) async throws(KeysUnavailable) -> JWKSet
}
