// Handles mail to a return path. Reports are rebuilt, the user's automatic notes are relayed as
// replies, and all else is refused.

import InternetMessage
import MailCrypto

enum Bounce {
    /// - Parameters:
    ///   - token: a return path with a correct MAC that has not expired.
    ///   - paths: the recipients exactly as in RCPT.
    static func decide(
        engine: RelayEngine, message: IncomingMessage, token: AddressToken, paths: [String]
    ) throws(Refusal) -> RelayDecision {
        let report = try message.report()
        let isNullSender = message.client.mailFrom.isEmpty
        let isReport =
            isNullSender || report.kind == .delivery && MailSystem.isSender(message.client)
        switch report.kind {
        case .note, .receipt, .optOut:
            return try automatic(engine: engine, message: message, token: token, paths: paths)
        case .feedback where report.isComplaint:
            // Feedback loops send with or without an envelope sender. In both cases, no text of the
            // report is relayed.
            let detail = try Complaint.record(token, engine: engine, day: message.day)
            return RelayDecision(.discard, reasons: [RelayReason(.returnPathDiscarded, detail)])
        case .feedback where isNullSender:
            return discard(engine, message, token, .reportDropped, "feedback of another kind")
        case .feedback: throw .badReturnPath("feedback of another kind, with a sender")
        case .delivery, .unclear, .other:
            guard isReport else {
                throw .badReturnPath("neither a report nor an automatic note")
            }
            return try relay(report, engine: engine, message: message, token: token, paths: paths)
        }
    }

    private static func discard(
        _ engine: RelayEngine, _ message: IncomingMessage, _ token: AddressToken,
        _ counter: RelayCounter, _ why: String
    ) -> RelayDecision {
        engine.directory.count(counter, account: token.account, day: message.day)
        return RelayDecision(.discard, reasons: [RelayReason(.returnPathDiscarded, why)])
    }

    // MARK: Automatic notes and receipts

    /// A note is relayed as a reply if its author proves to be this account's user. Others get no
    /// answer, to avoid loops.
    private static func automatic(
        engine: RelayEngine, message: IncomingMessage, token: AddressToken, paths: [String]
    ) throws(Refusal) -> RelayDecision {
        guard token.purpose == .forward || token.purpose == .storedForward,
            let sender = try engine.address(of: token)
        else {
            return discard(engine, message, token, .automaticDropped, "no recipient for the note")
        }
        do {
            return try Reply.decide(
                engine: engine, message: message, account: token.account, correspondents: [sender],
                paths: paths,
                isOfOneAccount: true)
        } catch {
            if error.isTemporary { throw error }
            return discard(
                engine, message, token, .automaticDropped,
                "automatic note not relayed: \(error.reason.code)")
        }
    }

    // MARK: Reports

    private static func relay(
        _ report: DeliveryReport, engine: RelayEngine, message: IncomingMessage,
        token: AddressToken, paths: [String]
    ) throws(Refusal) -> RelayDecision {
        guard let account = try Refusal.deferring(engine.directory.account(token.account)) else {
            return discard(engine, message, token, .reportDropped, "account-deleted")
        }

        var report = report
        if token.purpose == .reply {
            // Other addresses in the report are not recipients of the reply.
            let own = report.recipients.filter {
                recipient(of: $0, token: token, engine: engine) != nil
            }
            if !own.isEmpty { report.recipients = own }
        }
        let decisive = report.decisive
        if let decisive,
            decisive.action == .delivered || decisive.action == .relayed
                || decisive.action == .expanded
        {
            return discard(engine, message, token, .reportDropped, "success")
        }
        if token.purpose != .reply, let decisive, decisive.action == .failed {
            try count(decisive, of: account, engine: engine, message: message, token: token)
        }
        var suspension: [RelayReason] = []
        if token.purpose != .reply, let decisive, decisive.action == .failed,
            decisive.understood.saysNoMailbox,
            try recordFailure(engine: engine, message: message, token: token) == .suspended
        {
            suspension = [
                RelayReason(
                    .inboxNowSuspended, "the inbox has reached the rate of permanent failures")
            ]
        }
        var decision = try tell(
            report, account: account, engine: engine, message: message, token: token, paths: paths)
        decision.reasons += suspension
        return decision
    }

