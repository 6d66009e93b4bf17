// One message from a team to a user: first the proof, then the state of the account, then the
// rewriting.

import InternetMessage
import MailAuth

/// The forwarding of one message. Its body is hashed as it arrives, and kept only while it may need
/// rewriting.
final class ForwardSession {
    private let engine: RelayEngine
    /// The recipient's account. Once the author is proved, the account of the author's team.
    private(set) var account: RelayAccount
    private let client: SMTPClientIdentity
    private let header: HeaderSection
    private let now: Int64
    let author: AddrSpec
    /// Set after the decision: whether SPF of the envelope proves the author, regardless of
    /// signatures.
    private(set) var isEnvelopeProof = false
    /// The evidence, if it does not prove the author as the team's.
    private(set) var unadmitted: AuthenticationEvidence?
    /// Every registered source of any team that covers the author; nil if a source of the
    /// recipient's team does, so that no look-up was needed.
    private let covering: [RegisteredSource]?
    private let authentication: any AuthenticationSession
    private let signing: (any SigningSession)?
    private let body: ForwardBody
    /// Whether the message is counted in the warm-up.
    private var isWarming = false

    /// Refuses at once if no evidence could help: for an unclear author, or one that no team has
    /// registered. Sends no DNS queries.
    init(
        engine: RelayEngine, account: RelayAccount, client: SMTPClientIdentity,
        header: HeaderSection, now: Int64
    ) throws(Refusal) {
        switch AuthorAddress.parse(header: header) {
        case .success(let address): author = address
        case .failure(let defect): throw .unreadableFrom(defect)
        }
        let author = author
        if ([account] + account.successors).contains(where: {
            $0.sources.contains { $0.covers(author) }
        }) {
            covering = nil
        } else {
            let covering = try Self.covering(author, engine)
            guard !covering.isEmpty else {
                throw .unauthorizedSender(client.mailFrom, from: author.asciiDomain)
            }
            self.covering = covering
        }
        self.engine = engine
        self.account = account
        self.client = client
        self.header = header
        self.now = now
        authentication = engine.authenticator.begin(client: client, header: header, now: now)
        signing = engine.signer?.begin()
        body = ForwardBody(
            header: header, account: account.number, memory: engine.replyMemory.forwards, now: now)
    }

    private static func covering(
        _ author: AddrSpec, _ engine: RelayEngine
    ) throws(Refusal) -> [RegisteredSource] {
        try Refusal.deferring(engine.directory.sources(covering: author))
    }

    /// Queries the DNS before the body arrives if the body will be kept, so that no body is in
    /// memory during the wait.
    func prepare() { _ = authentication.prepare() }

    func update(body chunk: UnsafeRawBufferPointer) {
        authentication.update(body: chunk)
        signing?.update(body: chunk)
        body.update(chunk)
    }

