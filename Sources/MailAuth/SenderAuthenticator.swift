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
    /// Asks the DNS for all that the header section tells to ask, before there is a body; may block while it does. Called once,
    /// before `update`, or not at all.
    /// - Returns: what is found if the body turns out to be the one that was signed, the best that can come of it; nil where that
    ///   cannot be determined before the end.
    func prepare() -> AuthenticationEvidence?
    /// Takes the next octets of the body, line ends as CRLF.
    func update(body: UnsafeRawBufferPointer)
    /// Ends the body and evaluates. Called once; may ask the DNS, and may block while it does.
    func finish() -> AuthenticationEvidence
}

extension AuthenticationSession {
    package func prepare() -> AuthenticationEvidence? { nil }
}
