// The requirements for a device's attestation or assertion, and the reasons to refuse one.

import MailCrypto

/// The requirements for a device that attests an app.
package struct AppAttestExpectation: Sendable {
    /// Where the app runs, as the AAGUID states.
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
    /// The data that the app attests or signs; for an attestation, the challenge.
    package let clientData: [UInt8]

    package init(appID: String, environment: Environment, clientData: [UInt8]) {
        self.appID = appID
        self.environment = environment
        self.clientData = clientData
    }

    /// The values that an attestation may cover: SHA-256 of the client data, or the client data,
    /// which Apple's own sample passes as the hash. Either binds it to the challenge.
    var attestedHashes: [[UInt8]] { [SHA256.hash(clientData), clientData] }

    /// Whether the authenticator data begins with SHA-256 of the app id.
    func isApp(_ data: AppAttestData) -> Bool {
        constantTimeEqual(data.value.rpIDHash, SHA256.hash(Array(appID.utf8)))
    }
}

/// Why an attestation or assertion is refused. Names the check that failed, and contains
/// nothing from the device.
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
    /// The problem, in words.
    package let reason: String

    package init(_ check: Check, _ reason: String) {
        self.check = check
        self.reason = reason
    }

    package var description: String { "\(check.rawValue): \(reason)" }
}
