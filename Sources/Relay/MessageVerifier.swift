// `postern verify message`: the mail authentication results of a message, and the resulting proof.

import InternetMessage
import MailAuth
import RelayCore

/// A message and the client that sent it.
package struct MessageToVerify: Sendable {
    package var client: SMTPClientIdentity
    /// Line ends as CRLF or LF; empty for SPF alone.
    package var message: [UInt8]
    /// Seconds since 1970.
    package var now: Int64

    /// - Parameter mailFrom: with or without angle brackets; empty or `<>` for the null sender.
    package init(mailFrom: String, address: String?, helo: String, message: [UInt8], now: Int64) {
        client = SMTPClientIdentity(
            address: address, helo: helo, mailFrom: mailFrom.withoutPathBrackets)
        self.message = message
        self.now = now
    }
}

/// The results.
package struct AuthenticationReport: Sendable {
    /// For MAIL FROM; if that is the null sender, for HELO (RFC 7208 section 2.4).
    package let spf: SPFFinding
    /// Nil without a message.
    package let content: Content?

    package struct Content: Sendable {
        package let dkim: [DKIMFinding]
        /// Nil if From does not have exactly one address.
        package let dmarc: DMARCFinding?
        package let author: Result<AddrSpec, AuthorDefect>
        package let proof: Proof
    }
}

/// Whether the message proves its author by the rule for replies (docs/decisions/014): aligned DKIM
/// or aligned SPF. Does not require a DMARC record.
package struct Proof: Sendable {
    /// The result for one registered source, by the rule for forwards.
    package struct Source: Sendable {
        /// The registered domain or address.
        package let source: String
        package let isProved: Bool
        /// The proof, as in `dkim:app.example`, or the reason why there is none.
        package let reason: String
    }

    /// The domain of the one address in From, A-labels; nil if there is not exactly one.
    package let authorDomain: String?
    /// `d=` of the signatures that prove the author.
    package let alignedDKIM: [String]
    /// The domain whose SPF proves the author.
    package let alignedSPF: String?
    package let isProved: Bool
    /// Whether a temporary error prevents a proof: the relay would answer 451.
    package let isTemporary: Bool
    /// The proof, as in `dkim:app.example`, or the reason why there is none.
    package let reason: String
    /// The registered sources that cover the author; nil without an installation.
    package let sources: [Source]?
}

package enum MessageVerifier {
    /// Evaluates one message.
    /// - Parameters:
    ///   - resolver: answers for this message only.
    ///   - directory: the sources of an installation; nil for none.
    /// - Throws: `DirectoryFailure` if the directory cannot answer.
    package static func verify(
        _ question: MessageToVerify, resolver: any DNSResolver, directory: (any RelayDirectory)?
    ) throws -> AuthenticationReport {
        guard !question.message.isEmpty else {
            return AuthenticationReport(
                spf: SPF.check(client: question.client, resolver: resolver), content: nil)
        }
        let message = Message.parse(LineEnds.crlf(question.message))
        let session = NativeAuthenticator { resolver }.begin(
            client: question.client, header: message.header, now: question.now)
        message.body.withUnsafeBytes { session.update(body: $0) }
        let evidence = session.finish()
        let author = AuthorAddress.parse(header: message.header)
        return AuthenticationReport(
            spf: evidence.spf.first ?? SPF.check(client: question.client, resolver: resolver),
            content: AuthenticationReport.Content(
                dkim: evidence.dkim, dmarc: evidence.dmarc, author: author,
                proof: try proof(
                    author: author, evidence: evidence.proving(question.client),
                    directory: directory)))
    }

    private static func proof(
        author: Result<AddrSpec, AuthorDefect>, evidence: AuthenticationEvidence,
        directory: (any RelayDirectory)?
    ) throws -> Proof {
        let address: AddrSpec
        switch author {
        case .failure(let defect): return noProof(domain: nil, defect.description)
        case .success(let written):
            guard let normal = written.normalized else {
                return noProof(domain: nil, AuthorDefect.invalidDomain.description)
            }
            address = normal
        }
        /// Applies the rule to each finding alone, so that the list shows exactly the findings that
        /// the rule accepts.
        func proves(_ dkim: [DKIMFinding], _ spf: [SPFFinding]) -> Bool {
            let alone = AuthenticationEvidence(spf: spf, dkim: dkim, dmarc: evidence.dmarc)
            return (try? ReplyProof.prove(author: address, evidence: alone)) != nil
        }
        let outcome = outcome { () throws(Refusal) in
            try ReplyProof.prove(author: address, evidence: evidence)
        }
        var signers: [String] = []
        for finding in evidence.dkim
        where proves([finding], []) && !signers.contains(finding.domain) {
            signers.append(finding.domain)
        }
        let sources = try directory.map { directory in
            try directory.sources(covering: address).map { source in
                let outcome = self.outcome { () throws(Refusal) in
                    try ForwardProof.prove(author: address, sources: [source], evidence: evidence)
                }
                return Proof.Source(
                    source: source.name, isProved: outcome.isProved, reason: outcome.reason)
            }
        }
        return Proof(
            authorDomain: address.domain, alignedDKIM: signers,
            alignedSPF: evidence.spf.first { proves([], [$0]) }?.domain,
            isProved: outcome.isProved, isTemporary: outcome.isTemporary, reason: outcome.reason,
            sources: sources)
    }

    private static func noProof(domain: String?, _ reason: String) -> Proof {
        Proof(
            authorDomain: domain, alignedDKIM: [], alignedSPF: nil, isProved: false,
            isTemporary: false, reason: reason,
            sources: nil)
    }

    private static func outcome(
        _ prove: () throws(Refusal) -> SenderProof
    ) -> (isProved: Bool, isTemporary: Bool, reason: String) {
        do throws(Refusal) {
            let proof = try prove()
            return (true, false, "\(proof.method):\(proof.domain)")
        } catch {
            let reason = error.reason
            return (false, error.reply.code / 100 == 4, reason.text)
        }
    }
}

extension RegisteredSource {
    fileprivate var name: String {
        switch scope {
        case .domain(let domain): domain
        case .address(let address): address.wireForm
        }
    }
}
