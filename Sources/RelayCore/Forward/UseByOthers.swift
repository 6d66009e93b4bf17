// Whether a refused message shows that someone other than the team has a relay address.

import InternetMessage
import MailAuth
import Support

/// A message of someone other than the team to a relay address, which was refused. Contains
/// nothing of its content.
package struct UseByOthers: Sendable, Hashable {
    /// A valid signature that is aligned with From, and covers a To or Cc with the relay address.
    package struct Proof: Sendable, Hashable {
        /// `d=`, lower case.
        package let domain: String
        /// `s=`, lower case.
        package let selector: String

        /// Nil if one of them is not a name of the DNS: an upstream filter may report anything.
        package init?(domain: String, selector: String) {
            guard [domain, selector].allSatisfy(Self.isName) else { return nil }
            self.domain = domain
            self.selector = selector
        }

        private static func isName(_ text: String) -> Bool {
            (1...253).contains(text.utf8.count)
                && text.utf8.allSatisfy { octet in
                    octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "-")
                        || octet == UInt8(ascii: "_") || octet == UInt8(ascii: ".")
                }
        }
    }

    package let account: AccountNumber
    /// The relay address, which may be an earlier one of the account.
    package let address: AddrSpec
    /// To compare it with the user's inboxes. It is never stored.
    package let author: AddrSpec
    /// Nil if nothing proves who wrote to this address.
    package let proof: Proof?

    package init(account: AccountNumber, address: AddrSpec, author: AddrSpec, proof: Proof?) {
        self.account = account
        self.address = address
        self.author = author
        self.proof = proof
    }
}

/// The result for one refused message and one relay address.
package enum UseVerdict: Sendable, Hashable {
    /// Others have the address. The proof names the domain that wrote to it, if there is one.
    case others(UseByOthers.Proof?)
    /// The message shows nothing about who has the address.
    case innocent(Innocence)
}

/// Why a message from outside the team's sources is no sign that others have the address. All but
/// the first of these can be forged, and gain nothing: the message is refused in any case.
package enum Innocence: String, Sendable, Hashable, CaseIterable {
    /// A signature or SPF of the team's domains, or of the same organization: a service of the
    /// team that no one registered.
    case team
    /// An answer to a message that was sent through the relay, or to the team and the user.
    case answer
    /// A report or an automatic answer, perhaps to mail with a forged sender.
    case automatic
    /// Sent to a mailing list.
    case list
    /// Written to another address, and forwarded to this one.
    case forwarded
}

/// Reads one refused message. Pure; the work is linear in the header section.
struct UseReading {
    /// Ids of In-Reply-To and References that are compared: the first and the last ones, as
    /// programs shorten References in the middle.
    private static let maximumIDs = 20

    private let header: HeaderSection
    private let client: SMTPClientIdentity
    private let author: AddrSpec
    private let evidence: AuthenticationEvidence
    private let engine: RelayEngine

    /// Nil if From does not name one author.
    /// - Parameter evidence: empty if no evidence could matter (`needsEvidence`).
    init?(
        header: HeaderSection, client: SMTPClientIdentity, evidence: AuthenticationEvidence,
        engine: RelayEngine
    ) {
        guard case .success(let author) = AuthorAddress.parse(header: header) else { return nil }
        self.header = header
        self.client = client
        self.author = author.normalized ?? author
        self.evidence = evidence
        self.engine = engine
    }

    /// Whether proof of the message could change the verdict for one of these accounts. A message
    /// without a signature costs no DNS query, unless its envelope sender is the team's.
    static func needsEvidence(
        _ header: HeaderSection, client: SMTPClientIdentity, accounts: [RelayAccount]
    ) -> Bool {
        if header.first("DKIM-Signature") != nil { return true }
        guard let sender = AddrSpec(envelope: client.mailFrom) else { return false }
        return accounts.contains { account in
            ([account] + account.successors).contains {
                $0.sources.contains { $0.isOfTeam(sender) }
            }
        }
    }

    /// The use of this account's address; nil for an innocent message.
    func use(of account: RelayAccount) -> UseByOthers? {
        guard case .others(let proof) = verdict(for: account) else { return nil }
        return UseByOthers(
            account: account.number, address: account.relayAddress, author: author, proof: proof)
    }

    func verdict(for account: RelayAccount) -> UseVerdict {
        if isAutomatic { return .innocent(.automatic) }
        if isFromList { return .innocent(.list) }
        if isAnswer(to: account) { return .innocent(.answer) }
        if isOfTeam(account) { return .innocent(.team) }
        guard names(account.relayAddress) else {
            return passedOn ? .innocent(.forwarded) : .others(nil)
        }
        return .others(proof(naming: account.relayAddress))
    }

    // MARK: Proof

    /// The first signature that proves that its domain wrote to this address. A signature over
    /// other recipients proves nothing here: anyone who has such a message can send it again.
    private func proof(naming address: AddrSpec) -> UseByOthers.Proof? {
        for finding in evidence.dkim where finding.isProof {
            let alone = AuthenticationEvidence(dkim: [finding], dmarc: evidence.dmarc)
            guard (try? ReplyProof.prove(author: author, evidence: alone)) != nil,
                Self.recipientFields.contains(where: {
                    // Of two fields, the signature may cover the one, and anyone may have added
                    // the other.
                    header.all($0).count == 1 && isNamed(address, in: $0)
                        && finding.provablyCovers($0, in: header)
                }),
                let proof = UseByOthers.Proof(
                    domain: finding.domain, selector: finding.selector.asciiLowercased)
            else { continue }
            return proof
        }
        return nil
    }

    private static let recipientFields = ["To", "Cc"]

    private func names(_ address: AddrSpec) -> Bool {
        Self.recipientFields.contains { isNamed(address, in: $0) }
    }

