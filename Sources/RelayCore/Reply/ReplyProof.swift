// Decides whether the evidence proves that a message comes from the owner of its author address
// (docs/decisions/014).

import InternetMessage
import MailAuth
import Support

package enum ReplyProof {
    /// Proved by DKIM or SPF of a domain that is aligned with the author's. If a DMARC record was
    /// found, it defines the alignment: equal (`adkim=s`, `aspf=s`), or otherwise of the same
    /// organizational domain. Without a record, the domain must equal the author's domain or a
    /// parent of it.
    package static func prove(
        author: AddrSpec, evidence: AuthenticationEvidence
    ) throws(Refusal) -> SenderProof {
        let domain = author.asciiDomain
        let dmarc = evidence.dmarc
        // A record at a top-level domain would make all domains below it one organization.
        let organization = dmarc?.organizationalDomain?.lowercased()
        func canAlign(_ other: String, _ isStrict: Bool) -> Bool {
            let other = other.lowercased()
            guard !other.isEmpty, other != domain else { return other == domain }
            guard !isStrict else { return false }
            guard let organization, organization.contains(".") else {
                return DomainName.isEqualOrBelow(domain, other)
            }
            return DomainName.isEqualOrBelow(other, organization)
        }
        /// While the records cannot be read, only the author's own domain is certainly aligned.
        func aligned(_ other: String, _ isStrict: Bool) -> Bool {
            switch dmarc?.result {
            case .fail: false
            case .temperror: other.lowercased() == domain
            case .pass, .none?, .permerror, nil: canAlign(other, isStrict)
            }
        }
        let strictDKIM = dmarc?.isStrictDKIM == true
        let strictSPF = dmarc?.isStrictSPF == true

        if let signature = evidence.dkim.first(where: {
            $0.isProof && aligned($0.domain, strictDKIM)
        }) {
            return .dkim(domain: signature.domain)
        }
        if let envelope = evidence.spf.first(where: {
            $0.result == .pass && aligned($0.domain, strictSPF)
        }) {
            return .spf(domain: envelope.domain)
        }
        if let dmarc, dmarc.result == .pass, aligned(dmarc.domain, false), evidence.dkim.isEmpty,
            evidence.spf.isEmpty
        {
            return .dmarc(domain: dmarc.domain)
        }
        let signatures = evidence.dkim.filter { canAlign($0.domain, strictDKIM) }
        let envelopes = evidence.spf.filter { canAlign($0.domain, strictSPF) }
        // The finding's own reason may name the query, and an SPF macro may have put the user's
        // local part into the query.
        let isUndecided =
            signatures.contains { $0.result == .temperror && $0.coversWholeBody }
            || envelopes.contains { $0.result == .temperror }
            || (dmarc?.result == .temperror
                && (signatures.contains(where: \.isProof)
                    || envelopes.contains { $0.result == .pass }
                    || hasPass(evidence, near: domain)))
        if isUndecided {
            throw .authenticationTrouble("a look-up for the domain of the author of a reply failed")
        }
        throw .replyNotProved(
            RelayReason(
                .replyNotProved,
                "\(signatures.count) aligned signatures, \(envelopes.count) aligned envelope domains, none passes\(evidence.malformed)"
            ))
    }

    /// Whether a mechanism passed for a domain that a readable DMARC record might show to be of the
    /// same organization.
    private static func hasPass(_ evidence: AuthenticationEvidence, near domain: String) -> Bool {
        let parent = domain.split(separator: ".").suffix(2)
        let passed =
            evidence.dkim.filter(\.isProof).map(\.domain)
            + evidence.spf.filter { $0.result == .pass }.map(\.domain)
        return passed.contains { $0.lowercased().split(separator: ".").suffix(2) == parent }
    }
}
