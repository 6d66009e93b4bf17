// SPF and DMARC for one message with given DKIM findings: everything that native authentication
// checks except DKIM.

import InternetMessage

/// The part of native authentication that needs no body.
package enum EnvelopeAuthentication {
    /// Checks SPF for MAIL FROM, and for HELO if MAIL FROM is null or gives `none`. Then evaluates
    /// DMARC.
    ///
    /// - Parameters:
    ///   - client: the client that SPF checks. Without an address there is no SPF finding.
    ///   - fromDomain: the domain of the header From as A-labels. Nil if there is not exactly one
    ///     address; DMARC is then skipped.
    ///   - dkim: the findings for the signatures; returned unchanged.
    package static func evaluate(
        client: SMTPClientIdentity, fromDomain: String?, dkim: [DKIMFinding],
        resolver: any DNSResolver
    ) -> AuthenticationEvidence {
        var spf: [SPFFinding] = []
        if client.address != nil {
            if !client.mailFrom.isEmpty {
                spf.append(
                    SPF.check(client: client, identity: .mailFrom, resolver: resolver).finding)
            }
            if spf.isEmpty || spf[0].result == .none {
                spf.append(SPF.check(client: client, identity: .helo, resolver: resolver).finding)
            }
        }
        let dmarc = fromDomain.map {
            DMARC.evaluate(fromDomain: $0, spf: spf, dkim: dkim, resolver: resolver)
        }
        return AuthenticationEvidence(spf: spf, dkim: dkim, dmarc: dmarc)
    }
}
