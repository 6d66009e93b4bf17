// Proof of the sender goes through one protocol, whether Postern evaluates SPF and DKIM itself or trusts an upstream filter.

import InternetMessage

/// Makes one `AuthenticationSession` for each message.
package protocol SenderAuthenticator: Sendable {
    /// - Parameters:
    ///   - client: whom SPF judges.
    ///   - header: the whole header section as received.
    ///   - now: seconds since 1970, for `t=` and `x=`.
    func begin(client: SMTPClientIdentity, header: HeaderSection, now: Int64) -> any AuthenticationSession
}

/// The authentication of one message: the body is fed as it arrives and is never held for it.
package protocol AuthenticationSession: AnyObject {
    /// Takes the next octets of the body, line ends as CRLF.
    func update(body: UnsafeRawBufferPointer)
    /// Ends the body and evaluates. Called once; may ask the DNS, and may block while it does.
    func finish() -> AuthenticationEvidence
}
