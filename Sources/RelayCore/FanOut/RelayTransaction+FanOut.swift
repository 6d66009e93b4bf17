// A transaction with a message that also leaves as copies. Decides which copies must still be
// handed over, and handles the result of each.

extension RelayTransaction {
    /// How long a handed-over copy is recorded: as long as senders repeat a message (RFC 5321
    /// section 4.5.4.1).
    private static var handedOverSeconds: Int64 { 5 * 86_400 }

    /// The message as received, while its body is held; copies are made from it.
    package var original: FanOutOriginal? {
        held.map { FanOutOriginal(sender: client.mailFrom, header: header, body: $0.bytes) }
    }

    /// Decides what is relayed in place, for the first account, and which copies are made for the
    /// others. Every transaction, also one for a single recipient, checks who already has the
    /// message: some senders repeat it for all recipients, some for one after the other.
    func finish(
        of number: AccountNumber, queueID: String, _ turn: @escaping () -> (any RewritingTurn)?
    ) -> RelayDecision {
        guard let marks = repetition?.marks(keys: engine.keys, queueID: queueID) else {
            return decide(turn)
        }
        let all = recipients.all
        // From here to its end, only this transaction has the message for these recipients, so its
        // look-ups stay correct.
        guard isCopy || take(all.flatMap { $0.paths.flatMap(marks.current) }) else {
            return .refuse(.fanOutFailed("another transaction has the same message"))
        }
        do throws(DirectoryFailure) {
            var done: [String] = []
            for index in parts.indices { done += try leaveOut(of: index, marks) }
            let copies = further.compactMap { scope, paths in
                scope.account.flatMap { account in
                    paths.isEmpty
                        ? nil
                        : FanOutCopy(
                            account: account, paths: paths, marks: paths.flatMap(marks.recorded))
                }
            }
            if !marks.isIdentified, !copies.isEmpty || !done.isEmpty {
                passing = all.flatMap { scope, paths in
                    scope.account.map { account in
                        [(account, paths.flatMap { marks.recorded($0) + marks.known($0) })]
                    } ?? []
                }
            }
            // In an earlier attempt, this account may not have been the first, and may already have
            // its copy.
            guard !paths.isEmpty else {
                return RelayDecision(
                    .discard, reasons: [RelayReason(.handedOver, "a copy was handed over before")],
                    copies: copies)
            }
            let decision = decide(turn)
            if case .refuse(let refusal) = decision.outcome {
                guard refusal.isOfRecipient, !further.isEmpty else { return decision }
                refused(paths, refusal.reply)
                return .refuse(.fanOutRefused)
            }
            hasReserved = decision.outcome == .relay
            // The message relayed in place is for the first account alone.
            let others = (further.flatMap(\.paths) + done).map { Modification.deleteRecipient($0) }
            return RelayDecision(
                decision.outcome, modifications: decision.modifications + others,
                reasons: decision.reasons, copies: copies)
        } catch {
            return .refuse(.storeTrouble(error.detail))
        }
    }

    /// Removes the recipients that already have the message.
    /// - Parameter index: of one of the messages in this transaction.
    /// - Returns: those recipients.
    private func leaveOut(of index: Int, _ marks: FanOutMarks) throws(DirectoryFailure) -> [String]
    {
        let (scope, paths) = recipients.all[index]
        guard let account = scope.account else { return [] }
        var done: [String] = []
        for path in paths where try isHandedOver(marks.known(path), account) { done.append(path) }
        guard !done.isEmpty else { return [] }
        // All relay addresses of an account lead to one inbox.
        if case .forward = scope { done = paths }
        let rest = paths.filter { path in !done.contains { $0.hasSameOctets(as: path) } }
        let scopes = RecipientScope(engine: engine, day: UInt64(max(0, now) / 86_400))
        var left = TransactionScope.empty
        do throws(Refusal) {
            for path in rest {
                let own = try scopes.scope(of: path)
                left =
                    TransactionScope.merged(left, own) ?? TransactionScope.repliedToAll(left, own)
                    ?? left
            }
        } catch {
            throw DirectoryFailure("a recipient changed while its message was read")
        }
        recipients.narrow(index, to: left, rest)
        return done
    }

    private func isHandedOver(
        _ marks: [[UInt8]], _ account: AccountNumber
    ) throws(DirectoryFailure) -> Bool {
        if marks.contains(where: engine.handedOver.contains) { return true }
        for mark in marks where try engine.directory.isHandedOver(mark, account: account, now: now)
        { return true }
        return false
    }

    /// Call it before the message is accepted. It deletes the marks of a message without an
    /// identifier of its own, as the next message with the same words is another message.
    /// - Throws: if the deletion cannot be recorded. The message must then be deferred; its copies
    ///   stay recorded.
    package func forgetPassing() throws(Refusal) {
        for (account, marks) in passing {
            try Refusal.deferring(engine.directory.forgetHandedOver(marks, account: account))
            for mark in marks { engine.handedOver.remove(mark) }
        }
        passing = []
    }

    private func take(_ marks: [[UInt8]]) -> Bool {
        guard engine.messagesUnderWay.begin(marks) else { return false }
        underWay += marks
        return true
    }

    /// Releases the message for other transactions. Call it at the end of the transaction, accepted
    /// or not.
    package func end() {
        guard !underWay.isEmpty else { return }
        engine.messagesUnderWay.end(underWay)
        underWay = []
    }

    /// Call it before the first copy is handed over.
    /// - Throws: if the copies could not be recorded. Then none may be handed over, as a repetition
    ///   would deliver them again.
    package func beginHandOver(_ copies: [FanOutCopy]) throws(Refusal) {
        try Refusal.deferring(
            engine.directory.beginHandOver(
                copies.flatMap { copy in copy.marks.map { ($0, copy.account) } },
                until: now + Self.handedOverSeconds))
    }

    /// Records that Postfix accepted a copy, so that a repetition of the message does not make
    /// another.
    /// - Throws: if the store cannot record it. This process keeps the record in memory; no more
    ///   copies may be handed over.
    package func handedOver(_ copy: FanOutCopy) throws(Refusal) {
        do {
            try engine.directory.rememberHandedOver(
                copy.marks, account: copy.account, until: now + Self.handedOverSeconds)
        } catch {
            for mark in copy.marks { engine.handedOver.insert(mark) }
            throw .storeTrouble("a copy that was handed over cannot be recorded: \(error.detail)")
        }
    }

    /// Handles a refused copy. If its recipients are the cause, a sender that tries again learns
    /// which (`RefusedRecipients`).
    /// - Returns: the answer to the whole message.
    package func refused(_ copy: FanOutCopy, _ reply: SMTPReply) -> Refusal {
        guard SMTPReply.isOfRecipient(reply.code, reply.enhanced) || reply.code / 100 == 5 else {
            return .fanOutFailed("a copy was answered \(reply.code) \(reply.enhanced)")
        }
        refused(copy.paths, reply)
        return .fanOutRefused
    }

    private func refused(_ paths: [String], _ reply: SMTPReply) {
        guard isEnvelopeProof, SMTPReply.isOfRecipient(reply.code, reply.enhanced) else {
            return engine.refusedRecipients.separate(client, now: now)
        }
        for path in paths { engine.refusedRecipients.separate(path, for: client, now: now) }
    }

    /// Whether the envelope alone proves the author, by SPF.
    private var isEnvelopeProof: Bool { forward?.isEnvelopeProof ?? isReplyEnvelopeProof }
}
