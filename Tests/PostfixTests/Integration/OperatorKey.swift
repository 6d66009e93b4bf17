// DKIM keys of the cases: the operator's own, made for each test, and the team's, whose private
// half was deleted.

import Foundation
import PostfixHarness

/// The key of operator.example, selector mail, as in docs/INTEGRATION.md.
struct OperatorKey {
    /// The record of the key.
    let record: String

    /// Writes the private key into a file.
    init(file: String) throws {
        let made = try ManagedProcess.run("/usr/bin/openssl", ["genrsa", "-out", file, "2048"])
        let read = try ManagedProcess.run(
            "/bin/sh", ["-c", "openssl rsa -in '\(file)' -pubout -outform DER 2>&- | base64 -w0"])
        guard made.status == 0, read.output.hasPrefix("MII") else {
            throw HarnessError("openssl: \(made.output)")
        }
        record = "v=DKIM1; k=rsa; p=" + read.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// The key that signed IntegrationCases/signed.eml and signed-by-another.eml, selector t1.
enum SenderKey {
    static let record = """
        v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA2lwvILwScvwo9tpOHVpprL0Ev6vzgOGsQioxrXDa1eHJCp8Vidp/HTwqMXQpdl\
        6liCnFe9ixvalihFqOWG7H37yi7XkAvneECO9w3oOfpCYKREWLK4iL+7B6z0aBjVptA0JVKkW0luf3e90zGf7fBel8mYv8zo5DjN7edDsHzjFJmcBZHE2s2WFPAC\
        afK2vgjKxw8H36Y3RGAJ7S/KipzZd4BrBTte1jOA8Gsp8NTPpk0f5Hy7GR6+AHQWd5RV7Pvl58rSY2QOqA1z3JnQE1pA5q+Od4DrmgFA9KFgtnFzl1kKFkB52qos\
        VTrggPZnoKV05dItdzjV1/9qSV5PVBtQIDAQAB
        """
}
