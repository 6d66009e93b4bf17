// One SMTP connection of Postfix, converted to relay transactions.

import InternetMessage
import Logging
import MailAuth
import MailCrypto
import Milter
import PosternMetrics
import RelayCore
import Support

final class RelayMilterSession: MilterSession {
    private let connection: MilterConnection
    private let handler: RelayMilterHandler

    /// The connection for copies of the message, once a second account is among its recipients.
    private var copies: (any CopySession)?
    /// BODY and SMTPUTF8 of MAIL, which a copy also needs.
    private var mailParameters: [String] = []
    private var helo = ""
    private var transaction: RelayTransaction?
    /// The engine of the transaction.
    private var currentEngine: RelayEngine?
    /// Whether a message at the smtpd for copies is ours; nil if it came elsewhere, or is not yet
    /// checked.
    private var isOurCopy: Bool?
    /// The login that this session has used.
    private var copyLogin: String?
    /// The refusal at the end of the header section or of a body chunk. Sent at the end of data, as
    /// those events are not answered.
    private var refusal: (refusal: Refusal, stage: String)?
    /// Identifies one message in the log and in Postern's replies to it.
    private var reference = ""
    /// The data to report about a transaction that `refusal` has ended.
    private var lost: (direction: TransactionDirection?, attribution: ForwardAttribution?) = (
        nil, nil
    )
    /// The accounts of a transaction that `refusal` has ended.
    private var lostSubjects: LogSubjects?
    private var queueID = ""

    init(connection: MilterConnection, handler: RelayMilterHandler) {
        self.connection = connection
        self.handler = handler
    }

    /// Postfix's own bounces reach the filter without an SMTP dialogue, so it cannot refuse a
    /// recipient of theirs permanently.
    private var isInternal: Bool { connection.daemonName == "internal" }
    /// Whether the message was submitted on this host with sendmail(1). Its sender is known, so
    /// Postfix returns refused mail to it. Postfix does not accept a refusal at RCPT there: the
    /// message would come again each minute.
    private var isLocalMail = false

    func helo(_ name: String) -> MilterReply {
        helo = name
        return .continue
    }

