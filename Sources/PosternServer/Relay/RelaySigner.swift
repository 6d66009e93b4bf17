// DKIM signatures of what leaves the relay, with the active keys of each relay domain.

import InternetMessage
import MailAuth
import RelayCore

/// Signs with every active key of the domain; keys are parsed once.
package struct RelaySigner: MessageSigner {
    private let signers: [String: [DKIMSigner]]

    /// Nil where there is no signer at all.
    package init?(_ signers: [DKIMSigner]) {
        guard !signers.isEmpty else { return nil }
        self.signers = Dictionary(grouping: signers, by: \.domain)
    }

    package func begin() -> any SigningSession { Session(signers) }

    private final class Session: SigningSession {
        private let signers: [String: [DKIMSigner]]
        private let hasher = DKIMBodyHasher()

        init(_ signers: [String: [DKIMSigner]]) { self.signers = signers }

        func update(body: UnsafeRawBufferPointer) { hasher.update(body: body) }

        func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField] {
            guard let signers = signers[domain.lowercased()] else { return [] }
            let hash = hasher.finish()
            return try signers.map { try $0.sign(header: header, bodyHash: hash, now: now) }
        }
    }
}
