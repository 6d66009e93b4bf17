// Shows in a report that Subject and Message-ID of the returned message are the ones that the team
// wrote.

import InternetMessage
import MailCrypto
import Support

/// `X-Postern-Witness: <key id><MAC of Message-ID><MAC of Subject>`, added to every forward,
/// regardless of its content. A report that returns the header section also returns the witness.
/// The team gets only the fields that the witness confirms, and gets them unchanged: rewriting that
/// depended on the inbox would show a team which of its guesses was right.
package struct OriginalWitness: Sendable {
    package static let fieldName = "X-Postern-Witness"
    /// 16 characters are 80 bits.
    private static let macDigits = 16

    private let keys: TokenKeys

    package init(keys: TokenKeys) { self.keys = keys }

    /// The field for a message of an account's team.
    package func field(for header: HeaderSection, account: AccountNumber) -> HeaderField {
        let id = header.first("Message-ID")?.unfoldedValue ?? ""
        let subject = header.first("Subject")?.decodedValue ?? ""
        let value =
            [keys.activeID] + mac(.messageID, id, account, keys.activeKey)
            + mac(.subject, subject, account, keys.activeKey)
        return HeaderField(Self.fieldName, String(decoding: value, as: UTF8.self))
    }

    /// The field that a code is for.
    package enum Part: String {
        case messageID = "message-id"
        case subject
    }

    /// Whether a field's value in a report is the one for which the witness was made.
    /// - Parameters:
    ///   - value: unfolded; a Subject decoded. White space is ignored, as
    ///     servers fold fields again.
    ///   - witness: the value of the returned witness; nil if there was none.
    package func confirms(
        _ part: Part, _ value: String, by witness: String?, account: AccountNumber
    ) -> Bool {
        guard let witness = witness.map({ Array($0.utf8) }),
            witness.count == 1 + 2 * Self.macDigits,
            let key = keys.key(witness[0])
        else { return false }
        let codes = witness.dropFirst()
        let code = part == .messageID ? codes.prefix(Self.macDigits) : codes.suffix(Self.macDigits)
        return constantTimeEqual(mac(part, value, account, key), Array(code))
    }

    private func mac(
        _ part: Part, _ value: String, _ account: AccountNumber, _ key: HMACSHA256
    ) -> [UInt8] {
        let text = value.utf8.filter { !($0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A) }
        let code = key.authenticationCode(
            for: Array("postern original \(part.rawValue) 1\naccount \(account.rawValue)\n".utf8)
                + text)
        return Array(Base32.encode(code).prefix(Self.macDigits))
    }
}
