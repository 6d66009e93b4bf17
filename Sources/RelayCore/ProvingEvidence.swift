// Selects the findings that may prove a sender.

import MailAuth

extension AuthenticationEvidence {
    /// The findings without SPF of the HELO name. HELO replaces the envelope only if the sender is
    /// null (RFC 7208 section 2.4).
    package func proving(_ client: SMTPClientIdentity) -> AuthenticationEvidence {
        guard !client.mailFrom.isEmpty else { return self }
        var evidence = self
        evidence.spf.removeAll { $0.identity == .helo }
        return evidence
    }

    /// The evidence of the envelope alone, by SPF. The same client and sender give the same proof
    /// again, before they send a header. Nil if there is none, as for the null sender.
    func ofEnvelope(_ client: SMTPClientIdentity) -> AuthenticationEvidence? {
        guard !client.mailFrom.isEmpty, client.address != nil else { return nil }
        var evidence = self
        evidence.dkim = []
        evidence.spf.removeAll { $0.identity != .mailFrom || $0.result != .pass }
        // Without an SPF finding only the DMARC result would remain, and a signature may have
        // caused that.
        return evidence.spf.isEmpty ? nil : evidence
    }
}
