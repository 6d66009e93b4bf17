// Keyed hashes of what decisions compare but must not store: nonces, an app's own accounts, context.

import MailCrypto
import Support

/// Hashes under their own keys, derived from the index key, which survives restarts and is never changed silently.
package struct DecisionMarks: Sendable, SecretHolder {
    private let key: [UInt8]
    /// 128 bits: two values never have the same mark.
    private static let length = 16

    package init(keys: KeyRing) {
        key = HMACSHA256.authenticationCode(for: Array("postern decision marks 1".utf8), key: keys.marks.active.secret)
    }

    /// Of a token's nonce: one for the same issuer, audience and claim.
    package func nonce(issuer: String, audience: String, claim: String) -> [UInt8] { mark("nonce", [issuer, audience, claim]) }

    /// Of a token's subject.
    package func subject(issuer: String, subject: String) -> [UInt8] { mark("subject", [issuer, subject]) }

    /// Of an app's own account; a team cannot compare its own with another team's.
    package func appAccount(team: Int64, account: String) -> [UInt8] { mark("app account", ["\(team)", account]) }

    /// Of a value that a backend supplied as context. Equal values of one name have equal marks.
    package func context(name: String, value: String) -> [UInt8] { mark("context", [name, value]) }

    /// Of the key that a device attested, as one app knows it.
    package func device(app: Int64, keyID: [UInt8]) -> [UInt8] { mark("device", ["\(app)", Hex.encode(keyID)]) }

    /// Of an account that a request names with a device.
    package func deviceAccount(app: Int64, account: String) -> [UInt8] { mark("device account", ["\(app)", account]) }

    /// Of an entry of a personal list.
    /// - Parameter team: the owner of the list, so that teams cannot compare their lists; 0 for the installation's.
    package func listed(team: Int64, value: String) -> [UInt8] { mark("listed", ["\(team)", value]) }

    /// Of a value that a policy's counter counts by, or counts.
    /// - Parameters:
    ///   - team: the store's number; a team's counts say nothing about another's.
    ///   - counter: `PolicyCounter.definition`.
    ///   - key: the kind of value, for example `context.network`.
    package func velocity(team: Int64, counter: String, key: String, value: String) -> [UInt8] {
        mark("velocity", ["\(team)", counter, key, value])
    }

    /// Of an Idempotency-Key.
    package func idempotencyKey(_ text: String) -> [UInt8] { mark("idempotency key", [text]) }

    private func mark(_ purpose: String, _ parts: [String]) -> [UInt8] {
        var message = Array("postern \(purpose) 1".utf8)
        for part in parts {
            // The length separates the parts, whatever they contain.
            message += Array(" \(part.utf8.count) ".utf8)
            message += Array(part.utf8)
        }
        return Array(HMACSHA256.authenticationCode(for: message, key: key).prefix(Self.length))
    }
}
