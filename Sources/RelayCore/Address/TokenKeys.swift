// The versioned keys under which tokens and marks are made.

import MailCrypto

/// HMAC keys by one-character key id. New tokens take the active one; the others go on verifying until they are retired.
package struct TokenKeys: Sendable {
    /// One base32 character.
    package typealias KeyID = UInt8

    private let keys: [KeyID: [UInt8]]
    package let activeID: KeyID
    package let activeKey: [UInt8]

    /// - Parameter keys: at least 32 octets each, by key id in `a`–`z`, `2`–`7`.
    /// - Returns: nil where the active key is missing, an id is no base32 character or a key is too short.
    package init?(keys: [KeyID: [UInt8]], active: KeyID) {
        guard let activeKey = keys[active], keys.values.allSatisfy({ $0.count >= 32 }), Base32.isEncoded(keys.keys) else { return nil }
        self.keys = keys
        self.activeID = active
        self.activeKey = activeKey
    }

    package func key(_ id: KeyID) -> [UInt8]? { keys[id] }

    /// Every key id, the active one first.
    package var ids: [KeyID] { [activeID] + keys.keys.filter { $0 != activeID }.sorted() }
}
