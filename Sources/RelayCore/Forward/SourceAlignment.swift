// The authors that an outbound source covers, and the meaning of *aligned* for a forward
// (docs/decisions/014).

import InternetMessage
import Support

extension RegisteredSource {
    /// Whether mail with this author may come from this source.
    package func covers(_ author: AddrSpec) -> Bool {
        switch scope {
        case .domain(let domain): DomainName.isEqualOrBelow(author.asciiDomain, domain)
        case .address(let address):
            address.localPart.foldedIdentity.hasSameOctets(as: author.localPart.foldedIdentity)
                && address.asciiDomain.hasSameOctets(as: author.asciiDomain)
        }
    }

    /// Whether a domain that authenticated a message proves this source for
    /// an author that it covers.
    package func isAligned(_ domain: String, author: AddrSpec) -> Bool {
        switch scope {
        case .domain(let source): DomainName.isEqualOrBelow(domain.lowercased(), source)
        case .address: domain.lowercased() == author.asciiDomain
        }
    }

    /// Whether an address belongs to the team by this source: the source covers it, or it is at the
    /// source's envelope domain.
    func isOfTeam(_ address: AddrSpec) -> Bool {
        covers(address) || isPaired(envelope: address.asciiDomain)
    }

    /// Whether the envelope domain was explicitly paired with this source.
    package func isPaired(envelope domain: String) -> Bool {
        guard let pairedEnvelopeDomain else { return false }
        return pairedEnvelopeDomain.lowercased() == domain.lowercased()
    }

    /// Whether the domain of a message id is the team's own. The domain of a single registered
    /// address is not: it may be a provider's. Users may have their inboxes there, and their
    /// programs make ids with it.
    package func ownsIdentifier(at domain: String) -> Bool {
        let domain = domain.lowercased()
        if let pairedEnvelopeDomain,
            DomainName.isEqualOrBelow(domain, pairedEnvelopeDomain.lowercased())
        {
            return true
        }
        return registeredDomain.map { DomainName.isEqualOrBelow(domain, $0) } ?? false
    }

    /// The domain that was registered, in lower case; nil if a single address was registered.
    var registeredDomain: String? {
        switch scope {
        case .domain(let domain): domain
        case .address: nil
        }
    }
}
