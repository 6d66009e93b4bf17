// The hashes of a reply's recipients in its return path. They show whether an address is a
// recipient, but reveal no address.

import MailCrypto
import Support

/// Keyed hashes of the first recipients of a reply. A sender that wants a report to show the user
/// another recipient can only guess. Each guess costs one message, and every message is counted.
enum RecipientWitnesses {
    /// The number of recipients that get a hash. Four fit, and nearly all replies have fewer. A
    /// report about any other recipient reaches the user without its name.
    static let maximum = 4
    /// 25 bits.
    private static let digitsOfOne = 5
    static let digits = maximum * digitsOfOne

    private static let label = Array("postern reply recipient 1\n".utf8)
    private static let fillerLabel = Array("postern reply filler 1\n".utf8)

    /// The result always has the same length, so that it hides the number of recipients, blind
    /// copies included.
    /// - Parameters:
    ///   - recipients: in the canonical form that tokens authenticate.
    ///   - head: the parts of the token before the hashes: account, nonce and day.
    static func written(_ recipients: [[UInt8]], head: [UInt8], key: HMACSHA256) -> [UInt8] {
        let told = recipients.prefix(maximum).flatMap { witness($0, head: head, key: key) }
        return told
            + Base32.encode(key.authenticationCode(for: fillerLabel + head)).prefix(
                digits - told.count)
    }

    /// Whether one of the witnesses belongs to this recipient.
    static func hold(
        _ recipient: [UInt8], in witnesses: ArraySlice<UInt8>, head: [UInt8], key: HMACSHA256
    ) -> Bool {
        let wanted = witness(recipient, head: head, key: key)
        return stride(from: witnesses.startIndex, to: witnesses.endIndex, by: digitsOfOne).contains
        { start in
            constantTimeEqual(
                witnesses[start..<min(start + digitsOfOne, witnesses.endIndex)], wanted)
        }
    }

    private static func witness(
        _ recipient: [UInt8], head: [UInt8], key: HMACSHA256
    ) -> ArraySlice<UInt8> {
        Base32.encode(key.authenticationCode(for: label + head + recipient)).prefix(digitsOfOne)
    }
}
