// The names in a reply: the addresses that must be hidden, and the correspondents behind reverse
// addresses.

import InternetMessage
import LeakSearch
import Support

/// The addresses of one reply that the rewriting of headers, bodies and file names uses.
package struct ReplyNames {
    /// The address of the user that the team knows.
    package let relayAddress: AddrSpec
    /// Every address of the user that must not reach the team: all inboxes, and those in this
    /// message itself.
    ///
    /// Only addresses. A domain, host name or IP address alone is never searched for in text: the
    /// user's typed text stays, and a team's guess returns unchanged. Programs write such names in
    /// trace fields, Content-IDs, boundaries and report fields. There the name of the field
    /// decides, or `mayTell`, which does not use the inbox either.
    package let hidden: [InboxAddress]
    /// The spellings that reach the same inbox.
    package let providers: ProviderRules
    package let account: AccountNumber
    package let relayDomains: [String]
    private let teamDomains: Set<String>
    private let engine: RelayEngine
    private let relayAccount: RelayAccount
    private let tokens: TokenMint
    private let ids: MessageIDs
    private let stored: StoredAddresses
    /// Whether a program wrote the whole message.
    let isAutomatic: Bool
    /// Whether text of the team's or of a program is removed completely if an address can still be
    /// read in it. This costs a search of each such text, so it is done only for a reply in which
    /// the check found one.
    var removesUnread = false
    /// The recipients of the reply.
    let recipients: [AddrSpec]

    /// - Parameter isAutomatic: whether a program wrote the whole message.
    package init(
        engine: RelayEngine, account: RelayAccount, message header: HeaderSection,
        envelopeSender: String,
        stored: StoredAddresses, isAutomatic: Bool = false, recipients: [AddrSpec] = []
    ) {
        self.isAutomatic = isAutomatic
        self.recipients = recipients
        relayAddress = account.relayAddress
        providers = engine.settings.providers
        self.account = account.number
        self.engine = engine
        relayAccount = account
        relayDomains = engine.settings.relayDomains
        tokens = engine.tokens
        ids = engine.ids
        tokenAnchors = engine.tokens.anchors(account: account.number)
        self.stored = stored
        let teamDomains = Set(account.sources.compactMap(\.registeredDomain))
        self.teamDomains = teamDomains
        var found: [AddrSpec] = account.inboxes.map(\.address.revealed)
        if let sender = AddrSpec(envelope: envelopeSender) { found.append(sender) }
        for field in header.fields where Self.carriesOwnAddress(field) {
            found += AddressCandidates.find(in: field.rawValue).map(\.addrSpec)
        }
        let inboxes = Set(account.inboxes.map(\.address.revealed))
        var seen: Set<AddrSpec> = []
        let settings = engine.settings
        // Addresses that the team has registered are not hidden from it, unless one is an inbox of
        // this user.
        hidden = found.filter { address in
            !settings.isRelayDomain(address.domain) && seen.insert(address).inserted
                && (inboxes.contains(address) || !account.sources.contains { $0.covers(address) })
        }.map(InboxAddress.init)
    }

    /// Fields in which a user's program or server writes an address of the user.
    private static func carriesOwnAddress(_ field: HeaderField) -> Bool {
        let name = field.name.lowercased()
        return [
            "from", "sender", "reply-to", "delivered-to", "x-original-to", "received",
            "return-path",
        ].contains(name)
            || name.hasPrefix("resent-")
    }

    /// Whether a domain is the team's own: at, below or above one of its sources. Hiding it would
    /// hide the team from itself.
    package func isTeamDomain(_ domain: String) -> Bool {
        Self.lies(domain, in: teamDomains)
            || teamDomains.contains { DomainName.isEqualOrBelow($0, domain) }
    }

    /// Whether a host is at or below a domain that the team registered.
    func isAtTeam(host: [UInt8]) -> Bool {
        Self.lies(String(decoding: host, as: UTF8.self), in: teamDomains)
    }

    private static func lies(_ domain: String, in domains: Set<String>) -> Bool {
        domains.contains { DomainName.isEqualOrBelow(domain, $0) }
    }

    /// Whether a host name that a program wrote, in a Content-ID or a boundary, may be that of the
    /// user's machine or domain. Only the name decides, never the inbox: a team's own text there
    /// must return the same for right and wrong guesses.
    func mayTell(host: some Collection<UInt8>) -> Bool {
        // Outlook writes a time there, `01D9ABCD.12345678`.
        guard !host.isEmpty, !host.allSatisfy({ $0.hexValue != nil || $0 == UInt8(ascii: ".") })
        else { return false }
        let host = String(decoding: host, as: UTF8.self).lowercased()
        return !isTeamDomain(host) && !Self.lies(host, in: Set(relayDomains))
    }

    /// The id that the team sees instead of an id of the user's programs.
    func hide(id: [UInt8]) -> [UInt8] {
        ids.hide(id, account: account, relayDomain: relayAddress.domain)
    }

    /// The correspondent behind an address at a relay domain; nil for any other address and for
    /// tokens of other accounts.
    package func correspondent(_ address: AddrSpec) -> AddrSpec? {
        guard relayDomains.contains(address.domain.lowercased()),
            case .token(let token) = tokens.read(address.localPart),
            token.purpose.isReverse, token.account == account
        else { return nil }
        return stored.address(of: token)
    }

    /// Whether a header section contains an address of the relay domain, as only a message that
    /// passed the relay does. Only the domain decides, so the result is the same for every user.
    func isOfTeam(_ header: HeaderSection) -> Bool {
        header.fields.contains { field in
            holdsRelayAddress(field.unfoldedBytes)
                || holdsRelayAddress(Array(field.decodedValue.utf8))
        }
    }

    private func holdsRelayAddress(_ text: [UInt8]) -> Bool {
        let text = text.map(\.asciiLowercased)
        return relayDomains.contains { domain in
            let domain = Array(domain.utf8)
            var from = 0
            while let at = text[from...].firstIndex(where: {
                $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "0")
            }) {
                from = at + 1
                let isEncoded =
                    at >= 2 && text[at - 1] == UInt8(ascii: "4") && "%=".utf8.contains(text[at - 2])
                guard text[at] == UInt8(ascii: "@") || isEncoded, text[from...].starts(with: domain)
                else { continue }
                let end = from + domain.count
                if end == text.count
                    || !(text[end].isASCIIAlphanumeric || text[end] == UInt8(ascii: "-"))
                {
                    return true
                }
            }
            return false
        }
    }

    /// A token of this account; nil for any other local part.
    func ownToken(_ localPart: String) -> AddressToken? {
        guard case .token(let token) = tokens.read(localPart), token.account == account else {
            return nil
        }
        return token
    }

    /// Whether an address is a reverse address of this account, for any correspondent.
    func isReverse(_ address: AddrSpec) -> Bool {
        relayDomains.contains(address.domain.lowercased())
            && ownToken(address.localPart)?.purpose.isReverse == true
    }

    /// The correspondent behind a token of this account; nil for return paths and if no valid
    /// address is stored.
    func correspondent(of token: AddressToken) -> AddrSpec? {
        token.purpose.isReverse ? stored.address(of: token) : nil
    }

    /// The octets after the key id in this account's reverse addresses, for each form and key.
    let tokenAnchors: [[UInt8]]

    /// Whether an address is a token of ours of any kind; none may reach the team.
    package func isToken(_ address: AddrSpec) -> Bool {
        guard relayDomains.contains(address.domain.lowercased()) else { return false }
        if case .notAToken = tokens.read(address.localPart) { return false }
        return true
    }

    /// Whether a local part is a return path, or a reverse address of another account of this
    /// relay, as its MAC shows.
    func isForeignToken(_ localPart: some Collection<UInt8>) -> Bool {
        switch tokens.read(String(decoding: localPart, as: UTF8.self)) {
        case .token(let token): !token.purpose.isReverse || token.account != account
        case .answer: true
        default: false
        }
    }

    /// The message ids of a header section, in the form for the team.
    func ids(
        in header: HeaderSection, work: WorkBudget, holdsToken: @escaping ([UInt8]) -> Bool
    ) -> OutwardIDs {
        OutwardIDs(
            engine: engine, account: relayAccount, header: header, work: work,
            holdsToken: holdsToken)
    }

    /// Whether an address is one of the user's own: in any spelling that reaches the same inbox, or
    /// at a sister domain.
    package func isHidden(_ address: AddrSpec) -> Bool {
        let canonical = providers.canonical(address)
        let sisters = ProviderRules.sisters(of: canonical.domain)
        return hidden.contains { inbox in
            let other = providers.canonical(inbox.revealed)
            return other.localPart.hasSameOctets(as: canonical.localPart)
                && (other.domain.hasSameOctets(as: canonical.domain)
                    || sisters.contains { $0.hasSameOctets(as: other.domain) })
        }
    }
}
