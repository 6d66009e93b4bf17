// SPF, DKIM and DMARC evaluated here, for messages that no trusted filter has judged.

import InternetMessage

/// Evaluates the proof of each message itself.
package struct NativeAuthenticator: SenderAuthenticator {
    /// Gives the resolver of one message, with a budget of its own.
    private let resolver: @Sendable () -> any DNSResolver

    package init(resolver: @escaping @Sendable () -> any DNSResolver) { self.resolver = resolver }

    package func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession {
        Session(client: client, header: header, now: now, resolver: resolver())
    }

    private final class Session: AuthenticationSession {
        private let client: SMTPClientIdentity
        private let header: HeaderSection
        private let resolver: any DNSResolver
        private let verifier: DKIMVerifier

        init(client: SMTPClientIdentity, header: HeaderSection, now: Int64, resolver: any DNSResolver) {
            self.client = client
            self.header = header
            self.resolver = resolver
            verifier = DKIMVerifier(header: header, now: now)
        }

        func update(body: UnsafeRawBufferPointer) { verifier.update(body: body) }

        func finish() -> AuthenticationEvidence {
            var fromDomain: String?
            if case .success(let author) = AuthorAddress.parse(header: header) { fromDomain = author.normalized?.domain }
            return EnvelopeAuthentication.evaluate(
                client: client, fromDomain: fromDomain, dkim: verifier.finish(resolver: resolver), resolver: resolver)
        }
    }
}

/// Believes trusted filters where they have left a result, and evaluates what they have not judged.
package struct PreferringAuthenticator: SenderAuthenticator {
    private let upstream: UpstreamResultsAuthenticator
    private let native: NativeAuthenticator

    package init(upstream: UpstreamResultsAuthenticator, otherwise native: NativeAuthenticator) {
        self.upstream = upstream
        self.native = native
    }

    package func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession {
        let isJudged = header.all(AuthenticationResults.fieldName).contains { field in
            guard let results = AuthenticationResults.parse(field.rawValue) else { return false }
            return upstream.trustedIDs.contains { AuthenticationResults.sameID($0, results.authservID) }
        }
        return isJudged
            ? upstream.begin(client: client, header: header, now: now) : native.begin(client: client, header: header, now: now)
    }
}
