// What is expected of a device's attestation or assertion, and why one is refused.

import MailCrypto

/// What is expected of a device that attests an app.
package struct AppAttestExpectation: Sendable {
    /// Where the app runs; the AAGUID says which.
    package enum Environment: String, Sendable, CaseIterable {
        case production, development

        /// 16 octets.
        var aaguid: [UInt8] {
            switch self {
            case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
            case .development: Array("appattestdevelop".utf8)
            }
        }
    }

    /// `TEAMID.bundle.id`.
    package let appID: String
    package let environment: Environment
    /// What the app attests or signs: of an attestation, the challenge.
    package let clientData: [UInt8]

    package init(appID: String, environment: Environment, clientData: [UInt8]) {
        self.appID = appID
        self.environment = environment
        self.clientData = clientData
    }

    /// What an attestation is made over: SHA-256 of the client data, or the client data, which Apple's own sample passes as the
    /// hash. Either binds it to the challenge.
    var attestedHashes: [[UInt8]] { [SHA256.hash(clientData), clientData] }

    /// Whether authenticator data begin with SHA-256 of the app id.
    func isApp(_ data: AppAttestData) -> Bool { constantTimeEqual(data.value.rpIDHash, SHA256.hash(Array(appID.utf8))) }
}

/// An attestation or assertion that is refused. Names the check that failed, and repeats nothing of the device.
package struct AppAttestError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Check: String, Sendable, CaseIterable {
        /// The request itself.
        case request
        case format
        case authenticatorData = "authenticator-data"
        case certificate, nonce
        case keyID = "key-id"
        case appID = "app-id"
        case environment, counter
        case publicKey = "public-key"
        case signature
    }

    package let check: Check
    /// What is wrong, in words.
    package let reason: String

    package init(_ check: Check, _ reason: String) {
        self.check = check
        self.reason = reason
    }

    package var description: String { "\(check.rawValue): \(reason)" }
}
