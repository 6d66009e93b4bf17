// The kind of a recipient, recognised only by its domain and local part.

import InternetMessage
import MailCrypto
import Support

package enum RecipientReading: Sendable, Hashable {
    /// A recipient at another domain: the operator's own mail.
    case elsewhere
    /// postmaster, abuse or a configured local recipient; leads to the operator's address, if one
    /// is configured.
    case operatorMailbox(AddrSpec?)
    /// Has the form of a relay address; local part in lower case.
    case relayAddress(localPart: String, domain: String)
    case reverse(AddressToken)
    case returnPath(AddressToken)
    /// Receives the answer to a verification message.
    case answer(AnswerToken)
    case forgedReverse
    case forgedReturnPath
    case unknown

    /// - Parameter path: the argument of RCPT TO, with or without angle brackets.
    package static func read(
        _ path: String, settings: RelaySettings, tokens: TokenMint
    ) -> RecipientReading {
        guard let address = AddrSpec.parseForwardPath(path) else {
            // `<postmaster>` needs no domain (RFC 5321 section 4.1.1.3); Postfix adds its own.
            return mentionsRelayDomain(path, settings: settings) ? .unknown : .elsewhere
        }
        guard settings.isRelayDomain(address.domain) else { return .elsewhere }
        let local = address.localPart.foldedIdentity
        if let target = settings.operatorMailbox(local) { return .operatorMailbox(target) }
        if (10...16).contains(local.utf8.count), Base32.isEncoded(local.utf8) {
            return .relayAddress(localPart: local, domain: address.domain.lowercased())
        }
        switch tokens.read(address.localPart) {
        case .notAToken, .forgedAnswer: return .unknown
        case .answer(let token): return .answer(token)
        case .forged(let form):
            return form == .returnPath ? .forgedReturnPath : .forgedReverse
        case .token(let token):
            return token.purpose.isReverse ? .reverse(token) : .returnPath(token)
        }
    }

    /// An unreadable path is ours if it is empty or contains a relay domain anywhere. Postfix takes
    /// `x@relay.example.`, `relay.example!x`, `x%relay.example` and similar for addresses there. No
    /// mail to a relay domain may bypass the relay.
    private static func mentionsRelayDomain(_ path: String, settings: RelaySettings) -> Bool {
        let path = path.asciiLowercased
        return path.utf8.allSatisfy { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: ">") }
            || settings.relayDomains.contains { path.contains($0) }
    }
}
