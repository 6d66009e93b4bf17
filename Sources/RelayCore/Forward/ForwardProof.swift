// Decides whether the evidence proves that a message comes from a registered source.

import InternetMessage
import MailAuth

/// The evidence that proves the author of a message.
package enum SenderProof: Sendable, Hashable {
    /// A valid signature of this domain.
    case dkim(domain: String)
    /// SPF pass for this envelope or HELO domain.
    case spf(domain: String)
    /// A DMARC pass of a trusted upstream filter, or one by relaxed alignment.
    case dmarc(domain: String)

    /// Lower case.
    package var domain: String {
        switch self {
        case .dkim(let domain), .spf(let domain), .dmarc(let domain): domain
        }
    }

    package var method: String {
        switch self {
        case .dkim: "dkim"
        case .spf: "spf"
        case .dmarc: "dmarc"
        }
    }
}

package enum ForwardProof {
    /// Proved by DKIM or SPF of a domain of the source, unless the DMARC policy of the author's
    /// domain refuses the message. A paired envelope domain does not override that policy. Pairing
    /// states which servers may send; it does not cancel what the domain owner's record asks of
    /// every receiver.
    /// - Parameter sources: the sources that cover the author; at least one.
    package static func prove(
        author: AddrSpec, sources: [RegisteredSource], evidence: AuthenticationEvidence
    ) throws(Refusal) -> SenderProof {
        let proof = try registered(author: author, sources: sources, evidence: evidence)
        if let dmarc = evidence.dmarc { try heed(dmarc, proof: proof, author: author) }
        return proof
    }

    /// `quarantine` is refused like `reject`, as the relay cannot quarantine mail.
    private static func heed(
        _ dmarc: DMARCFinding, proof: SenderProof, author: AddrSpec
    ) throws(Refusal) {
        let isUnknown: Bool
        switch dmarc.result {
        case .pass, .none, .permerror: return
        case .fail:
            guard dmarc.policy != DMARCRecord.Policy.none.rawValue else { return }
            isUnknown = dmarc.policy.isEmpty
        case .temperror:
            // A proof of the author's own domain is aligned under any record.
            guard dmarc.policy != DMARCRecord.Policy.none.rawValue,
                proof.domain != author.asciiDomain
            else { return }
            isUnknown = true
        }
        guard isUnknown else {
            throw .dmarcFailed(
                "\(proof.method) of \(proof.domain) is not aligned with \(author.asciiDomain), p=\(dmarc.policy)"
            )
        }
        throw .authenticationTrouble(
            "DMARC of \(author.asciiDomain) could not be evaluated, and \(proof.domain) may not be aligned"
        )
    }

    private static func registered(
        author: AddrSpec, sources: [RegisteredSource], evidence: AuthenticationEvidence
    ) throws(Refusal) -> SenderProof {
        func aligned(_ domain: String) -> Bool {
            sources.contains { $0.isAligned(domain, author: author) }
        }
        func alignedEnvelope(_ finding: SPFFinding) -> Bool {
            aligned(finding.domain) || sources.contains { $0.isPaired(envelope: finding.domain) }
        }

        if let signature = evidence.dkim.first(where: { $0.isProof && aligned($0.domain) }) {
            return .dkim(domain: signature.domain)
        }
        if let envelope = evidence.spf.first(where: { $0.result == .pass && alignedEnvelope($0) }) {
            return .spf(domain: envelope.domain)
        }
        let signatures = evidence.dkim.filter { aligned($0.domain) }
        let envelopes = evidence.spf.filter(alignedEnvelope)

        // A signature over only a part of the body could prove nothing, even with its key.
        if let signature = signatures.first(where: { $0.result == .temperror && $0.coversWholeBody }
        ) {
            throw .authenticationTrouble(
                "the key \(signature.selector)._domainkey.\(signature.domain): \(signature.reason)")
        }
        if let envelope = envelopes.first(where: { $0.result == .temperror }) {
            throw .authenticationTrouble("SPF of \(envelope.domain): \(envelope.reason)")
        }
        switch (signatures.first, envelopes.first) {
        case (.some(let signature), nil):
            throw .dkimFailed(
                "d=\(signature.domain): \(signature.result.rawValue), \(signature.weakness)")
        case (nil, .some(let envelope)):
            throw .spfFailed(
                "\(envelope.domain): \(envelope.result.rawValue), \(envelope.reason)\(evidence.malformed)"
            )
        case (.some(let signature), .some(let envelope)):
            throw .proofFailed(
                "d=\(signature.domain): \(signature.weakness); SPF \(envelope.domain): \(envelope.result.rawValue)"
            )
        case (nil, nil):
            throw .proofFailed(
                "no signature and no envelope domain of a registered source\(evidence.malformed)")
        }
    }

    /// Whether a report may later go to the envelope sender: SPF proved it, or its domain aligns
    /// with the signature that proves the author.
    package static func isReportable(
        envelopeSender: AddrSpec, author: AddrSpec, proof: SenderProof, sources: [RegisteredSource],
        evidence: AuthenticationEvidence
    ) -> Bool {
        let domain = envelopeSender.asciiDomain
        if evidence.spf.contains(where: {
            $0.identity == .mailFrom && $0.result == .pass && $0.domain == domain
        }) {
            return true
        }
        if case .dkim = proof { return sources.contains { $0.isAligned(domain, author: author) } }
        return false
    }
}

extension AuthenticationEvidence {
    /// The defect of the first malformed signature, as the end of a detail; empty for none.
    var malformed: String { dkim.first(where: \.isMalformed).map { "; \($0.reason)" } ?? "" }
}

extension DKIMFinding {
    /// Whether the signature counts as proof: valid, and over the whole body.
    package var isProof: Bool { result == .pass && coversWholeBody }

    /// Why a signature is not proof, for the log.
    package var weakness: String {
        result == .pass && !coversWholeBody ? "signed part is not the whole body" : reason
    }
}
