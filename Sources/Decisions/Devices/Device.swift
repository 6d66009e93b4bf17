// Devices that attested an app, as teams and policies see them.

import AppAttest
import Support

/// A device whose key Apple vouched for. It is known to one app alone.
package struct AttestedDevice: Sendable, Hashable {
    /// `dv_` and 26 characters: a keyed hash of the key's id.
    package let id: String
    /// `TEAMID.bundle.id`.
    package let appID: String
    package let environment: AppAttestExpectation.Environment
    /// How many assertions were accepted.
    package let assertions: Int64
    /// Seconds since 1970.
    package let attestedAt: Int64

    /// The id of a device with this mark.
    static func id(mark: [UInt8]) -> String { "dv_" + String(decoding: Base32.encode(mark), as: UTF8.self) }

    /// The mark that an id stands for; nil where it is not one.
    static func mark(id: String) -> [UInt8]? { id.hasPrefix("dv_") ? Base32.decode(id.utf8.dropFirst(3)) : nil }
}

/// What is known of the device that a question names.
package struct DeviceFacts: Sendable, Hashable {
    /// Whether it attested this app, and the app's id is still accepted.
    package var isAttested: Bool
    package var assertions: Int64
    /// Accounts of this app that were named with it lately, that of the question included; nil where it is not attested.
    package var accounts: Int64?

    /// Of a device that is not known.
    package static let unknown = DeviceFacts(isAttested: false, assertions: 0, accounts: nil)
}

/// Bounds of devices.
package enum DeviceLimits {
    /// Seconds that a challenge is good: an app attests at once.
    package static let challenge: Int64 = 10 * 60
    /// Seconds for which an account counts as one of the device after it was named with it.
    package static let account: Int64 = 90 * 86_400
    /// Accounts of one device that are kept: a policy looks for a few, and no device has rows without end.
    package static let accounts: Int64 = 1_000
    /// Seconds after which a device that was not heard of is forgotten, and has to attest again.
    package static let device: Int64 = 400 * 86_400
    /// Seconds for which a time is not written again.
    static let resolution: Int64 = 86_400
    /// App ids of one app.
    package static let appIDs = 20
    /// Longest id of a device in a question, in octets.
    package static let idLength = 64
}

/// An app id that devices may attest for an app.
package struct AttestedApp: Sendable, Hashable {
    /// `TEAMID.bundle.id`.
    package let appID: String
    package let environment: AppAttestExpectation.Environment
    /// DER of the certificate that attestations have to lead to.
    package let root: [UInt8]
    /// Seconds since 1970.
    package let createdAt: Int64
}
