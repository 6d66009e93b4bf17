// One live session. libmilter's private pointer refers to it, from connect to close.

import CMilter

/// Holds a session and its state: whether an abort must still be reported, whether a message counts
/// as open, and whether it must be refused.
final class SessionBox {
    let session: any MilterSession
    let installation: FilterInstallation
    let macros = ContextMacros()
    private let actions: LibmilterActions
    /// A message has begun, and its end was not yet reported to the session.
    private var abortOwed = false
    /// The message counts in `ProcessState.openMessages`.
    private var counted = false
    /// The message came while the server was stopping.
    private var refusing = false

    init(connection: MilterConnection, installation: FilterInstallation) {
        session = installation.handler.makeSession(connection: connection)
        self.installation = installation
        actions = LibmilterActions(negotiated: installation.needs.actions, macros: macros)
        process.with { $0.sessions += 1 }
    }

    deinit { process.with { $0.sessions -= 1 } }

    /// Answers an event of the connection.
    func answer(
        _ context: OpaquePointer, to event: MilterEvents, _ body: (any MilterSession) -> MilterReply
    ) -> sfsistat {
        macros.context = context
        defer { macros.context = nil }
        let reply = body(session)
        guard installation.needs.answers.contains(event) else { return SMFIS_NOREPLY }
        switch reply {
        case .discard, .skip: return SMFIS_CONTINUE
        default: return reply.status(in: context)
        }
    }

    /// Answers an event of a message; the first one begins it.
    func answerMessage(
        _ context: OpaquePointer, to event: MilterEvents, _ body: (any MilterSession) -> MilterReply
    ) -> sfsistat {
        if event == .mail { end() }
        if !abortOwed && !refusing { begin() }
        let answered = installation.needs.answers.contains(event)
        if refusing { return answered ? Self.goingAway.status(in: context) : SMFIS_NOREPLY }
        macros.context = context
        defer { macros.context = nil }
        let reply = body(session)
        guard answered else { return SMFIS_NOREPLY }
        switch reply {
        case .skip: return event == .body ? SMFIS_SKIP : SMFIS_CONTINUE
        case .reject where event == .recipient, .temporaryFailure where event == .recipient: break
        case .continue: break
        default: uncount()
        }
        return reply.status(in: context)
    }

    /// Ends the message. The session decides and modifies.
    func endOfMessage(_ context: OpaquePointer) -> sfsistat {
        if !abortOwed && !refusing { begin() }
        defer {
            abortOwed = false
            refusing = false
            uncount()
        }
        if refusing { return Self.goingAway.status(in: context) }
        macros.context = context
        actions.context = context
        defer {
            macros.context = nil
            actions.context = nil
        }
        do {
            let reply = try session.endOfMessage(actions)
            return (reply == .skip ? .continue : reply).status(in: context)
        } catch {
            installation.log(.messageFailed(queueID: macros["i"], error: String(describing: error)))
            return Self.failed.status(in: context)
        }
    }

    /// Reports to the session, if a message is open, that the message will not be completed.
    func end() {
        if abortOwed { session.abort() }
        abortOwed = false
        refusing = false
        uncount()
    }

    private func begin() {
        let taken = process.with { state in
            if !state.draining { state.openMessages += 1 }
            return !state.draining
        }
        counted = taken
        abortOwed = taken
        refusing = !taken
    }

    private func uncount() {
        if counted { process.with { $0.openMessages -= 1 } }
        counted = false
    }

    private static let failed = MilterReply.temporaryFailure(
        TemporaryFailure(
            repairing: 451, "4.3.0", "Temporary internal error; please try again later"))
    private static let goingAway = MilterReply.temporaryFailure(
        TemporaryFailure(repairing: 421, "4.3.2", "Service is shutting down; please try again"))
}

extension MilterReply {
    /// Sets the reply text, if there is one, and returns libmilter's status.
    func status(in context: OpaquePointer) -> sfsistat {
        switch self {
        case .continue, .skip: return SMFIS_CONTINUE
        case .accept: return SMFIS_ACCEPT
        case .discard: return SMFIS_DISCARD
        // If libmilter does not accept the text, it sends its own. The class of the reply stays.
        case .reject(let failure):
            failure.set(in: context)
            return SMFIS_REJECT
        case .temporaryFailure(let failure):
            failure.set(in: context)
            return SMFIS_TEMPFAIL
        }
    }
}

extension SMTPFailure {
    fileprivate func set(in context: OpaquePointer) {
        // All lines are in one buffer, each ended by NUL. The pointers are made after the buffer
        // has reached its final place.
        var buffer = [CChar]()
        var offsets = [Int]()
        for line in lines {
            offsets.append(buffer.count)
            buffer.append(contentsOf: line.utf8.map { CChar(bitPattern: $0) })
            buffer.append(0)
        }
        buffer.withUnsafeBufferPointer { buffer in
            let starts: [UnsafePointer<CChar>?] = offsets.map { offset in
                buffer.baseAddress.map { $0 + offset }
            }
            _ = starts.withUnsafeBufferPointer { starts in
                String(code).withCString { code in
                    enhancedStatus.withCString {
                        postern_setmlreply(
                            context, code, $0, starts.baseAddress, Int32(lines.count))
                    }
                }
            }
        }
    }
}
