// Which of the findings may prove a sender at all.

import MailAuth

extension AuthenticationEvidence {
    /// The findings without SPF of the HELO name, which stands for the envelope only where the sender is null (RFC 7208 section
    /// 2.4).
    package func proving(_ client: SMTPClientIdentity) -> AuthenticationEvidence {
        guard !client.mailFrom.isEmpty else { return self }
        var evidence = self
        evidence.spf.removeAll { $0.identity == .helo }
        return evidence
    }

    /// What the envelope alone proves, by SPF: all who repeat client and sender prove as much, before they have sent a header.
    /// Nil where that is nothing, as for the null sender.
    func ofEnvelope(_ client: SMTPClientIdentity) -> AuthenticationEvidence? {
        guard !client.mailFrom.isEmpty, client.address != nil else { return nil }
        var evidence = self
        evidence.dkim = []
        evidence.spf.removeAll { $0.identity != .mailFrom || $0.result != .pass }
        // Without any finding a DMARC result would have to do, which a signature may have brought about.
        return evidence.spf.isEmpty ? nil : evidence
    }
}
