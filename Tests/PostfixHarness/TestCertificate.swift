// Certificates for tests, made by openssl(1); each is its own authority.

import Foundation

package struct TestCertificate: Sendable {
    /// PEM files.
    package let certificate: String
    package let key: String

    /// Makes one for 127.0.0.1 and localhost in an existing folder; files of the same name are
    /// replaced at once.
    /// - Parameter isRSA: an RSA key instead of one on P-256.
    package init(in folder: String, name: String, commonName: String, isRSA: Bool = false) throws {
        certificate = "\(folder)/\(name).pem"
        key = "\(folder)/\(name)-key.pem"
        let new = ["\(folder)/.new-\(name).pem", "\(folder)/.new-\(name)-key.pem"]
        let result = try ManagedProcess.run(
            "/usr/bin/env",
            [
                "openssl", "req", "-x509", "-newkey", isRSA ? "rsa" : "ec", "-pkeyopt",
                isRSA ? "rsa_keygen_bits:2048" : "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj",
                "/CN=\(commonName)", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out",
                new[0], "-keyout", new[1],
            ])
        guard result.status == 0 else { throw HarnessError("openssl: \(result.output)") }
        for (path, target) in zip(new, [certificate, key]) {
            guard rename(path, target) == 0 else {
                throw HarnessError("cannot put \(target) into place")
            }
        }
    }
}
