// SPF, DKIM and DMARC evaluated here, for messages without a result of a trusted filter.

import InternetMessage

/// Evaluates the proof of each message itself.
package struct NativeAuthenticator: SenderAuthenticator {
    /// Makes the resolver of one message, with its own budget.
    fileprivate let resolver: @Sendable () -> any DNSResolver

    package init(resolver: @escaping @Sendable () -> any DNSResolver) { self.resolver = resolver }

    package func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        Session(client: client, header: header, now: now, resolver: resolver())
    }

    private final class Session: AuthenticationSession {
        private let client: SMTPClientIdentity
        private let header: HeaderSection
        private var resolver: any DNSResolver
        private let verifier: DKIMVerifier

        init(
            client: SMTPClientIdentity, header: HeaderSection, now: Int64, resolver: any DNSResolver
        ) {
            self.client = client
            self.header = header
            self.resolver = resolver
            verifier = DKIMVerifier(header: header, now: now)
        }

        func update(body: UnsafeRawBufferPointer) { verifier.update(body: body) }

        func prepare() -> AuthenticationEvidence? {
            resolver = RememberingResolver(resolver)
            return evaluate(verifier.prepare(resolver: resolver))
        }

        func finish() -> AuthenticationEvidence { evaluate(verifier.finish(resolver: resolver)) }

        private func evaluate(_ dkim: [DKIMFinding]) -> AuthenticationEvidence {
            var fromDomain: String?
            if case .success(let author) = AuthorAddress.parse(header: header) {
                fromDomain = author.normalized?.domain
            }
            return EnvelopeAuthentication.evaluate(
                client: client, fromDomain: fromDomain, dkim: dkim, resolver: resolver)
        }
    }
}

/// Uses the results of trusted filters if there are any, and evaluates the other messages.
package struct PreferringAuthenticator: SenderAuthenticator {
    private let upstream: UpstreamResultsAuthenticator
    private let native: NativeAuthenticator

    package init(upstream: UpstreamResultsAuthenticator, otherwise native: NativeAuthenticator) {
        self.upstream = upstream
        self.native = native
    }

    package func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession {
        let isJudged = header.all(AuthenticationResults.fieldName).contains { field in
            guard let results = AuthenticationResults.parse(field.rawValue) else { return false }
            return upstream.trustedIDs.contains {
                AuthenticationResults.sameID($0, results.authservID)
            }
        }
        guard isJudged else { return native.begin(client: client, header: header, now: now) }
        return JudgedSession(
            evidence: AuthenticationResults.evidence(from: header, trusting: upstream.trustedIDs),
            header: header,
            resolver: native.resolver())
    }

    /// A message with a result of a trusted filter. If the filter reported no DMARC result, DMARC
    /// is evaluated here, from the filter's SPF and DKIM results.
    private final class JudgedSession: AuthenticationSession {
        private var evidence: AuthenticationEvidence
        private let header: HeaderSection
        private let resolver: any DNSResolver

        init(evidence: AuthenticationEvidence, header: HeaderSection, resolver: any DNSResolver) {
            self.evidence = evidence
            self.header = header
            self.resolver = resolver
        }

        func update(body: UnsafeRawBufferPointer) {}

        func finish() -> AuthenticationEvidence {
            let told = evidence.dmarc
            // Filters write the policy into a comment, if at all. A failure without one does not
            // show what the domain requests.
            guard told == nil || (told?.result == .fail && told?.policy.isEmpty == true),
                case .success(let author) = AuthorAddress.parse(header: header),
                let domain = author.normalized?.domain
            else { return evidence }
            let own = DMARC.evaluate(
                fromDomain: domain, spf: evidence.spf, dkim: evidence.dkim, resolver: resolver)
            if let told {
                evidence.dmarc = told.with(
                    result: .fail, policy: own.result == .none ? "none" : own.policy)
            } else {
                // A check that the filters did not make may have passed, so without its result a
                // message has not failed.
                let isWhole = !evidence.spf.isEmpty && !evidence.dkim.isEmpty
                evidence.dmarc =
                    isWhole || own.result != .fail
                    ? own : own.with(result: .none, policy: own.policy)
            }
            return evidence
        }
    }
}
