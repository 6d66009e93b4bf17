// The MTA's side of the dialogue: sends the negotiated events, and handles answers as Postfix does.

import Milter

/// The result for one message.
package struct MessageOutcome: Sendable {
    /// An answer, and its event: `mail`, `rcpt <a@b>`, `data`, `header From`, `end of headers`,
    /// `body`, `end of message`.
    package struct Response: Sendable, Hashable, CustomStringConvertible {
        package let stage: String
        package let reply: MilterReply
        package var description: String { "\(stage): \(reply)" }
    }

    /// All answers, in order; only those that the handler declared.
    package internal(set) var answers: [Response] = []
    /// The recipients that were accepted, with brackets.
    package internal(set) var recipients: [String] = []
    /// The client's final result: the answer that decided. `continue` or `accept` means that the
    /// message was accepted.
    package internal(set) var final: MilterReply = .continue
    /// All requested modifications, even if the message was then not accepted.
    package internal(set) var modifications: [RecordedModification] = []
    package internal(set) var progressCount = 0
    /// The error that `endOfMessage` threw.
    package internal(set) var error: (any Error)?
    /// The message was not completed: RSET, an earlier refusal, or the end of the connection.
    package internal(set) var aborted = false
    /// Envelope and message as received.
    package internal(set) var original: MessageState
    /// Whether `endOfMessage` was reached, or the message was accepted earlier.
    package internal(set) var completed = false

    /// The answer to a recipient; nil if there was none.
    package func reply(to recipient: String) -> MilterReply? {
        answers.last { $0.stage == "rcpt \(recipient)" }?.reply
    }

    /// Envelope and message as Postfix would queue them; nil if they were not accepted.
    package var delivered: MessageState? {
        guard completed, final == .continue || final == .accept else { return nil }
        return original.applying(modifications)
    }

    /// Nil if exactly these modifications were requested, in this order;
    /// otherwise a readable difference.
    package func difference(expected: [RecordedModification]) -> String? {
        RecordedModification.difference(expected: expected, actual: modifications)
    }
}

/// The result for one connection.
package struct ConnectionOutcome: Sendable {
    /// The answers to connect and HELO; `continue` if none was requested.
    package internal(set) var connect: MilterReply = .continue
    package internal(set) var helo: MilterReply = .continue
    /// One for each MAIL.
    package internal(set) var messages: [MessageOutcome] = []

    /// The last message; an empty one if there was none.
    package var message: MessageOutcome {
        messages.last
            ?? MessageOutcome(
                original: MessageState(mailFrom: "<>", recipients: [], fields: [], body: []))
    }
}

