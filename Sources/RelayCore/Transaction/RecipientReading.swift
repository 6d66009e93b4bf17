// What a recipient is, told by its domain and local part alone.

import InternetMessage
import MailCrypto

package enum RecipientReading: Sendable, Hashable {
    /// A recipient at another domain: the operator's own mail.
    case elsewhere
    /// postmaster, abuse or a configured local recipient; leads to the operator's address, where there is one.
    case operatorMailbox(AddrSpec?)
    /// Has the form of a relay address; local part in lower case.
    case relayAddress(localPart: String, domain: String)
    case reverse(AddressToken)
    case returnPath(AddressToken)
    case forgedReverse
    case forgedReturnPath
    case unknown

    /// - Parameter path: the argument of RCPT TO, with or without angle brackets.
    package static func read(_ path: String, settings: RelaySettings, tokens: TokenMint) -> RecipientReading {
        guard let address = AddrSpec.parseForwardPath(path) else {
            // `<postmaster>` needs no domain (RFC 5321 section 4.1.1.3); Postfix completes it with its own.
            return isAtRelayDomain(path, settings: settings) ? .unknown : .elsewhere
        }
        guard settings.isRelayDomain(address.domain) else { return .elsewhere }
        let local = address.localPart.lowercased()
        if let target = settings.localRecipients[local] { return .operatorMailbox(target) }
        if local == "postmaster" || local == "abuse" { return .operatorMailbox(settings.operatorAddress) }
        if (10...16).contains(local.utf8.count), Base32.isEncoded(local.utf8) {
            return .relayAddress(localPart: local, domain: address.domain.lowercased())
        }
        switch tokens.read(address.localPart) {
        case .notAToken: return .unknown
        case .forged(let purpose): return purpose.isReverse ? .forgedReverse : .forgedReturnPath
        case .token(let token): return token.purpose.isReverse ? .reverse(token) : .returnPath(token)
        }
    }

    /// A path that cannot be read is judged by what stands behind its last @, up to an octet that no domain holds, so that nothing at
    /// a relay domain slips by.
    private static func isAtRelayDomain(_ path: String, settings: RelaySettings) -> Bool {
        guard let at = path.lastIndex(of: "@") else { return false }
        let domain = path[path.index(after: at)...].prefix { $0 != ">" && $0.asciiValue.map { (0x21...0x7E).contains($0) } ?? true }
        return settings.isRelayDomain(String(domain))
    }
}