    /// Counts the failure for the provider of the inbox, once a day for each relayed message.
    /// Delays are read from Postfix's log (`DeliveryLogReader`).
    private static func count(
        _ failure: RecipientReport, of account: RelayAccount, engine: RelayEngine,
        message: IncomingMessage, token: AddressToken
    ) throws(Refusal) {
        guard let inbox = account.inbox,
            try isFirst(engine: engine, message: message, token: token, action: "counted")
        else { return }
        engine.directory.count(
            failure.answer.outcome, at: engine.provider(of: inbox.address),
            account: account.number, now: message.now)
    }

    /// Reports the result of the message to the sender or the user.
    private static func tell(
        _ report: DeliveryReport, account: RelayAccount, engine: RelayEngine,
        message: IncomingMessage, token: AddressToken,
        paths: [String]
    ) throws(Refusal) -> RelayDecision {
        let decisive = report.decisive
        let builder = RebuiltReport(
            engine: engine, account: account, message: message, report: report)
        let outgoing: (message: OutgoingMessage, to: AddrSpec)
        switch token.purpose {
        case .reply:
            // The sender of a report proves nothing, so it must not learn anything about the
            // account.
            guard account.isActive, account.isForwardingOn, let inbox = account.inbox,
                inbox.isVerified, !inbox.isSuspended
            else {
                return discard(
                    engine, message, token, .reportDropped, "the account accepts no mail")
            }
            let recipient = decisive.flatMap {
                Self.recipient(of: $0, token: token, engine: engine)
            }
            outgoing = (
                try builder.forUser(inbox.address, recipient: recipient), inbox.address.revealed
            )
        case .forward, .storedForward:
            guard let sender = try engine.address(of: token) else {
                return discard(engine, message, token, .reportDropped, "sender not stored")
            }
            outgoing = (builder.forTeam(sender), sender)
        case .silentForward, .reverse, .storedReverse:
            return discard(engine, message, token, .reportDropped, "the sender was not proved")
        }
        guard
            try isFirst(
                engine: engine, message: message, token: token,
                action: decisive?.action.rawValue ?? "unclear")
        else {
            return discard(engine, message, token, .reportDropped, "told already")
        }
        if token.purpose == .reply {
            // The report reaches the user like a forward, and counts against the limit like one.
            let limit = engine.settings.limits.messagesPerDay
            guard
                try Refusal.deferring(
                    engine.directory.reserve(
                        .forward, account: token.account, day: message.day, limit: limit))
            else { return discard(engine, message, token, .reportDropped, "the daily limit") }
        }
        engine.directory.count(.reportRelayed, account: token.account, day: message.day)
        return try outgoing.message.decision(
            replacing: message.header, engine: engine, domain: account.relayAddress.domain,
            now: message.now, sender: "<>",
            paths: paths,
            recipients: [outgoing.to],
            reasons: [
                RelayReason(
                    .reportRelayed,
                    decisive.map { "\($0.action.rawValue) \($0.status)" } ?? "not understood")
            ])
    }

    /// The recipient of the reply that a report names, by its address or its original address; nil
    /// for any other. A report often names the address to which the recipient forwards its mail.
    private static func recipient(
        of report: RecipientReport, token: AddressToken, engine: RelayEngine
    ) -> AddrSpec? {
        [report.address, report.originalAddress].lazy.compactMap(AddrSpec.parseForwardPath).first {
            engine.tokens.isRecipient($0, of: token)
        }
    }

    /// Allows one report a day for each relayed message and outcome, as anyone who knows a return
    /// path could send any number of reports.
    private static func isFirst(
        engine: RelayEngine, message: IncomingMessage, token: AddressToken, action: String
    ) throws(Refusal) -> Bool {
        try Refusal.deferring(
            engine.directory.reserveAutomatic(
                account: token.account,
                correspondent: SHA256.hash(Array("report \(token.localPart) \(action)".utf8)),
                day: message.day))
    }

    /// Records one failure for each relayed message, and only for the account of the token.
    private static func recordFailure(
        engine: RelayEngine, message: IncomingMessage, token: AddressToken
    ) throws(Refusal) -> FailureRecord {
        let failure = InboxFailure(
            nonce: token.nonce, expiryDay: token.expiryDay,
            sentDay: token.expiryDay - min(token.expiryDay, engine.settings.returnPathDays),
            day: message.day)
        return try Refusal.deferring(
            engine.directory.recordFailure(
                failure, of: token.account, rate: engine.settings.suspension))
    }
}
