// The certificates that Postfix shows to the servers that send to the relay, and that the HTTP API
// shows to its clients.

import Support

/// The facts that openssl(1) gives about a certificate.
package struct CertificateFacts: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        /// Postfix's configuration names no certificate.
        case notConfigured
        /// The file cannot be read, or contains no certificate.
        case unreadable(String)
        /// The end of its validity in seconds since 1970, and whether it is for the host's name.
        case valid(until: Int64, matchesHost: Bool)
        /// No tool is available to read it; the text is the reason.
        case unknown(String)
    }

    package let path: String
    package let state: State

    package init(path: String, state: State) {
        self.path = path
        self.state = state
    }

    /// Days before the end of validity; an automatic renewal should have happened long before.
    private static let warningDays: Int64 = 14

    /// The service that shows the certificate.
    package enum Service: Sendable { case postfix, http }

    package func judge(host: String, now: Int64, service: Service = .postfix) -> Check {
        let name: CheckKind = service == .postfix ? .certificate : .httpCertificate
        switch state {
        case .notConfigured:
            return .warning(
                name, "Postfix has no certificate: mail comes in unencrypted",
                remedy:
                    "get a certificate for \(host), set smtpd_tls_chain_files, and reload Postfix")
        case .unreadable(let reason):
            return .broken(
                name, "\(path): \(reason)",
                remedy: "provide a readable PEM file there, or name another one")
        case .unknown(let reason):
            return .warning(name, "\(path) was not checked: \(reason)", remedy: "install openssl")
        case .valid(let end, let matches):
            let days = (end - now) / 86_400
            if end <= now {
                return .broken(
                    name, "the certificate \(path) has expired",
                    remedy: service == .postfix
                        ? "renew it, and reload Postfix"
                        : "renew it; postern serve loads it automatically")
            }
            if !matches {
                return .warning(
                    name, "the certificate \(path) is not for \(host)",
                    remedy: "get one that names \(host): "
                        + (service == .postfix
                            ? "MTA-STS and DANE users check it"
                            : "teams' backends and users' browsers check it"))
            }
            if days < Self.warningDays {
                return .warning(
                    name, "the certificate \(path) expires in \(days) days",
                    remedy: "find out why it was not renewed")
            }
            return .ok(
                name,
                "the \(service == .postfix ? "" : "HTTP API's ")certificate is valid for \(days) more days"
            )
        }
    }
}
