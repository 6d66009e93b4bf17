// A reply from a user to a team. Proves that it is the user's, then removes all data of the inbox.

import InternetMessage
import MailAuth
import MailCrypto

enum Reply {
    /// - Parameters:
    ///   - correspondents: the addresses behind the recipients, at least one.
    ///   - isOfOneAccount: whether all paths belong to this account. If not, only the proved user
    ///     gets `mixedAccounts`.
    static func decide(
        engine: RelayEngine, message: IncomingMessage, account number: AccountNumber,
        correspondents: [AddrSpec], paths: [String],
        isOfOneAccount: Bool
    ) throws(Refusal) -> RelayDecision {
        // The proof comes before the inbox is compared, so that neither answer nor time reveals the
        // right inbox to others.
        let (author, proof) = try prove(
            message.header, evidence: message.evidence, client: message.client)
        guard let account = try Refusal.deferring(engine.directory.account(number)) else {
            throw .replyNotProved(RelayReason(.accountDeleted))
        }
        let providers = engine.settings.providers
        guard account.isVerifiedInbox(author, providers: providers) else {
            let domain = providers.canonical(author).domain
            if account.inboxes.contains(where: {
                $0.isVerified && providers.canonical($0.address.revealed).domain == domain
            }),
                let report = try serverReport(message, author: author)
            {
                guard isOfOneAccount else { throw .mixedAccounts }
                guard account.isActive else { throw .inactive(account) }
                if let freeze = account.freeze { throw .frozenReply(freeze) }
                return try tell(
                    report, of: message, engine: engine, account: account,
                    correspondents: correspondents, paths: paths)
            }
            throw .replyNotProved(
                RelayReason(
                    .notTheUsersInbox,
                    "the author is proved, but is not a verified inbox of the account's user"))
        }
        guard isOfOneAccount else { throw .mixedAccounts }
        guard account.isActive else { throw .inactive(account) }
        if let freeze = account.freeze { throw .frozenReply(freeze) }

        let isAutomatic =
            message.client.mailFrom.isEmpty || AutomaticMail.isAutomatic(message.header)
        let stored = StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        let rewriting = ReplyRewriting(
            engine: engine, account: account, header: message.header,
            envelopeSender: message.client.mailFrom,
            isAutomatic: isAutomatic, now: message.now,
            hops: hops(engine: engine, header: message.header), stored: stored,
            recipients: correspondents)
        let rewritten: OutgoingMessage
        do {
            rewritten = try message.body.rewrite(
                turn: message.turn, keeping: { $0.octets(beside: $1) }
            ) {
                body throws(Refusal) in
                try rewriting.rewrite(body: body)
            }
        } catch {
            if error.reason.code == .leakIncident {
                engine.directory.count(.leakIncident, account: number, day: message.day)
            }
            throw error
        }
        if let failure = stored.failure { throw .storeTrouble(failure.detail) }

        // Counted last: a deferred or refused message comes again, and must not use up its own
        // place.
        var recipients = correspondents
        if isAutomatic {
            recipients = try firstToday(
                engine: engine, account: account, correspondents: correspondents, day: message.day)
            guard !recipients.isEmpty else {
                engine.directory.count(.automaticDropped, account: number, day: message.day)
                return RelayDecision(
                    .discard,
                    reasons: [
                        RelayReason(
                            .automaticLimit, "one automatic message per correspondent and day")
                    ])
            }
        } else {
            try reserve(engine: engine, account: number, day: message.day)
        }

        let domain = account.relayAddress.domain
        let sender =
            isAutomatic
            ? "<>"
            : "<\(returnPath(engine: engine, account: number, recipients: recipients, day: message.day))@\(domain)>"
        return try rewritten.decision(
            replacing: message.header, engine: engine, domain: domain, now: message.now,
            sender: sender, paths: paths,
            recipients: recipients,
            reasons: [RelayReason(.replied, "author proved by \(proof.method)")] + rewritten.reasons
        )
    }

    /// The author and the proof. Called before a body is kept, with the best possible evidence, and
    /// at the end of the body, with the final evidence.
    static func prove(
        _ header: HeaderSection, evidence: AuthenticationEvidence, client: SMTPClientIdentity
    ) throws(Refusal) -> (author: AddrSpec, proof: SenderProof) {
        switch AuthorAddress.parse(header: header) {
        case .success(let author):
            (author, try ReplyProof.prove(author: author, evidence: evidence.proving(client)))
        case .failure(let defect): throw .replyNotProved(RelayReason(.unclearAuthor, "\(defect)"))
        }
    }

    private static func returnPath(
        engine: RelayEngine, account: AccountNumber, recipients: [AddrSpec], day: UInt64
    ) -> String {
        engine.tokens.replyReturnPath(
            account: account, recipients: recipients, nonce: engine.nonce(),
            expiryDay: day + engine.settings.returnPathDays,
            outgoing: engine.settings.outgoingClass(nil)
        ).localPart
    }

