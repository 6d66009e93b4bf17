// How the way to the mail server is secured, and who we are there.

import NIOSSL
import PosternTLS

/// How the connection is encrypted.
package enum SubmissionSecurity: Sendable {
    /// Not at all: for a server on this machine.
    case none
    /// After STARTTLS (RFC 3207); a server that does not offer it gets nothing.
    case startTLS(NIOSSLContext)
    /// From the first octet (RFC 8314).
    case implicit(NIOSSLContext)

    /// What checks a server's certificate.
    /// - Parameter roots: further authorities (PEM) besides the system's. Throws where they cannot be read.
    package static func context(rootsPath roots: String? = nil) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.requireForwardSecrecy()
        configuration.additionalTrustRoots = try roots.map { [.certificates(try NIOSSLCertificate.fromPEMFile($0))] } ?? []
        return try NIOSSLContext(configuration: configuration)
    }
}

/// A name and password for AUTH (RFC 4954). Shows itself to no one.
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

/// What a server said when it took a message.
package struct SubmissionReceipt: Sendable, Hashable {
    /// What it offers after EHLO, in upper case.
    package let keywords: Set<String>
    /// Under which name it queued the message, where it says so as Postfix does.
    package let queueID: String?
}