    private func isNamed(_ address: AddrSpec, in field: String) -> Bool {
        header.all(field).contains { field in
            AddressList.parse(field.rawValue).mailboxes.contains { $0.addrSpec.isSame(as: address) }
        }
    }

    // MARK: Innocence

    /// Null sender (RFC 5321 section 4.5.5), or an automatic answer (RFC 3834 section 5).
    private var isAutomatic: Bool {
        guard !client.mailFrom.isEmpty else { return true }
        if header.all("Auto-Submitted").contains(where: {
            HeaderField.trim($0.unfoldedBytes[...]).map(\.asciiLowercased)
                .starts(with: "auto-replied".utf8)
        }) {
            return true
        }
        return header.first("Content-Type").map {
            ContentType.parse($0.rawValue).matches("multipart", "report")
        } ?? false
    }

    /// The fields of lists to which people write. List-Id and List-Unsubscribe are no sign: every
    /// service for newsletters adds them.
    private var isFromList: Bool {
        if header.fields.contains(where: Self.listFields.contains) { return true }
        // RFC 2369 section 3.4: NO for a list to which no one may write.
        return header.all("List-Post").contains {
            !HeaderField.trim($0.unfoldedBytes[...]).map(\.asciiLowercased)
                .starts(with: "no".utf8)
        }
    }

    /// Of Mailman, ezmlm and Google Groups.
    private static let listFields: FieldNameSet = [
        "x-beenthere", "mailing-list", "x-google-group-id",
    ]

    /// An answer has an id that only a recipient of the user's message can know, or is also sent to
    /// a reverse address, or to the team in answer to the team's message.
    private func isAnswer(to account: RelayAccount) -> Bool {
        if !OwnAddress.reverseAccounts(in: header, engine: engine).isEmpty { return true }
        let accounts = [account] + account.successors
        let ids = OutwardIDs.threadFields.flatMap { name in
            let all = header.all(name).flatMap { MessageIDs.ids(in: $0.rawValue) }
            return all.count <= 2 * Self.maximumIDs
                ? all : Array(all.prefix(Self.maximumIDs) + all.suffix(Self.maximumIDs))
        }
        let isRelayDomain = engine.settings.isRelayDomain
        if ids.contains(where: { id in
            accounts.contains {
                engine.ids.isHidden(id, account: $0.number, isRelayDomain: isRelayDomain)
            }
        }) {
            return true
        }
        let sources = accounts.flatMap(\.sources)
        let isToTeam = Self.recipientFields.contains { name in
            header.all(name).contains { field in
                AddressList.parse(field.rawValue).mailboxes.contains { mailbox in
                    sources.contains { $0.isOfTeam(mailbox.addrSpec) }
                }
            }
        }
        return isToTeam
            && ids.contains { id in
                guard let at = id.lastIndex(of: UInt8(ascii: "@")) else { return false }
                let domain = String(decoding: id[(at + 1)...], as: UTF8.self)
                return sources.contains { $0.ownsIdentifier(at: domain) }
            }
    }

    /// Proved by a domain of the team, or from another domain of the team's organization.
    private func isOfTeam(_ account: RelayAccount) -> Bool {
        let sources = ([account] + account.successors).flatMap(\.sources)
        func isTeams(_ domain: String) -> Bool {
            let domain = domain.asciiLowercased
            return sources.contains { source in
                source.isPaired(envelope: domain)
                    || source.registeredDomain.map { DomainName.isEqualOrBelow(domain, $0) }
                        ?? false
            }
        }
        let proving = evidence.proving(client)
        if proving.dkim.contains(where: { $0.isProof && isTeams($0.domain) }) { return true }
        if proving.spf.contains(where: { $0.result == .pass && isTeams($0.domain) }) { return true }
        // The domain of From, proved by itself, above a source or in the same organization.
        guard (try? ReplyProof.prove(author: author, evidence: proving)) != nil else {
            return false
        }
        var organizations = [author.asciiDomain]
        if let organization = evidence.dmarc?.organizationalDomain?.asciiLowercased,
            organization.utf8.contains(UInt8(ascii: "."))
        {
            organizations.append(organization)
        }
        return sources.compactMap(\.registeredDomain).contains { source in
            organizations.contains { DomainName.isEqualOrBelow(source, $0) }
        }
    }

    /// Whether a server on the way had the message for another recipient: fields of a person or a
    /// server that forwards, ARC, or a Received field for another address.
    private var passedOn: Bool {
        if header.fields.contains(where: {
            Self.forwarderFields.contains($0) || $0.nameBegins(with: "resent-")
        }) {
            return true
        }
        return header.all("Received").contains { Self.namesRecipient($0.unfoldedBytes) }
    }

    private static let forwarderFields: FieldNameSet = [
        "arc-seal", "delivered-to", "x-forwarded-to", "x-forwarded-for", "x-original-to",
    ]

    /// Whether a Received field has the clause `for <address>` (RFC 5321 section 4.4). It names
    /// another address than ours: this is asked only if To and Cc do not name ours either.
    private static func namesRecipient(_ value: [UInt8]) -> Bool {
        let words = value.split(whereSeparator: \.isFoldingWhiteSpace)
        return zip(words, words.dropFirst()).contains { word, next in
            word.equalsIgnoringASCIICase("for".utf8) && next.contains(UInt8(ascii: "@"))
        }
    }
}

extension AddrSpec {
    /// Whether both are one relay address: the letter case does not count.
    fileprivate func isSame(as other: AddrSpec) -> Bool {
        localPart.foldedIdentity.hasSameOctets(as: other.localPart.foldedIdentity)
            && asciiDomain.hasSameOctets(as: other.asciiDomain)
    }
}
