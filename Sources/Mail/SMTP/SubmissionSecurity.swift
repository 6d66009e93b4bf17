// The encryption of the connection to the mail server, and our login.

import NIOSSL
import Transport

/// How the connection is encrypted.
package enum SubmissionSecurity: Sendable {
    /// No encryption: for a server on this machine.
    case none
    /// After STARTTLS (RFC 3207); if the server does not offer it, nothing is sent.
    case startTLS(NIOSSLContext)
    /// From the first octet (RFC 8314).
    case implicit(NIOSSLContext)

    /// The context that checks a server's certificate.
    /// - Parameter roots: more authorities (PEM), in addition to the system's. Throws if they
    ///   cannot be read.
    package static func context(rootsPath roots: String? = nil) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.requireForwardSecrecy()
        configuration.additionalTrustRoots =
            try roots.map { [.certificates(try NIOSSLCertificate.fromPEMFile($0))] } ?? []
        return try NIOSSLContext(configuration: configuration)
    }
}

/// A name and password for AUTH (RFC 4954). Never printed.
package struct SubmissionCredentials: Sendable, CustomStringConvertible, CustomReflectable {
    let user: String
    let password: String

    package init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    package var description: String { "<credentials>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The server's data when it accepted a message.
package struct SubmissionReceipt: Sendable, Hashable {
    /// The EHLO keywords, in upper case.
    package let keywords: Set<String>
    /// The queue id of the message, if the server reports it as Postfix does.
    package let queueID: String?
}
