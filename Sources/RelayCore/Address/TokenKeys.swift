// The versioned keys that make tokens and marks.

import MailCrypto
import Support

/// HMAC keys by one-character key id. The active key makes new tokens; the others still verify
/// tokens until they are retired.
package struct TokenKeys: Sendable, SecretHolder {
    /// One base32 character.
    package typealias KeyID = UInt8

    private let keys: [KeyID: (secret: [UInt8], code: HMACSHA256)]
    package let activeID: KeyID
    package let activeKey: HMACSHA256
    /// Every key id, the active one first.
    package let ids: [KeyID]

    /// - Parameter keys: at least 32 octets each, by key id in `a`–`z`, `2`–`7`.
    /// - Returns: nil if the active key is missing, an id is not a base32 character
    ///   or a key is too short.
    package init?(keys: [KeyID: [UInt8]], active: KeyID) {
        guard keys.values.allSatisfy({ $0.count >= 32 }), Base32.isEncoded(keys.keys) else {
            return nil
        }
        let prepared = keys.mapValues { (secret: $0, code: HMACSHA256(key: $0)) }
        guard let activeKey = prepared[active]?.code else { return nil }
        self.keys = prepared
        self.activeID = active
        self.activeKey = activeKey
        ids = [active] + keys.keys.filter { $0 != active }.sorted()
    }

    /// The key of this id, ready to make codes; nil for an unknown id.
    package func key(_ id: KeyID) -> HMACSHA256? { id == activeID ? activeKey : keys[id]?.code }

    /// The id of the active key, and this many base32 digits of the text's authentication code.
    package func seal(_ text: String, digits: Int) -> String {
        String(decoding: [activeID] + Self.code(text, activeKey, digits), as: UTF8.self)
    }

    /// Whether this is a seal of the text, with this many digits, by one of these keys.
    package func isSeal(_ seal: some Collection<UInt8>, of text: String, digits: Int) -> Bool {
        guard let id = seal.first, let key = key(id) else { return false }
        return constantTimeEqual(Self.code(text, key, digits), Array(seal.dropFirst()))
    }

    private static func code(_ text: String, _ key: HMACSHA256, _ digits: Int) -> [UInt8] {
        Array(Base32.encode(key.authenticationCode(for: Array(text.utf8))).prefix(digits))
    }

    /// The octets of the key of this id, from which other keys are derived.
    package func secret(_ id: KeyID) -> [UInt8]? { keys[id]?.secret }
}
