// Whether the evidence proves that a message comes from the owner of its author address (docs/DESIGN.md, "Reply").

import InternetMessage
import MailAuth

package enum ReplyProof {
    /// Proved by DKIM or SPF of a domain that is aligned with the author's: equal to it, a parent of it, or of the same
    /// organizational domain by a DMARC record actually found. A DMARC record is not needed.
    package static func prove(author: AddrSpec, evidence: AuthenticationEvidence) throws(Refusal) -> SenderProof {
        let domain = author.asciiDomain
        func aligned(_ other: String) -> Bool {
            let other = other.lowercased()
            guard !other.isEmpty else { return false }
            if domain == other || domain.hasSuffix("." + other) { return true }
            // A record at a top-level domain would make everyone below it one organization.
            guard let organizational = evidence.dmarc?.organizationalDomain?.lowercased(), organizational.contains(".") else { return false }
            return other == organizational || other.hasSuffix("." + organizational)
        }

        let signatures = evidence.dkim.filter { aligned($0.domain) }
        let envelopes = evidence.spf.filter { aligned($0.domain) }
        if let signature = signatures.first(where: \.isProof) { return .dkim(domain: signature.domain) }
        if let envelope = envelopes.first(where: { $0.result == .pass }) { return .spf(domain: envelope.domain) }
        if let dmarc = evidence.dmarc, dmarc.result == .pass, aligned(dmarc.domain), evidence.dkim.isEmpty, evidence.spf.isEmpty {
            return .dmarc(domain: dmarc.domain)
        }
        // The finding's own reason may name what was asked for, and an SPF macro may have put the user's local part into that.
        let isUndecided =
            signatures.contains { $0.result == .temperror && $0.coversWholeBody } || envelopes.contains { $0.result == .temperror }
            || (evidence.dmarc?.result == .temperror && hasPass(evidence, near: domain))
        if isUndecided {
            throw .authenticationTrouble("a look-up for the domain of the author of a reply failed")
        }
        throw .replyNotProved(
            RelayReason("reply-not-proved", "\(signatures.count) aligned signatures, \(envelopes.count) aligned envelope domains, none passes"))
    }

    /// Whether something passed for a domain that a DMARC record, could it be read, might show to be of the same organization.
    private static func hasPass(_ evidence: AuthenticationEvidence, near domain: String) -> Bool {
        let parent = domain.split(separator: ".").suffix(2)
        let passed = evidence.dkim.filter(\.isProof).map(\.domain) + evidence.spf.filter { $0.result == .pass }.map(\.domain)
        return passed.contains { $0.lowercased().split(separator: ".").suffix(2) == parent }
    }
}