    /// - Parameter paths: the recipients exactly as in RCPT.
    func finish(paths: [String]) throws(Refusal) -> RelayDecision {
        let evidence = authentication.finish()
        let proving = evidence.proving(client)
        let admitting = ([account] + account.successors).compactMap {
            candidate -> (RelayAccount, [RegisteredSource], SenderProof)? in
            let own = candidate.sources.filter { $0.covers(author) }
            guard !own.isEmpty,
                let proof = try? ForwardProof.prove(author: author, sources: own, evidence: proving)
            else {
                return nil
            }
            return (candidate, own, proof)
        }
        guard
            let (admitted, own, proof) = admitting.first(where: { $0.0.isActive })
                ?? admitting.first
        else {
            unadmitted = evidence
            // Checks the sources of all teams, so that the answer to another sender does not reveal
            // whose address it is.
            let all: [RegisteredSource]
            if let covering { all = covering } else { all = try Self.covering(author, engine) }
            _ = try ForwardProof.prove(author: author, sources: all, evidence: proving)
            throw .unknownAddress(
                "the author is proved, but not as a source of the team of this address")
        }
        // From here on the sender is proved, and may learn the state of the account.
        account = admitted
        isEnvelopeProof =
            evidence.ofEnvelope(client).map {
                (try? ForwardProof.prove(author: author, sources: own, evidence: $0)) != nil
            }
            ?? false
        guard account.isActive else { throw .inactive(account) }
        if let freeze = account.freeze { throw .frozenForward(freeze) }
        guard account.isForwardingOn else { throw .forwardingOff }
        if account.hasBlocks,
            try Refusal.deferring(engine.directory.isBlocked(author, by: account.number))
        {
            throw .senderBlocked
        }
        guard let inbox = account.inbox, inbox.isVerified else { throw .inboxUnverified }
        guard !inbox.isSuspended else { throw .inboxSuspended }
        // Otherwise Postfix would keep the message for days.
        guard !engine.settings.isDeadEnd(inbox.address.revealed.domain, for: account.number) else {
            throw .notConfigured("the inbox is at a relay domain")
        }

        let day = UInt64(max(0, now) / 86_400)
        let limits = engine.settings.limits
        let sender = ForwardEnvelope.reportableSender(
            client: client, author: author, proof: proof, sources: own, evidence: evidence
        ) { [settings = engine.settings, number = account.number] address in
            !settings.isDeadEnd(settings.delivery(address).domain, for: number)
        }
        var rewriting = ForwardRewriting(
            engine: engine, account: account, author: author, now: now,
            isUnproved: { [self] in !isCovered($0, by: proof, evidence) })
        var edits = try rewriting.rewrite(header, evidence: evidence).edits
        let newBody = try rewriteBody(&rewriting, inbox: inbox.address)
        let returnPath = ForwardEnvelope.returnPath(
            engine: engine, account: account, client: client, sender: sender, day: day)
        edits.inserted += ForwardEnvelope.feedback(
            engine: engine, account: account, inbox: inbox.address, returnPath: returnPath.token,
            day: day)
        let toStore =
            Array(rewriting.toStore.values)
            + (returnPath.token.flatMap {
                StoredAddress($0, expiryDay: day + engine.settings.returnPathDays)
            }.map { [$0] } ?? [])
        var signed = edits
        if let signing = newBody.pieces.map(resigned) ?? signing {
            signed.inserted =
                try signing.signatures(
                    header: edits.result, domain: account.relayAddress.domain, now: now)
                + signed.inserted
        }

        let provider = engine.provider(of: inbox.address)
        if let rules = engine.settings.delivery, let team = account.team,
            let refusal = Refusal.delivery(
                try Refusal.deferring(
                    engine.directory.admission(
                        of: team, to: provider, perHour: rules.slowedPerHour, now: now)),
                at: provider)
        {
            throw refusal
        }

        // Counts the message last, so that a message deferred for another reason does not count.
        // The places are reserved before anything is stored, and released if storing fails.
        let (directory, limit) = (engine.directory, limits.messagesPerDay)
        guard
            try Refusal.deferring(
                directory.reserve(.forward, account: account.number, day: day, limit: limit))
        else { throw .dailyLimit(limits.messagesPerDay) }
        var isAccepted = false
        defer { if !isAccepted { giveUp() } }
        try reserveWarmUp(day: day)
        guard try Refusal.deferring(store(toStore, day: day)) else {
            throw .storedAddressLimit(limits.storedAddressesPerDay)
        }
        isAccepted = true

        directory.count(
            .forwarded, at: provider, account: account.number, now: now)
        return RelayDecision(
            .relay,
            modifications: signed.modifications + (newBody.pieces.map { [.replaceBody($0)] } ?? [])
                + [.changeSender(returnPath.path)] + paths.map { .deleteRecipient($0) }
                + [.addRecipient("<\(inbox.address.revealed.wireForm)>")],
            reasons: [RelayReason(.forwarded, "author proved by \(proof.method)")]
                + rewriting.reasons
                + Self.reasons(newBody))
    }

    /// Whether the proof of the author also proves a field: by SPF, as the team's server sent all
    /// of the message, or by a signature over the field.
    private func isCovered(
        _ name: String, by proof: SenderProof, _ evidence: AuthenticationEvidence
    ) -> Bool {
        guard case .dkim(let domain) = proof, !isEnvelopeProof else { return true }
        return evidence.dkim.contains {
            $0.isProof && $0.domain == domain && $0.covers(name, in: header)
        }
    }

    private func rewriteBody(
        _ rewriting: inout ForwardRewriting, inbox: InboxAddress
    ) throws(Refusal) -> ForwardRewriting.Body {
        try body.finish()
        let rewritten = try body.rewrite { bytes throws(Refusal) in
            try rewriting.rewriteBody(header, bytes, inbox: inbox)
        }
        return rewritten ?? ForwardRewriting.Body(linksLeft: body.need == .links ? 1 : 0)
    }

