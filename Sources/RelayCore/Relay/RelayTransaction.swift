// One mail transaction, from RCPT to the end of data: the order of checks and answers. The milter
// feeds it from Postfix, `postern explain` from a file.

import InternetMessage
import MailAuth
import MailCrypto

/// A mail transaction of the relay. Not thread-safe: one caller at a time.
package final class RelayTransaction {
    let engine: RelayEngine
    let client: SMTPClientIdentity
    /// Seconds since 1970.
    let now: Int64

    var recipients = RecipientParts()
    private(set) var header = HeaderSection()
    private var headerSize = 0
    private var messageSize = 0
    private var early: Refusal?
    private(set) var forward: ForwardSession?
    private var authentication: (any AuthenticationSession)?
    private lazy var operatorMail = OperatorMail(engine: engine, client: client, now: now)
    private(set) var held: HeldBody?
    /// For forwards and replies only.
    private(set) var repetition: RepetitionDigest?
    let isCopy: Bool
    /// Marks of its message. Until the end, no other transaction has the message for these
    /// recipients.
    var underWay: [[UInt8]] = []
    /// Marks that count only until the message is accepted, by account.
    var passing: [(account: AccountNumber, marks: [[UInt8]])] = []
    /// The refusal of a message from an unregistered author to a relay address.
    private var unregistered: Refusal?
    /// Whether the user of that address may have written it, which is then no reason to refuse it.
    private var mayBeOwn = false
    /// For each relay address of a refused message that someone other than its team has.
    package private(set) var usesByOthers: [UseByOthers] = []
    /// Evaluated at most once.
    private lazy var isFannedOut = canFanOut()
    private let canFanOut: () -> Bool
    /// Whether SPF proves the author of a reply; set when the reply is decided.
    private(set) var isReplyEnvelopeProof = false
    /// Whether `finish` reserved a place in the daily limit.
    var hasReserved = false

    /// - Parameters:
    ///   - client: SMTP client, HELO and reverse-path without angle brackets.
    ///   - now: seconds since 1970.
    ///   - isCopy: whether another transaction of this installation hands over the message as a
    ///     copy, and owns it until the end.
    ///   - canFanOut: whether copies of the message could be handed over; called at most once.
    package init(
        engine: RelayEngine, client: SMTPClientIdentity, now: Int64, isCopy: Bool = false,
        canFanOut: @escaping () -> Bool = { false }
    ) {
        self.isCopy = isCopy
        self.engine = engine
        self.client = client
        self.now = now
        self.canFanOut = canFanOut
    }

    deinit { end() }

    private var account: AccountNumber? { scope.account }
    private var day: UInt64 { UInt64(max(0, now) / 86_400) }
    /// The scope of the message that is relayed in place.
    var scope: TransactionScope { recipients.first.scope }
    var paths: [String] { recipients.first.paths }
    /// The scopes that get a copy of the message.
    var further: ArraySlice<(scope: TransactionScope, paths: [String])> { recipients.further }

    /// Whether the relay handles anything in this transaction. Known from the
    /// first accepted recipient on.
    package var isOurs: Bool {
        switch scope {
        case .empty, .elsewhere: false
        default: true
        }
    }

    /// The accepted paths exactly as in RCPT, by message: first those of the message relayed in
    /// place, then those of each copy.
    package var parts: [[String]] { recipients.all.map(\.paths) }

    /// The direction of the message, for counters; nil if the relay does not handle it.
    package var direction: TransactionDirection? {
        switch scope {
        case .empty, .elsewhere: nil
        case .operatorMail: .operator
        case .forward: .forward
        case .reply: .reply
        case .returnPath: .report
        case .answer: .answer
        }
    }

    /// The author and account of a forward, as its header section shows them; nil if it names no
    /// single author.
    package var forwardAttribution: ForwardAttribution? {
        guard case .forward(let account) = scope else { return nil }
        if let forward {
            return ForwardAttribution(
                author: forward.author, account: forward.account.number, isRegistered: true)
        }
        guard case .success(let author) = AuthorAddress.parse(header: header) else { return nil }
        return ForwardAttribution(author: author, account: account.number, isRegistered: false)
    }

    // MARK: RCPT

    /// Checks a recipient by form and MAC, and whether a relay address exists. The answer reveals
    /// nothing of an account's state.
    /// - Parameter path: the argument of RCPT TO, unchanged.
    package func addRecipient(_ path: String) throws(Refusal) {
        let path = RecipientPath.withoutRoute(path)
        let own = try RecipientScope(engine: engine, day: day).scope(of: path)
        guard
            let place = recipients.place(
                for: own,
                mayMix: {
                    !engine.refusedRecipients.isAnySeparate(
                        recipients.paths + [path], for: client, now: now)
                },
                canFanOut: { isFannedOut })
        else { throw .otherScope }
        if case .elsewhere = place.scope {
        } else {
            guard recipients.paths.count < engine.settings.limits.recipients else {
                throw .tooManyRecipients
            }
        }
        recipients.add(path, at: place)
    }

    // MARK: Header section

    /// Takes the next header field. `endHeader` reports a fault in it.
    package func addHeader(_ field: HeaderField) {
        guard isOurs, early == nil else { return }
        // Mail to the operator is relayed unchanged, so no fault in it counts.
        if case .operatorMail = scope { return operatorMail.addHeader(field) }
        let limits = engine.settings.limits
        headerSize += field.bytes.count + 2
        messageSize = headerSize
        if field.bytes.count >= limits.headerFieldSize {
            early = .headerTooLarge("a field of \(limits.headerFieldSize) octets or more")
        } else if header.fields.count >= limits.headerFields {
            early = .headerTooLarge("more than \(limits.headerFields) fields")
        } else if headerSize > limits.headerSize {
            early = .headerTooLarge("more than \(limits.headerSize) octets")
        } else if !field.isSafe {
            early = unsafeHeader
        } else {
            if header.fields.isEmpty { header.fields.reserveCapacity(32) }
            header.fields.append(field)
        }
    }

    /// Whether the message is one piece of a divided message, for programs that join such pieces.
    private var isPartialMessage: Bool {
        header.fields.contains {
            $0.isNamed("Content-Type")
                && ContentType.parse($0.rawValue).matches("message", "partial")
        }
    }

    /// A field that two programs read differently proves no author, regardless of the rest of the
    /// message.
    private var unsafeHeader: Refusal {
        let refusal = Refusal.unsafeHeader
        return switch scope {
        case .forward: refusal
        case .reply, .answer: .replyNotProved(refusal.reason)
        default: .malformedHeader(refusal.reason.detail)
        }
    }

    /// Ends the header section. A refusal thrown here is the answer to the complete message.
    package func endHeader() throws(Refusal) {
        if let early { throw early }
        if case .operatorMail = scope { return operatorMail.endHeader() }
        switch engine.mark.trace(header) {
        case .ours: throw .loop
        case .hops(let hops): if hops > engine.settings.limits.hops { throw .loop }
        }
        if let repeated = header.repeatedField {
            let refusal = Refusal.repeatedField(repeated)
            switch scope {
            case .forward: throw refusal
            case .reply, .answer: throw .replyNotProved(refusal.reason)
            case .empty, .elsewhere, .operatorMail, .returnPath: break
            }
        }
        switch scope {
        case .forward, .reply: if isPartialMessage { throw .partialMessage }
        case .empty, .elsewhere, .operatorMail, .returnPath, .answer: break
        }
        if scope.account != nil {
            repetition = RepetitionDigest(header: header, sender: client.mailFrom)
        }
        switch scope {
        case .empty, .elsewhere, .operatorMail: break
        case .forward(let account):
            do {
                forward = try ForwardSession(
                    engine: engine, account: account, client: client, header: header, now: now)
            } catch {
                mayBeOwn =
                    further.isEmpty
                    && !OwnAddress.reverseAccounts(in: header, engine: engine).isEmpty
                guard mayBeOwn || error.kind == .unauthorizedSender else { throw error }
                unregistered = error
                // The answer is certain, but the message may show who else has the address. The
                // work depends on the message alone, whoever owns the address.
                if mayBeOwn
                    || UseReading.needsEvidence(header, client: client, accounts: relayAccounts)
                {
                    authentication = engine.authenticator.begin(
                        client: client, header: header, now: now)
                }
                return
            }
            guard !further.isEmpty else { break }
            forward?.prepare()
            held = HeldBody(budget: engine.replyMemory, isRewritten: false, hasCopies: true)
        case .reply, .returnPath:
            // The DNS queries come before the body is kept. If no body could prove the message,
            // none is kept.
            let session = engine.authenticator.begin(client: client, header: header, now: now)
            if let best = session.prepare(), case .reply(_, _, let beside) = scope {
                do { _ = try Reply.prove(header, evidence: best, client: client) } catch {
                    guard
                        beside.contains(where: {
                            OwnAddress.isWrittenByTeam(
                                header, of: $0, evidence: best, client: client)
                        })
                    else { throw error }
                }
            }
            authentication = session
            held = HeldBody(
                budget: engine.replyMemory, isRewritten: true, hasCopies: !further.isEmpty)
        case .answer:
            // No content is kept, as only the author counts.
            authentication = engine.authenticator.begin(client: client, header: header, now: now)
        }
    }

    // MARK: Body

    /// Takes the next octets of the body, line ends as CRLF. After a refusal, the rest of the
    /// message is not needed.
    package func addBody(_ chunk: UnsafeRawBufferPointer) throws(Refusal) {
        messageSize += chunk.count
        guard messageSize <= engine.settings.limits.messageSize else {
            if let unregistered, !mayBeOwn { throw unregistered }
            throw .messageTooLarge(engine.settings.limits.messageSize)
        }
        if case .operatorMail = scope { return operatorMail.addBody(chunk) }
        repetition?.update(body: chunk)
        forward?.update(body: chunk)
        authentication?.update(body: chunk)
        try held?.append(chunk)
    }

    /// As `addBody` for a buffer.
    package func addBody(_ chunk: ArraySlice<UInt8>) throws(Refusal) {
        // Typed throws do not cross `withUnsafeBytes`.
        let result: Result<Void, Refusal> = chunk.withUnsafeBytes { bytes in
            do throws(Refusal) { return .success(try addBody(bytes)) } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    // MARK: End of data

    /// Decides. Call it once. If the decision has copies, hand over all of them before you apply
    /// it.
    /// - Parameters:
    ///   - queueID: Postfix's name of the message; empty if unknown.
    ///   - turn: called if memory is short; creates the turn that the rewriting waits for. If the
    ///     result is nil, the caller cannot wait, and the message is deferred.
    package func finish(
        queueID: String = "", turn: @escaping () -> (any RewritingTurn)? = { nil }
    ) -> RelayDecision {
        if let unregistered, !mayBeOwn {
            noteUses(authentication?.finish() ?? AuthenticationEvidence())
            return .refuse(unregistered)
        }
        guard let number = account else {
            let decision = decide(turn)
            hasReserved = decision.outcome == .relay
            return decision
        }
        return finish(of: number, queueID: queueID, turn)
    }

    /// Undoes the reservations of the decision, if it is not applied after all.
    package func giveUp() {
        guard hasReserved, let account else { return }
        hasReserved = false
        if let forward {
            forward.giveUp()
        } else {
            engine.directory.release(.reply, account: account, day: day)
        }
    }

    func decide(_ turn: @escaping () -> (any RewritingTurn)?) -> RelayDecision {
        do {
            switch scope {
            case .empty, .elsewhere: return RelayDecision(.untouched, reasons: [])
            case .operatorMail(let targets):
                return operatorMail(to: targets, read: operatorMail.finish(turn))
            case .forward(let account): return try decideForward(account)
            case .reply(let number, let correspondents, let beside):
                let message = try incoming(turn)
                do {
                    return try Reply.decide(
                        engine: engine, message: message, account: number,
                        correspondents: correspondents, paths: paths,
                        isOfOneAccount: scope.isOfOneAccount)
                } catch {
                    let isTeams =
                        !error.isTemporary
                        && beside.contains {
                            OwnAddress.isWrittenByTeam(
                                header, of: $0, evidence: message.evidence, client: client)
                        }
                    guard isTeams || error.reason.code == .mixedAccounts else { throw error }
                    // One recipient may get it and the other may not, so they get separate
                    // transactions: a team's mail to its user and to a reverse address, or a user's
                    // mail to a reverse address and to another user's relay address.
                    engine.refusedRecipients.separate(recipients.paths, from: client, now: now)
                    throw Refusal.fanOutRefused
                }
            case .returnPath(let token):
                return try Bounce.decide(
                    engine: engine, message: try incoming(turn), token: token, paths: paths)
            case .answer(let token):
                guard let authentication else {
                    throw Refusal.notConfigured("end of data before end of header")
                }
                return try AnsweredVerification.decide(
                    engine: engine, client: client, header: header,
                    evidence: authentication.finish(), token: token, paths: paths,
                    now: now)
            }
        } catch let refusal as Refusal {
            return .refuse(refusal)
        } catch {
            return .refuse(.storeTrouble("unexpected failure"))
        }
    }

    private func decideForward(_ account: RelayAccount) throws(Refusal) -> RelayDecision {
        let refusal: Refusal
        let evidence: AuthenticationEvidence
        if let unregistered, let authentication {
            (refusal, evidence) = (unregistered, authentication.finish())
        } else {
            guard let forward else { throw .notConfigured("end of data before end of header") }
            do { return try forward.finish(paths: paths) } catch {
                // Once the author is proved as the team's, the team gets the detailed answer.
                guard !error.isTemporary, let found = forward.unadmitted else { throw error }
                guard !OwnAddress.reverseAccounts(in: header, engine: engine).isEmpty else {
                    // Proved, but as another team's.
                    if error.kind == .unknownAddress { noteUses(found) }
                    throw error
                }
                (refusal, evidence) = (error, found)
            }
        }
        guard
            try OwnAddress.isWrittenByUser(
                header, of: account, evidence: evidence, client: client, engine: engine)
        else {
            throw refusal
        }
        return OwnAddress.accepted
    }

    /// The accounts of all relay addresses of the transaction.
    private var relayAccounts: [RelayAccount] {
        recipients.all.compactMap { scope, _ in
            if case .forward(let account) = scope { account } else { nil }
        }
    }

    private func noteUses(_ evidence: AuthenticationEvidence) {
        guard
            let reading = UseReading(
                header: header, client: client, evidence: evidence, engine: engine)
        else { return }
        usesByOthers = relayAccounts.compactMap(reading.use)
    }

    private func incoming(
        _ turn: @escaping () -> (any RewritingTurn)?
    ) throws(Refusal) -> IncomingMessage {
        guard let authentication, let held else {
            throw .notConfigured("end of data before end of header")
        }
        let evidence = authentication.finish()
        if !further.isEmpty, case .success(let author) = AuthorAddress.parse(header: header),
            let alone = evidence.ofEnvelope(client)
        {
            isReplyEnvelopeProof = (try? ReplyProof.prove(author: author, evidence: alone)) != nil
        }
        return IncomingMessage(
            client: client, header: header, body: held, evidence: evidence, now: now, day: day,
            turn: turn)
    }

    /// Mail to the operator: sent to the operator's address, with the null sender, so that our side
    /// never answers it.
    private func operatorMail(to targets: [AddrSpec], read: RelayReason?) -> RelayDecision {
        RelayDecision(
            .relay,
            modifications: [.changeSender("<>")] + paths.map { .deleteRecipient($0) }
                + targets.map { .addRecipient("<\($0.wireForm)>") },
            reasons: [RelayReason(.operatorMail)] + [read].compactMap { $0 })
    }
}

/// The direction of a transaction.
package enum TransactionDirection: String, Sendable, Hashable {
    case forward, reply, report, answer, `operator`
}

/// A message with its body in memory, for the decision on a reply or report.
struct IncomingMessage {
    let client: SMTPClientIdentity
    let header: HeaderSection
    let body: HeldBody
    let evidence: AuthenticationEvidence
    let now: Int64
    let day: UInt64
    /// Creates the turn that the rewriting waits for if memory is short.
    let turn: () -> (any RewritingTurn)?

    /// The content of the body, if it is a report.
    func report() throws(Refusal) -> DeliveryReport {
        try body.rewrite(turn: turn) { bytes throws(Refusal) in
            ReportReader.read(header: header, body: bytes)
        }
    }
}
