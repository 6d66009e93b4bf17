// SPF and DMARC around the signatures of one message: everything that native authentication asks besides DKIM.

import InternetMessage

/// The half of native authentication that needs no body.
package enum EnvelopeAuthentication {
    /// Checks SPF for MAIL FROM, and for HELO where MAIL FROM is null or gives `none`; then evaluates DMARC.
    ///
    /// - Parameters:
    ///   - client: whom SPF judges. Without an address there is nothing to check and no SPF finding.
    ///   - fromDomain: the domain of the header From as A-labels; nil where there is not exactly one address, and then no DMARC.
    ///   - dkim: what was found out about the signatures; taken over unchanged.
    package static func evaluate(
        client: SMTPClientIdentity, fromDomain: String?, dkim: [DKIMFinding], resolver: any DNSResolver
    ) -> AuthenticationEvidence {
        var spf: [SPFFinding] = []
        if client.address != nil {
            if !client.mailFrom.isEmpty {
                spf.append(SPF.check(client: client, identity: .mailFrom, resolver: resolver).finding)
            }
            if spf.isEmpty || spf[0].result == .none {
                spf.append(SPF.check(client: client, identity: .helo, resolver: resolver).finding)
            }
        }
        let dmarc = fromDomain.map { DMARC.evaluate(fromDomain: $0, spf: spf, dkim: dkim, resolver: resolver) }
        return AuthenticationEvidence(spf: spf, dkim: dkim, dmarc: dmarc)
    }
}
