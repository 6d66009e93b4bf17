// Devices that attested an app, as teams and policies see them.

import Support
import WebAuthn

/// A device whose key Apple attested. Only one app knows it.
package struct AttestedDevice: Sendable, Hashable {
    /// `dv_` and 26 characters: a keyed hash of the key's id.
    package let id: String
    /// `TEAMID.bundle.id`.
    package let appID: String
    package let environment: AppAttestExpectation.Environment
    /// The number of accepted assertions.
    package let assertions: Int64
    /// Seconds since 1970.
    package let attestedAt: Int64

    /// The id of a device with this mark.
    static func id(mark: [UInt8]) -> String {
        "dv_" + String(decoding: Base32.encode(mark), as: UTF8.self)
    }

    /// The mark of an id; nil if the id is not valid.
    static func mark(id: String) -> [UInt8]? {
        id.hasPrefix("dv_") ? Base32.decode(id.utf8.dropFirst(3)) : nil
    }
}

/// The facts about the device that a request names.
package struct DeviceFacts: Sendable, Hashable {
    /// Whether it attested this app, and the app's id is still accepted.
    package var isAttested: Bool
    package var assertions: Int64
    /// Accounts of this app that requests recently named with this device, including this request's
    /// account; nil if the device is not attested.
    package var accounts: Int64?

    /// For an unknown device.
    package static let unknown = DeviceFacts(isAttested: false, assertions: 0, accounts: nil)
}

/// Limits for devices.
package enum DeviceLimits {
    /// Seconds for which a challenge is valid: an app attests immediately.
    package static let challenge: Int64 = 10 * 60
    /// Seconds for which an account counts as one of the device after a request named both.
    package static let account: Int64 = 90 * 86_400
    /// Accounts stored for each device: a policy only checks for a few, and the rows of a device
    /// are limited.
    package static let accounts: Int64 = 1_000
    /// Seconds after which a device that was not seen is deleted and must attest again.
    package static let device: Int64 = 400 * 86_400
    /// Seconds during which a stored time is not updated again.
    static let resolution: Int64 = 86_400
    /// App ids of each app.
    package static let appIDs = 20
    /// Maximum length of a device id in a request, in octets.
    package static let idLength = 64
}

/// An app id that devices may attest for an app.
package struct AttestedApp: Sendable, Hashable {
    /// `TEAMID.bundle.id`.
    package let appID: String
    package let environment: AppAttestExpectation.Environment
    /// DER of the root certificate that attestations must chain to.
    package let root: [UInt8]
    /// Seconds since 1970.
    package let createdAt: Int64
}
