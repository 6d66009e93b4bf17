// The one protocol for proof of the sender, used when Postern evaluates SPF and DKIM itself and
// when it trusts an upstream filter.

import InternetMessage

/// Makes one `AuthenticationSession` for each message.
package protocol SenderAuthenticator: Sendable {
    /// - Parameters:
    ///   - client: the client that SPF checks.
    ///   - header: the whole header section as received.
    ///   - now: seconds since 1970, for `t=` and `x=`.
    func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession
}

/// The authentication of one message. The body is fed to it as it arrives and need not be kept.
package protocol AuthenticationSession: AnyObject {
    /// Makes all DNS queries that the header section requires, before there is a body; may block.
    /// Called once, before `update`, or never.
    /// - Returns: the best possible findings, which apply if the body is the signed one; nil if
    ///   they cannot be determined before the end.
    func prepare() -> AuthenticationEvidence?
    /// Takes the next octets of the body, line ends as CRLF.
    func update(body: UnsafeRawBufferPointer)
    /// Ends the body and evaluates. Call it once. May query the DNS and block.
    func finish() -> AuthenticationEvidence
}

extension AuthenticationSession {
    package func prepare() -> AuthenticationEvidence? { nil }
}