    /// The reasons about the body, for the log.
    private static func reasons(_ body: ForwardRewriting.Body) -> [RelayReason] {
        (body.pieces == nil ? [] : [RelayReason(.bodyRewritten)])
            + (body.linksLeft == 0
                ? []
                : [
                    RelayReason(
                        .linksLeft,
                        "\(body.linksLeft) links, or texts with links, could not be rewritten")
                ])
    }

    /// A signing session over this body instead of the received one.
    private func resigned(_ body: [ArraySlice<UInt8>]) -> (any SigningSession)? {
        let signing = engine.signer?.begin()
        for piece in body { piece.withUnsafeBytes { signing?.update(body: $0) } }
        return signing
    }
}

extension ForwardSession {
    /// Stores the addresses that this message's tokens do not contain.
    /// - Returns: false if the account may not store more today.
    private func store(_ addresses: [StoredAddress], day: UInt64) throws(DirectoryFailure) -> Bool {
        guard !addresses.isEmpty else { return true }
        return try engine.directory.store(
            addresses, account: account.number, day: day,
            newPerDay: engine.settings.limits.storedAddressesPerDay)
    }

    /// Counts the message in the warm-up of this host. Refuses it if the ceiling is reached.
    private func reserveWarmUp(day: UInt64) throws(Refusal) {
        guard let warmUp = engine.settings.warmUp, account.number != engine.settings.testAccount,
            let ceiling = warmUp.ceiling(day: Int64(day))
        else { return }
        guard
            try Refusal.deferring(
                engine.directory.reserveWarmUp(
                    host: warmUp.host, team: account.team ?? "", day: day, ceiling: ceiling))
        else { throw .warmUp }
        isWarming = true
    }

    /// Undoes the counting of `finish`, for a message that is not accepted after all and will be
    /// sent again.
    func giveUp() {
        let day = UInt64(max(0, now) / 86_400)
        engine.directory.release(.forward, account: account.number, day: day)
        if isWarming, let host = engine.settings.warmUp?.host {
            engine.directory.releaseWarmUp(host: host, team: account.team ?? "", day: day)
            isWarming = false
        }
    }
}

/// The envelope of a forward.
enum ForwardEnvelope {
    /// The envelope sender, if a report may go to it later.
    static func reportableSender(
        client: SMTPClientIdentity, author: AddrSpec, proof: SenderProof,
        sources: [RegisteredSource],
        evidence: AuthenticationEvidence,
        isDeliverable: (AddrSpec) -> Bool
    ) -> AddrSpec? {
        guard let sender = AddrSpec(envelope: client.mailFrom), isDeliverable(sender),
            ForwardProof.isReportable(
                envelopeSender: sender, author: author, proof: proof, sources: sources,
                evidence: evidence)
        else { return nil }
        return sender
    }

    /// Where the user's provider reports complaints: the return path, so that a complaint counts
    /// for this message and its team, and no one else can make such an address. A message with the
    /// null sender gets an address of the same kind for complaints alone.
    static func feedback(
        engine: RelayEngine, account: RelayAccount, inbox: InboxAddress, returnPath: MintedToken?,
        day: UInt64
    ) -> [HeaderField] {
        let token =
            returnPath
            ?? engine.tokens.forwardReturnPath(
                account: account.number, sender: nil, context: account.senderContext,
                nonce: engine.nonce(),
                expiryDay: day + engine.settings.returnPathDays)
        return [
            engine.tokens.feedback.identifier(
                .forward, team: account.team,
                provider: engine.settings.providers.sharedDomain(of: inbox)),
            FeedbackFields.complaints(
                to: AddrSpec(localPart: token.localPart, domain: account.relayAddress.domain)),
        ]
    }

    /// The new reverse-path with angle brackets: a null sender stays null, any
    /// other becomes a return path.
    static func returnPath(
        engine: RelayEngine, account: RelayAccount, client: SMTPClientIdentity, sender: AddrSpec?,
        day: UInt64
    ) -> (path: String, token: MintedToken?) {
        guard !client.mailFrom.isEmpty else { return ("<>", nil) }
        let token = engine.tokens.forwardReturnPath(
            account: account.number, sender: sender, context: account.senderContext,
            nonce: engine.nonce(), expiryDay: day + engine.settings.returnPathDays,
            outgoing: engine.settings.outgoingClass(account.identity))
        return ("<\(token.localPart)@\(account.relayAddress.domain)>", token)
    }
}
