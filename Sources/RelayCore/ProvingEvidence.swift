// Which of the findings may prove a sender at all.

import MailAuth

extension AuthenticationEvidence {
    /// The findings without SPF of the HELO name, which stands for the envelope only where the sender is null (RFC 7208 section 2.4).
    func proving(_ client: SMTPClientIdentity) -> AuthenticationEvidence {
        guard !client.mailFrom.isEmpty else { return self }
        var evidence = self
        evidence.spf.removeAll { $0.identity == .helo }
        return evidence
    }
}