/// One connection, step by step. For one thread at a time.
package struct InMemoryMTA {
    private let needs: MilterNeeds
    private let session: any MilterSession
    /// The filter's answers so far.
    package private(set) var outcome = ConnectionOutcome()
    private var macros: [String: String]
    /// The connection was refused, or accepted without filtering.
    private var silent = false
    private var inMessage = false
    /// The filter has finished this message; its outcome is final.
    private var decided = false
    private var sentData = false
    private var sentEndOfHeaders = false
    private var skipsBody = false

    /// Connects.
    package init(handler: any MilterHandler, connection: MilterConnection) {
        needs = handler.needs
        session = handler.makeSession(connection: connection)
        macros = connection.macros
        if needs.answers.contains(.connect) {
            outcome.connect = session.connected()
            silent = outcome.connect != .continue
        } else {
            _ = session.connected()
        }
    }

    /// Plays one step. A step at the wrong time is ignored.
    package mutating func play(_ step: MilterTransaction.Step) {
        guard !silent else { return }
        switch step {
        case .helo(let name):
            guard needs.events.contains(.helo) else { return }
            let reply = session.helo(name)
            guard needs.answers.contains(.helo) else { return }
            outcome.helo = reply
            silent = reply == .accept
        case .mail(let path, let arguments, let macros): begin(path, arguments, macros)
        case .recipient(let path, let arguments, let macros): recipient(path, arguments, macros)
        case .unknown(let command):
            if needs.events.contains(.unknown) { _ = session.unknown(command: command) }
        case .header(let name, let value): header(name, value)
        case .body(let bytes): body(bytes)
        case .endOfMessage(let macros): endOfMessage(macros)
        case .reset: abort()
        }
    }

    /// Ends the connection, and drops a message that was not completed.
    @discardableResult
    package mutating func finish() -> ConnectionOutcome {
        abort()
        session.closed()
        return outcome
    }

    /// Valid only during the call for which it is made.
    private func withMacros<Result>(_ body: (TableMacros) -> Result) -> Result {
        let table = TableMacros(macros)
        defer { table.table = nil }
        return body(table)
    }

    private mutating func change(_ body: (inout MessageOutcome) -> Void) {
        if !outcome.messages.isEmpty { body(&outcome.messages[outcome.messages.count - 1]) }
    }

    private mutating func begin(_ path: String, _ arguments: [String], _ added: [String: String]) {
        abort()
        macros.merge(added) { $1 }
        outcome.messages.append(
            MessageOutcome(
                original: MessageState(
                    mailFrom: MessageState.bracketed(path), recipients: [], fields: [], body: [])))
        (inMessage, decided, sentData, sentEndOfHeaders, skipsBody) = (
            true, false, false, false, false
        )
        guard needs.events.contains(.mail) else { return }
        let reply = withMacros { session.mail(path, arguments: arguments, macros: $0) }
        note("mail", reply, .mail)
    }

    private mutating func recipient(
        _ path: String, _ arguments: [String], _ added: [String: String]
    ) {
        guard inMessage, outcome.message.final == .continue || outcome.message.final == .accept
        else { return }
        macros.merge(added) { $1 }
        var taken = true
        if !decided, needs.events.contains(.recipient) {
            let reply = withMacros { session.recipient(path, arguments: arguments, macros: $0) }
            if needs.answers.contains(.recipient) {
                change { $0.answers.append(.init(stage: "rcpt \(path)", reply: reply)) }
                switch reply {
                case .reject, .temporaryFailure: taken = false
                case .accept, .discard: decide(reply)
                case .continue, .skip: break
                }
            }
        }
        if taken {
            let path = MessageState.bracketed(path)
            change {
                $0.recipients.append(path)
                $0.original.recipients.append(path)
            }
        }
    }

    /// Records an answer to any event except a recipient.
    private mutating func note(_ stage: String, _ reply: MilterReply, _ event: MilterEvents) {
        guard needs.answers.contains(event) else { return }
        change { $0.answers.append(.init(stage: stage, reply: reply)) }
        if reply != .continue && reply != .skip { decide(reply) }
    }

    private mutating func decide(_ reply: MilterReply) {
        decided = true
        change { $0.final = reply }
    }

    /// DATA comes before the first field or the final dot, if there is a recipient.
    private mutating func data() -> Bool {
        guard inMessage, !outcome.message.recipients.isEmpty else { return false }
        if !sentData && !decided && needs.events.contains(.data) {
            let reply = withMacros { session.data(macros: $0) }
            note("data", reply, .data)
        }
        sentData = true
        return true
    }

    private mutating func header(_ name: [UInt8], _ value: [UInt8]) {
        guard data() else { return }
        change { $0.original.fields.append(.init(String(decoding: name, as: UTF8.self), value)) }
        guard !decided, needs.events.contains(.header) else { return }
        note(
            "header \(String(decoding: name, as: UTF8.self))",
            session.header(name: name, value: value), .header)
    }

    private mutating func endOfHeaders() {
        if !sentEndOfHeaders && !decided && needs.events.contains(.endOfHeaders) {
            note("end of headers", session.endOfHeaders(), .endOfHeaders)
        }
        sentEndOfHeaders = true
    }

    private mutating func body(_ bytes: [UInt8]) {
        guard data() else { return }
        endOfHeaders()
        change { $0.original.body += bytes }
        guard needs.events.contains(.body) else { return }
        // In the chunks of libmilter's protocol.
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty, !decided, !skipsBody {
                let chunk = UnsafeRawBufferPointer(rebasing: rest.prefix(65_535))
                rest = rest.dropFirst(chunk.count)
                let reply = session.body(chunk)
                skipsBody = reply == .skip && needs.answers.contains(.body)
                note("body", reply, .body)
            }
        }
    }

    private mutating func endOfMessage(_ added: [String: String]) {
        guard data() else { return abort() }
        endOfHeaders()
        macros.merge(added) { $1 }
        if decided {
            // It was refused, accepted or dropped before its end, so the filter receives no more of
            // it.
            let taken = outcome.message.final == .accept
            change { $0.completed = taken }
            return abort(unlessTaken: taken)
        }
        let actions = RecordingActions(allowed: needs.actions, macros: TableMacros(macros))
        var reply: MilterReply
        var failure: (any Error)?
        do {
            reply = try session.endOfMessage(actions)
            if reply == .skip { reply = .continue }
        } catch {
            failure = error
            reply = .temporaryFailure(
                TemporaryFailure(
                    repairing: 451, "4.3.0", "Temporary internal error; please try again later"))
        }
        actions.open = false
        actions.tableMacros.table = nil
        change {
            $0.answers.append(.init(stage: "end of message", reply: reply))
            $0.final = reply
            $0.modifications = actions.modifications
            $0.progressCount = actions.progressCount
            $0.error = failure
            $0.completed = true
        }
        inMessage = false
    }

    private mutating func abort(unlessTaken taken: Bool = false) {
        guard inMessage else { return }
        inMessage = false
        session.abort()
        if !taken { change { $0.aborted = true } }
    }
}
