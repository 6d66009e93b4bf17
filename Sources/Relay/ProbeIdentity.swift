// The relay's own test mail. Its account is not in the store. `postern doctor` sends its mail
// through the real Postfix and checks the outgoing mail. Only the owner of the key file can make
// such mail, and it goes only back to this machine.

import InternetMessage
import MailCrypto
import RelayCore
import Support

/// Names and proof of the test account. Pure: `now` is a parameter.
package struct ProbeIdentity: Sendable {
    /// Proves a message of the probe: `<seconds since 1970 at which it expires> <key id><MAC>`.
    package static let fieldName = "X-Postern-Probe"
    /// Seconds for which a proof is valid: enough for one or two queue runs.
    package static let lifetime: Int64 = 900
    /// A domain that no one can own (RFC 2606). The probe's field proves the author of a reply, who
    /// is at this domain.
    package static let userDomain = "user.postern-doctor.invalid"
    private static let macDigits = 26
    /// The highest possible number; accounts in the store count from 1.
    package static let account = AccountNumber.highest

    private let keys: TokenKeys
    /// The relay domain of the addresses.
    package let domain: String

    package init(keys: TokenKeys, domain: String) {
        self.keys = keys
        self.domain = domain.lowercased()
    }

    /// The address of the team: author and envelope sender of a forward, correspondent of a reply.
    /// Only mail of the probe reaches it.
    package var team: AddrSpec { AddrSpec(localPart: "postern-doctor-team", domain: domain) }
    /// The destination of the probe's forwards. It is at the relay domain, so that Postfix sends
    /// them only to the capture server.
    package var inbox: AddrSpec { AddrSpec(localPart: "postern-doctor-inbox", domain: domain) }
    /// The user's own address. Replies come from it, and it must not occur in any outgoing mail.
    /// Nothing is sent to it.
    package var author: AddrSpec { AddrSpec(localPart: "probe-user", domain: Self.userDomain) }

    /// The relay address of this hour: 80 bits that only the keys can produce.
    package func relayAddress(now: Int64) -> AddrSpec {
        AddrSpec(localPart: localPart(hour: now / 3600, key: keys.activeKey), domain: domain)
    }

    /// Whether this is the relay address of this hour or of the previous one.
    package func isRelayAddress(_ localPart: String, domain: String, now: Int64) -> Bool {
        guard domain == self.domain, localPart.utf8.count == 16 else { return false }
        let hour = now / 3600
        return keys.ids.contains { id in
            guard let key = keys.key(id) else { return false }
            return [hour, hour - 1].contains {
                constantTimeEqual(
                    Array(self.localPart(hour: $0, key: key).utf8), Array(localPart.utf8))
            }
        }
    }

    private func localPart(hour: Int64, key: HMACSHA256) -> String {
        let code = key.authenticationCode(
            for: Array("postern probe address 1\n\(domain)\n\(hour)".utf8))
        return String(decoding: Base32.encode(code).prefix(16), as: UTF8.self)
    }

    /// The field that proves that a message is the probe's.
    package func proof(now: Int64) -> HeaderField {
        let end = "\(now + Self.lifetime)"
        return HeaderField(
            Self.fieldName, "\(end) \(keys.seal(Self.label(end), digits: Self.macDigits))")
    }

    package func isProved(_ header: HeaderSection, now: Int64) -> Bool {
        var fields = header.fields.lazy.filter { $0.isNamed(Self.fieldName) }.makeIterator()
        guard let field = fields.next(), fields.next() == nil else { return false }
        let words = field.rawValue.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }
        guard words.count == 2, let end = Int64(String(decoding: words[0], as: UTF8.self)),
            end >= now,
            end - now <= Self.lifetime
        else { return false }
        return keys.isSeal(words[1], of: Self.label("\(end)"), digits: Self.macDigits)
    }

    private static func label(_ end: String) -> String { "postern probe 1\n\(end)" }

    /// The account as the relay sees it.
    package func account(now: Int64) -> RelayAccount {
        RelayAccount(
            number: Self.account, relayAddress: relayAddress(now: now), isForwardingOn: true,
            hasLiveGrant: true,
            inbox: UserInbox(address: InboxAddress(inbox), isVerified: true),
            inboxes: [author, inbox].map { UserInbox(address: InboxAddress($0), isVerified: true) },
            sharedName: nil,
            sources: [RegisteredSource(scope: .address(team))])
    }
}
