// What an outbound source covers, and what *aligned* means for a forward (docs/DESIGN.md, "Forward").

import InternetMessage

extension OutboundSource {
    /// Whether mail with this author may come from this source.
    package func covers(_ author: AddrSpec) -> Bool {
        switch scope {
        case .domain(let domain): Self.lies(author.asciiDomain, in: domain)
        case .address(let address):
            address.localPart.lowercased() == author.localPart.lowercased() && address.asciiDomain == author.asciiDomain
        }
    }

    /// Whether a domain that authenticated a message proves this source for an author that it covers.
    package func isAligned(_ domain: String, author: AddrSpec) -> Bool {
        switch scope {
        case .domain(let source): Self.lies(domain.lowercased(), in: source)
        case .address: domain.lowercased() == author.asciiDomain
        }
    }

    /// Whether the envelope domain was explicitly paired with this source.
    package func isPaired(envelope domain: String) -> Bool {
        guard let pairedEnvelopeDomain else { return false }
        return pairedEnvelopeDomain.lowercased() == domain.lowercased()
    }

    /// Whether the domain of a message id is the team's own.
    package func ownsIdentifier(at domain: String) -> Bool {
        let domain = domain.lowercased()
        if let pairedEnvelopeDomain, Self.lies(domain, in: pairedEnvelopeDomain.lowercased()) { return true }
        return switch scope {
        case .domain(let source): Self.lies(domain, in: source)
        case .address(let address): domain == address.asciiDomain
        }
    }

    /// The domain that was registered, or that of the registered address; lower case.
    var registeredDomain: String {
        switch scope {
        case .domain(let domain): domain
        case .address(let address): address.domain.lowercased()
        }
    }

    private static func lies(_ domain: String, in source: String) -> Bool {
        domain == source || domain.hasSuffix("." + source)
    }
}
