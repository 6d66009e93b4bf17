// Keyed hashes of values that decisions compare but must not store: nonces, an app's own accounts,
// context.

import MailCrypto
import Support

/// Hashes under separate keys, derived from the key of marks, which survives restarts and never
/// changes silently.
package struct DecisionMarks: Sendable, SecretHolder {
    private let key: [UInt8]
    /// 128 bits: two values never have the same mark.
    private static let length = 16

    package init(keys: KeyRing) {
        key = HMACSHA256.authenticationCode(
            for: Array("postern decision marks 1".utf8), key: keys.marks.active.secret)
    }

    /// The mark of a token's nonce, for one issuer, audience and claim.
    package func nonce(issuer: String, audience: String, claim: String) -> [UInt8] {
        mark("nonce", [issuer, audience, claim])
    }

    /// The mark of a token's subject.
    package func subject(issuer: String, subject: String) -> [UInt8] {
        mark("subject", [issuer, subject])
    }

    /// The mark of an app's own account. A team cannot compare its marks with another team's.
    package func appAccount(team: Int64, account: String) -> [UInt8] {
        mark("app account", ["\(team)", account])
    }

    /// The mark of a context value that a backend supplied. Equal values of one name have equal
    /// marks.
    package func context(name: String, value: String) -> [UInt8] { mark("context", [name, value]) }

    /// The mark of a key that a device attested, separate for each app.
    package func device(app: Int64, keyID: [UInt8]) -> [UInt8] {
        mark("device", ["\(app)", Hex.encode(keyID)])
    }

    /// The mark of an account that a request names together with a device.
    package func deviceAccount(app: Int64, account: String) -> [UInt8] {
        mark("device account", ["\(app)", account])
    }

    /// The mark of an entry of a personal list.
    /// - Parameter team: the owner of the list, so that teams cannot compare their lists; 0
    ///   for the installation's.
    package func listed(team: Int64, value: String) -> [UInt8] {
        mark("listed", ["\(team)", value])
    }

    /// The mark of a value that a policy's counter groups by, or counts.
    /// - Parameters:
    ///   - team: the store's number; the counts of one team reveal nothing about another's.
    ///   - counter: `PolicyCounter.definition`.
    ///   - key: the kind of value, for example `context.network`.
    package func velocity(team: Int64, counter: String, key: String, value: String) -> [UInt8] {
        mark("velocity", ["\(team)", counter, key, value])
    }

    /// The mark of an Idempotency-Key.
    package func idempotencyKey(_ text: String) -> [UInt8] { mark("idempotency key", [text]) }

    private func mark(_ purpose: String, _ parts: [String]) -> [UInt8] {
        var message = Array("postern \(purpose) 1".utf8)
        for part in parts {
            // The length separates the parts, even if they contain the separator.
            message += Array(" \(part.utf8.count) ".utf8)
            message += Array(part.utf8)
        }
        return Array(HMACSHA256.authenticationCode(for: message, key: key).prefix(Self.length))
    }
}