    func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        let engine = handler.engine()
        currentEngine = engine
        isOurCopy = nil
        reference = String(decoding: Base32.encode(engine.randomness(5)), as: UTF8.self)
        refusal = nil
        lost = (nil, nil)
        lostSubjects = nil
        queueID = ""
        isLocalMail = isInternal && !path.withoutPathBrackets.isEmpty
        transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(
                address: connection.peer.ipAddress, helo: helo, mailFrom: path.withoutPathBrackets),
            now: handler.now(), isCopy: connection.daemonName == Self.fanOutName,
            canFanOut: { [weak self] in self?.openCopies() ?? false })
        mailParameters = arguments.filter {
            $0.uppercased().hasPrefix("BODY=") || $0.uppercased() == "SMTPUTF8"
        }
        return .continue
    }

    /// Whether a message at the smtpd for copies comes from this installation, as anyone on this
    /// machine can connect there and name any client.
    private func isOurCopy(_ macros: any MilterMacros) -> Bool {
        if let isOurCopy { return isOurCopy }
        let isOurs = macros["{auth_authen}"].map(isOurLogin) ?? false
        isOurCopy = isOurs
        return isOurs
    }

    /// Whether a login is ours, and this session is the first to use it.
    private func isOurLogin(_ login: String) -> Bool {
        let time = handler.now()
        guard currentEngine?.isCopyLogin(login, for: connection.peer.ipAddress, now: time) == true
        else { return false }
        if copyLogin != login, !handler.usedLogins.take(login) { return false }
        copyLogin = login
        return true
    }

    /// If copies cannot be handed over, the second account gets 452, as without fan-out.
    private func openCopies() -> Bool {
        guard connection.daemonName != "internal", connection.daemonName != Self.fanOutName,
            let engine = currentEngine,
            let carrier = handler.carrier()
        else { return false }
        let address = connection.peer.ipAddress
        copies = carrier.open(
            for: CopyClient(address: address, hostName: connection.hostName, helo: helo),
            login: { [handler] in engine.copyLogin(for: address, now: handler.now()) })
        if copies == nil {
            handler.logger.warning(
                "copies cannot be submitted: recipients of further accounts get 452",
                metadata: ["ref": "\(reference)"])
        }
        return copies != nil
    }

    /// The name of the smtpd for copies. Mail that arrives there is not copied again.
    package static let fanOutName = "fanout"

    func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        // No MTA sends RCPT before MAIL or after DATA. If one did, a recipient could be accepted
        // without a check.
        guard let transaction else {
            return reply(
                to: .notConfigured("RCPT outside of a transaction"), stage: "rcpt", macros: macros)
        }
        return handler.histograms.recipient.timed {
            do throws(Refusal) {
                if connection.daemonName == Self.fanOutName, !isOurCopy(macros) {
                    throw .forgedCopy
                }
                try transaction.addRecipient(path)
                return .continue
            } catch {
                guard isLocalMail else {
                    return reply(to: error, stage: "rcpt", path: path, macros: macros)
                }
                lostSubjects = transaction.subjects(ofRefused: path)
                if refusal.map({ isPermanent($0.refusal) && !isPermanent(error) }) ?? true {
                    refusal = (error, "rcpt")
                }
                return .continue
            }
        }
    }

    func header(name: [UInt8], value: [UInt8]) -> MilterReply {
        guard let transaction else { return .continue }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(name.count + 1 + value.count)
        bytes += name
        bytes.append(UInt8(ascii: ":"))
        bytes += value
        transaction.addHeader(HeaderField(bytes: bytes))
        return .continue
    }

    func endOfHeaders() -> MilterReply {
        guard let transaction else { return .continue }
        guard transaction.isOurs, refusal == nil else {
            end()
            return .continue
        }
        handler.histograms.header.timed {
            do throws(Refusal) { try transaction.endHeader() } catch {
                lose(transaction, error, stage: "header")
            }
        }
        return .continue
    }

    func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply {
        guard let transaction else { return .continue }
        handler.histograms.body.timed {
            do throws(Refusal) { try transaction.addBody(chunk) } catch {
                lose(transaction, error, stage: "body")
            }
        }
        return .continue
    }

    /// This transaction will not get the message, so its resources are released for others.
    private func lose(_ transaction: RelayTransaction, _ error: Refusal, stage: String) {
        refusal = (error, stage)
        lost = (transaction.direction, transaction.forwardAttribution)
        lostSubjects = transaction.subjects(ofRefused: nil)
        end()
    }

    func endOfMessage(_ actions: any MilterActions) throws -> MilterReply {
        defer { end() }
        if let id = actions.macros["i"], !id.isEmpty { queueID = id }
        if let (refusal, stage) = refusal {
            return reply(
                to: refusal == .loop && handler.recent.contains(queueID) ? .listedTwice : refusal,
                stage: stage,
                macros: actions.macros)
        }
        guard let transaction else { return .accept }
        return try handler.histograms.message.timed { try finish(transaction, actions) }
    }

    private func finish(
        _ transaction: RelayTransaction, _ actions: any MilterActions
    ) throws -> MilterReply {
        let decision = transaction.finish(queueID: queueID) {
            MilterTurn { try? actions.progress() }
        }
        if !decision.copies.isEmpty,
            let refusal = try handOver(decision.copies, transaction, actions)
        {
            transaction.giveUp()
            return reply(to: refusal, stage: "fan-out", macros: actions.macros)
        }
        if case .refuse(let refusal) = decision.outcome {
            for modification in decision.modifications { try apply(modification, actions) }
            return reply(to: refusal, stage: "message", macros: actions.macros)
        }
        do throws(Refusal) { try transaction.forgetPassing() } catch {
            transaction.giveUp()
            return reply(to: error, stage: "fan-out", macros: actions.macros)
        }
        for modification in decision.modifications { try apply(modification, actions) }
        if let direction = transaction.direction, decision.reasons.first?.code != .handedOver {
            handler.metrics.messages(
                direction.rawValue, decision.outcome == .discard ? "discarded" : "relayed"
            ).add()
        }
        if decision.reasons.contains(where: { $0.code == .linksLeft }) {
            handler.metrics.linksLeft.add()
        }
        if decision.outcome == .relay {
            handler.recent.insert(queueID)
            if transaction.direction == .forward, let attribution = transaction.forwardAttribution {
                handler.forwarded(attribution)
            }
        }
        log(
            .info, decision.reasons, transaction.passedSubjects, stage: "message",
            answer: decision.outcome == .discard ? "discard" : "accept",
            macros: actions.macros)
        return decision.outcome == .discard ? .discard : .accept
    }

    /// Records all copies, then hands over each. A refused copy does not stop the others; a failure
    /// of the connection or the store does.
    /// - Returns: the answer to the message if Postfix did not accept every copy.
    private func handOver(
        _ all: [FanOutCopy], _ transaction: RelayTransaction, _ actions: any MilterActions
    ) throws -> Refusal? {
        guard let copies, let original = transaction.original else {
            return .fanOutFailed("there is no connection for copies")
        }
        do throws(Refusal) { try transaction.beginHandOver(all) } catch { return error }
        var answer: Refusal?
        var handed = 0
        for copy in all {
            // Postfix keeps waiting as long as progress is reported.
            try actions.progress()
            switch copies.hand(over: original, parameters: mailParameters, to: copy.paths) {
            case .taken(let queueID):
                handed += 1
                handler.metrics.copies("handed_over").add()
                // This line connects the message with its copy.
                handler.logger.info(
                    "copy",
                    metadata: [
                        "ref": "\(reference)", "queue": "\(self.queueID)",
                        "copy": "\(queueID ?? "unknown")",
                    ])
                do throws(Refusal) { try transaction.handedOver(copy) } catch { return error }
            case .refused(let reply):
                handler.metrics.copies("refused").add()
                let refusal = transaction.refused(copy, reply)
                answer = answer ?? refusal
            case .failed(let detail):
                handler.metrics.copies("failed").add()
                return .fanOutFailed("\(handed) of \(all.count) copies submitted: \(detail)")
            }
        }
        return answer
    }

    private func end() {
        transaction?.end()
        transaction = nil
        currentEngine = nil
        copies?.close()
        copies = nil
    }

    func abort() { end() }

    func closed() { end() }

    private func apply(_ modification: Modification, _ actions: any MilterActions) throws {
        switch modification {
        case .changeHeader(let name, let index, .some(let value)):
            try actions.changeHeader(name, index: index, value: value)
        case .changeHeader(let name, let index, nil): try actions.deleteHeader(name, index: index)
        case .insertHeader(let position, let field):
            try actions.insertHeader(at: position, field.name, value: field.rawValue)
        case .changeSender(let path): try actions.changeFrom(path)
        case .addRecipient(let path): try actions.addRecipient(path)
        case .deleteRecipient(let path): try actions.deleteRecipient(path)
        case .replaceBody(let pieces): try actions.replaceBody(pieces)
        }
    }

    /// - Parameter path: the refused recipient, at RCPT.
    private func reply(
        to refusal: Refusal, stage: String, path: String? = nil, macros: (any MilterMacros)?
    ) -> MilterReply {
        let reply = refusal.reply
        let level: Logger.Level =
            refusal.reason.code.needsOperator ? .error : .notice
        count(refusal, stage: stage)
        log(
            level, [refusal.reason], lostSubjects ?? transaction?.subjects(ofRefused: path),
            stage: stage,
            answer: "\(reply.code) \(reply.enhanced)", macros: macros)
        let text = "\(reply.text) [\(reference)]"
        if isPermanent(refusal) {
            // RFC 5248 section 2.4: too many recipients.
            let (code, enhanced) =
                refusal.isTemporary ? (550, "5.5.3") : (reply.code, reply.enhanced)
            return .reject(PermanentFailure(repairing: code, enhanced, text))
        }
        if refusal.isTemporary {
            return .temporaryFailure(TemporaryFailure(repairing: reply.code, reply.enhanced, text))
        }
        return .temporaryFailure(TemporaryFailure(repairing: 451, "4.3.0", text))
    }

    /// Whether the reply makes the client stop. Local mail always comes again unchanged, never with
    /// fewer recipients.
    private func isPermanent(_ refusal: Refusal) -> Bool {
        if isLocalMail, refusal == .otherScope || refusal == .tooManyRecipients { return true }
        return !refusal.isTemporary && (!isInternal || isLocalMail)
    }

    /// Updates the counters, and reports the reason to the team that owns the message's source.
    private func count(_ refusal: Refusal, stage: String) {
        handler.metrics.refusals(refusal.reason.code.rawValue).add()
        if refusal.reason.code == .leakIncident { handler.metrics.leakIncidents.add() }
        guard stage != "rcpt" else { return }
        let isDeferred = !isPermanent(refusal)
        if let direction = transaction?.direction ?? lost.direction {
            handler.metrics.messages(direction.rawValue, isDeferred ? "deferred" : "refused").add()
        }
        guard let attribution = transaction?.forwardAttribution ?? lost.attribution else { return }
        handler.refused(
            RefusedForward(
                at: handler.now(), attribution: attribution, reply: refusal.kind,
                reason: refusal.reason.code,
                reference: reference, uses: transaction?.usesByOthers ?? []))
    }

    private func log(
        _ level: Logger.Level, _ reasons: [RelayReason], _ subjects: LogSubjects?, stage: String,
        answer: String,
        macros: (any MilterMacros)?
    ) {
        if let id = macros?["i"], !id.isEmpty { queueID = id }
        var metadata: Logger.Metadata = [
            "ref": "\(reference)", "queue": "\(queueID)", "stage": "\(stage)",
            "reason": "\(reasons.map(\.code.rawValue).joined(separator: ","))",
            "detail": "\(reasons.map(\.detail).filter { !$0.isEmpty }.joined(separator: "; "))",
        ]
        if let subjects, !subjects.addresses.isEmpty {
            metadata["address"] = "\(subjects.addresses.joined(separator: ","))"
        }
        if let direction = transaction?.direction {
            metadata["direction"] = "\(direction.rawValue)"
        }
        if let subjects, !subjects.accounts.isEmpty {
            metadata["account"] = "\(subjects.accounts.joined(separator: ","))"
        }
        if let subjects, !subjects.teams.isEmpty {
            metadata["team"] = "\(subjects.teams.joined(separator: ","))"
        }
        handler.logger.log(level: level, "\(answer)", metadata: metadata)
    }
}
