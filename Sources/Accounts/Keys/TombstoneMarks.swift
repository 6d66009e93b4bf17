// Keyed hashes that remain when an account is deleted.

import MailCrypto

/// Marks under separate keys, used for nothing else, derived from the key of marks, of which only
/// one version exists.
package struct TombstoneMarks: Sendable, SecretHolder {
    private let tombstoneKey: [UInt8]
    private let nameKey: [UInt8]
    /// 128 bits: two values never have the same mark.
    private static let length = 16

    init(keys: KeySet) {
        func key(_ purpose: String) -> [UInt8] {
            HMACSHA256.authenticationCode(
                for: Array("postern \(purpose) key 1".utf8), key: keys.active.secret)
        }
        tombstoneKey = key("tombstone")
        nameKey = key("retired name")
    }

    /// The mark of an inbox in canonical form, given by its canonical index.
    package func inbox(canonicalIndex: [UInt8]) -> [UInt8] {
        mark(tombstoneKey, Array("inbox ".utf8) + canonicalIndex)
    }

    /// The mark of a subject of an external issuer.
    func identity(issuer: String, subject: String) -> [UInt8] {
        // The length separates the two, even if they contain the separator.
        mark(tombstoneKey, Array("identity \(issuer.utf8.count) \(issuer) \(subject)".utf8))
    }

    /// The mark of a `sub` or a relay address that ended.
    package func retired(_ name: String) -> [UInt8] { mark(nameKey, Array(name.lowercased().utf8)) }

    /// The mark of an event that an issuer sent.
    func receivedEvent(issuer: String, jti: String) -> [UInt8] {
        mark(nameKey, Array("event \(issuer.utf8.count) \(issuer) \(jti)".utf8))
    }

    private func mark(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        Array(HMACSHA256.authenticationCode(for: message, key: key).prefix(Self.length))
    }
}
