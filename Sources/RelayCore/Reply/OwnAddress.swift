// Handles a reply to all that also goes to the user's own relay address. The user wrote it, so it
// is not delivered there, and this is not a failure.

import InternetMessage
import MailAuth

enum OwnAddress {
    /// The accounts of the reverse addresses in To and Cc. The sender of such a message to a single
    /// relay address may be a server that gives each recipient its own transaction. Only a proved
    /// author may learn whether the relay address belongs to one of these accounts.
    static func reverseAccounts(in header: HeaderSection, engine: RelayEngine) -> Set<AccountNumber>
    {
        var accounts: Set<AccountNumber> = []
        for field in header.all("To") + header.all("Cc") {
            for mailbox in AddressList.parse(field.rawValue).mailboxes
            where engine.settings.isRelayDomain(mailbox.addrSpec.domain) {
                if case .token(let token) = engine.tokens.read(mailbox.addrSpec.localPart),
                    token.purpose.isReverse
                {
                    accounts.insert(token.account)
                }
            }
        }
        return accounts
    }

    /// Whether the author is proved, as for a reply, to be a verified inbox of the account's user.
    /// The message must also be to a reverse address of that account.
    /// - Throws: only temporary failures: the proof, or the directory, is not available now. The
    ///   proof comes first, so that a failure does not reveal the owner of the addresses.
    static func isWrittenByUser(
        _ header: HeaderSection, of account: RelayAccount, evidence: AuthenticationEvidence,
        client: SMTPClientIdentity,
        engine: RelayEngine
    ) throws(Refusal) -> Bool {
        let author: AddrSpec
        do { author = try Reply.prove(header, evidence: evidence, client: client).author } catch {
            if error.isTemporary { throw error }
            return false
        }
        let named = reverseAccounts(in: header, engine: engine)
        guard ([account] + account.successors).contains(where: { named.contains($0.number) }) else {
            return false
        }
        let own = try Refusal.deferring(engine.directory.account(account.number))
        return own?.isVerifiedInbox(author, providers: engine.settings.providers) ?? false
    }

    /// Whether the author is proved as the account's team. Such a message is not a reply, even if
    /// it has other recipients.
    static func isWrittenByTeam(
        _ header: HeaderSection, of account: RelayAccount, evidence: AuthenticationEvidence,
        client: SMTPClientIdentity
    ) -> Bool {
        guard case .success(let author) = AuthorAddress.parse(header: header) else { return false }
        return ([account] + account.successors).contains { account in
            let own = account.sources.filter { $0.covers(author) }
            return !own.isEmpty
                && (try? ForwardProof.prove(
                    author: author, sources: own, evidence: evidence.proving(client))) != nil
        }
    }

    /// The answer to the user's own message at the user's own address.
    static var accepted: RelayDecision {
        RelayDecision(
            .discard,
            reasons: [
                RelayReason(
                    .ownAddress, "the user's own reply to all, at the user's own relay address")
            ])
    }
}

extension RelayAccount {
    /// Whether an address is a verified inbox of the user: in any spelling that reaches it, or with
    /// the same name at a sister domain that belongs to the same person.
    func isVerifiedInbox(_ address: AddrSpec, providers: ProviderRules) -> Bool {
        inboxes.contains { $0.isVerified && providers.areOnePersons($0.address.revealed, address) }
    }
}