    /// The delivery report that the server of one of the user's inboxes sent to a reverse address.
    /// Against the rules, it was sent to the author and not to the return path of the undelivered
    /// message.
    private static func serverReport(
        _ message: IncomingMessage, author: AddrSpec
    ) throws(Refusal) -> DeliveryReport? {
        guard message.client.mailFrom.isEmpty || MailSystem.isSender(message.client),
            MailSystem.isNamed(author.localPart)
        else {
            return nil
        }
        let report = try message.report()
        return report.kind == .delivery ? report : nil
    }

    /// Sends the correspondents a report in the words of this relay, rebuilt like one at a return
    /// path; one a day for each.
    private static func tell(
        _ report: DeliveryReport, of message: IncomingMessage, engine: RelayEngine,
        account: RelayAccount,
        correspondents: [AddrSpec],
        paths: [String]
    ) throws(Refusal) -> RelayDecision {
        let isSuccess =
            report.decisive.map { $0.action != .failed && $0.action != .delayed } ?? false
        let recipients =
            isSuccess
            ? []
            : try firstToday(
                engine: engine, account: account, correspondents: correspondents, day: message.day)
        guard let first = recipients.first else {
            engine.directory.count(.reportDropped, account: account.number, day: message.day)
            return RelayDecision(
                .discard,
                reasons: [
                    RelayReason(
                        .automaticLimit,
                        isSuccess ? "success" : "one automatic message per correspondent and day")
                ])
        }
        let outgoing = RebuiltReport(
            engine: engine, account: account, message: message, report: report
        ).forTeam(first)
        engine.directory.count(.reportRelayed, account: account.number, day: message.day)
        return try outgoing.decision(
            replacing: message.header, engine: engine, domain: account.relayAddress.domain,
            now: message.now, sender: "<>",
            paths: paths,
            recipients: recipients,
            reasons: [
                RelayReason(
                    .reportRelayed,
                    report.decisive.map { "\($0.action.rawValue) \($0.status)" } ?? "")
            ])
    }

    private static func reserve(
        engine: RelayEngine, account: AccountNumber, day: UInt64
    ) throws(Refusal) {
        let limit = engine.settings.limits.messagesPerDay
        guard
            try Refusal.deferring(
                engine.directory.reserve(.reply, account: account, day: day, limit: limit))
        else {
            throw .dailyLimit(limit)
        }
    }

    private static func hops(engine: RelayEngine, header: HeaderSection) -> Int {
        if case .hops(let hops) = engine.mark.trace(header) { return hops }
        return 0
    }

    /// The correspondents who had no automatic message of this account today.
    private static func firstToday(
        engine: RelayEngine, account: RelayAccount, correspondents: [AddrSpec], day: UInt64
    ) throws(Refusal) -> [AddrSpec] {
        var first: [AddrSpec] = []
        for correspondent in correspondents {
            // The token is a keyed name of (account, correspondent), so the stored value does not
            // show who wrote to whom.
            let name = SHA256.hash(
                Array(
                    engine.tokens.reverse(account: account.number, correspondent: correspondent)
                        .localPart.utf8))
            if try Refusal.deferring(
                engine.directory.reserveAutomatic(
                    account: account.number, correspondent: name, day: day))
            {
                first.append(correspondent)
            }
        }
        return first
    }
}

/// A rewritten message: all fields and the body, which replace the received ones.
struct OutgoingMessage {
    var header: HeaderSection
    /// The complete body in pieces; nil if it is unchanged.
    var body: [ArraySlice<UInt8>]?
    /// The outgoing body, for signing.
    var bodyForSigning: [ArraySlice<UInt8>]
    var reasons: [RelayReason] = []

    /// Octets of the body that are not in the received one.
    func octets(beside old: [UInt8]) -> Int {
        old.withUnsafeBytes { old in
            (body ?? []).reduce(0) { sum, piece in
                piece.withUnsafeBytes { piece in
                    guard let start = piece.baseAddress, let first = old.baseAddress,
                        start >= first, start < first + old.count
                    else {
                        return sum + piece.count
                    }
                    return sum
                }
            }
        }
    }

    /// The decision that replaces the received message with this one.
    func decision(
        replacing old: HeaderSection, engine: RelayEngine, domain: String, now: Int64,
        sender: String, paths: [String],
        recipients: [AddrSpec], reasons: [RelayReason]
    ) throws(Refusal) -> RelayDecision {
        var edits = HeaderEdits(old, initially: .remove)
        let header = LegalFields(header).legal(header)
        edits.inserted = header.fields
        if let signing = engine.signer?.begin() {
            for piece in bodyForSigning { piece.withUnsafeBytes { signing.update(body: $0) } }
            edits.inserted =
                try signing.signatures(header: header, domain: domain, now: now) + edits.inserted
        }
        return RelayDecision(
            .relay,
            modifications: edits.modifications + (body.map { [.replaceBody($0)] } ?? []) + [
                .changeSender(sender)
            ]
                + paths.map { .deleteRecipient($0) }
                + recipients.map { .addRecipient("<\(engine.settings.delivery($0).wireForm)>") },
            reasons: reasons)
    }
}
