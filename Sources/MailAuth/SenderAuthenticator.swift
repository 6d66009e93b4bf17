// Proof of the sender goes through one protocol, whether Postern evaluates SPF and DKIM itself or trusts an upstream filter.

import InternetMessage

/// Makes one `AuthenticationSession` for each message.
package protocol SenderAuthenticator: Sendable {
    /// - Parameters:
    ///   - client: the client that SPF checks.
    ///   - header: the whole header section as received.
    ///   - now: seconds since 1970, for `t=` and `x=`.
    func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession
}

/// The authentication of one message: the body is fed as it arrives and is never held for it.
package protocol AuthenticationSession: AnyObject {
    /// Makes all DNS queries that the header section requires, before there is a body; may block. Called once, before `update`,
    /// or not at all.
    /// - Returns: the findings if the body turns out to be the signed one, which is the best possible result; nil if that
    ///   cannot be determined before the end.
    func prepare() -> AuthenticationEvidence?
    /// Takes the next octets of the body, line ends as CRLF.
    func update(body: UnsafeRawBufferPointer)
    /// Ends the body and evaluates. Called once; may query the DNS and block.
    func finish() -> AuthenticationEvidence
}

extension AuthenticationSession {
    package func prepare() -> AuthenticationEvidence? { nil }
}
