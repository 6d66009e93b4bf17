// MilterTesting: runs a handler through transactions without sockets.

import Milter
import MilterTesting
import TestSupport
import Testing

/// A small filter: knows three recipients, rewrites, counts its events.
private struct SampleHandler: MilterHandler {
    var needs = MilterNeeds(
        events: [.mail, .recipient, .header, .endOfHeaders, .body], answers: [.recipient, .body],
        actions: .all)

    func makeSession(connection: MilterConnection) -> any MilterSession {
        SampleSession(connection)
    }
}

private final class SampleSession: MilterSession {
    private let connection: MilterConnection
    private var recipients = [String]()
    private var events = [String]()
    private var body = 0

    init(_ connection: MilterConnection) { self.connection = connection }

    func helo(_ name: String) -> MilterReply {
        events.append("helo")
        return .continue
    }

    func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        (recipients, body, events) = ([], 0, events + ["mail"])
        // Not among the answers, so it must not count.
        return .reject(PermanentFailure(repairing: 550, "5.0.0", "ignored"))
    }

    func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        switch path {
        case "<bad@relay.test>":
            return .reject(PermanentFailure(repairing: 550, "5.1.1", "unknown"))
        case "<later@relay.test>":
            return .temporaryFailure(TemporaryFailure(repairing: 452, "4.5.3", "later"))
        default:
            recipients.append(path)
            return .continue
        }
    }

    func header(name: [UInt8], value: [UInt8]) -> MilterReply {
        events.append(String(decoding: name, as: UTF8.self))
        return .continue
    }

    func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply {
        body += chunk.count
        return body > 100_000 ? .skip : .continue
    }

    struct Failed: Error {}

    func endOfMessage(_ actions: any MilterActions) throws -> MilterReply {
        if recipients.contains("<fails@relay.test>") {
            try actions.changeFrom("<>")
            throw Failed()
        }
        try actions.changeFrom("<back@relay.test>")
        for recipient in recipients { try actions.deleteRecipient(recipient) }
        try actions.addRecipient("<inbox@home.test>")
        try actions.changeHeader("From", index: 1, value: Array(" hidden@relay.test".utf8))
        try actions.insertHeader(
            at: 1, "X-Queue",
            value: Array(" \(actions.macros["i"] ?? "-") \(connection.daemonName ?? "-")".utf8))
        try actions.addHeader(
            "X-Events", value: Array(" \(events.joined(separator: ","))\r\n\tbody=\(body)".utf8))
        try actions.progress()
        return .continue
    }

    func abort() { events.append("abort") }
}

@Suite(.blocking) struct MilterTransactionTests {
    private let base = MilterTransaction().connect(daemonName: "smtp").helo("client.test").mail(
        "<a@out.test>")

    @Test func transaction_rewritingHandler_recordsModifications() throws {
        let outcome = base.rcpt("<user@relay.test>").header("From", "a@out.test").header(
            "Subject", "x"
        ).body("hello\r\n")
            .endOfMessage(macros: ["i": "Q1"]).run(SampleHandler())
        let message = outcome.message
        #expect(
            message.difference(expected: [
                .from("<back@relay.test>"), .deleteRecipient(path: "<user@relay.test>"),
                .addRecipient("<inbox@home.test>"),
                .change("From", 1, " hidden@relay.test"), .insert(1, "X-Queue", " Q1 smtp"),
                .add("X-Events", " mail,From,Subject\r\n\tbody=7"),
            ]) == nil)
        #expect(
            message.final == .continue && message.progressCount == 1 && message.error == nil
                && !message.aborted)
        let delivered = try #require(message.delivered)
        #expect(
            delivered.mailFrom == "<back@relay.test>"
                && delivered.recipients == ["<inbox@home.test>"])
        #expect(
            String(decoding: delivered.message, as: UTF8.self)
                == "X-Queue: Q1 smtp\r\nFrom: hidden@relay.test\r\nSubject: x\r\nX-Events: mail,From,Subject\r\n\tbody=7\r\n\r\nhello\r\n"
        )
    }

    @Test func transaction_severalRecipients_recordsEachReply() {
        let message = base.rcpt("<bad@relay.test>").rcpt("<ok@relay.test>").rcpt(
            "<later@relay.test>"
        ).body("x\r\n")
            .endOfMessage()
            .run(SampleHandler()).message
        #expect(
            message.reply(to: "<bad@relay.test>")
                == .reject(PermanentFailure(repairing: 550, "5.1.1", "unknown")))
        #expect(
            message.reply(to: "<later@relay.test>")
                == .temporaryFailure(TemporaryFailure(repairing: 452, "4.5.3", "later")))
        #expect(message.recipients == ["<ok@relay.test>"])
        #expect(message.delivered?.recipients == ["<inbox@home.test>"])
    }

    @Test func transaction_noRecipientTaken_isAborted() {
        let message = base.rcpt("<bad@relay.test>").body("x\r\n").endOfMessage().run(
            SampleHandler()
        ).message
        #expect(message.aborted && message.delivered == nil && message.modifications.isEmpty)
    }

    @Test func transaction_handlerThrows_isTemporaryFailure() {
        let message = base.rcpt("<fails@relay.test>").endOfMessage().run(SampleHandler()).message
        guard case .temporaryFailure(let failure) = message.final else {
            Issue.record("\(message.final)")
            return
        }
        #expect(failure.code == 451 && message.error is SampleSession.Failed)
        #expect(message.delivered == nil && message.modifications == [.from("<>")])
    }

    @Test func transaction_skipReply_endsBodyForHandlerOnly() throws {
        let body = [UInt8](repeating: 0x78, count: 300_000)
        let message = base.rcpt("<user@relay.test>").body(body).endOfMessage().run(SampleHandler())
            .message
        #expect(message.delivered?.values("X-Events") == ["mail\r\n\tbody=131070"])
        #expect(message.delivered?.body == body)
    }

    @Test func transaction_severalMessages_shareSession() {
        let outcome = base.rcpt("<user@relay.test>").reset().mail("<>").rcpt("<user@relay.test>")
            .endOfMessage().run(
                SampleHandler())
        #expect(
            outcome.messages.count == 2 && outcome.messages[0].aborted
                && !outcome.messages[1].aborted)
        #expect(outcome.message.delivered?.values("X-Events") == ["mail,abort,mail\r\n\tbody=0"])
    }

    @Test func transaction_wholeMessage_isSplitIntoFieldsAndBody() {
        let text = "From: a@out.test\nX-Fold: one\n\ttwo\n\nline\n.\n"
        let message = base.rcpt("<user@relay.test>").message(Array(text.utf8)).endOfMessage().run(
            SampleHandler()
        ).message
        #expect(
            message.original.fields.map(\.description) == [
                "From: a@out.test", "X-Fold: one\r\n\ttwo",
            ])
        #expect(message.original.body == Array("line\r\n.\r\n".utf8))
    }

    @Test func transaction_invalidAction_throws() {
        struct Handler: MilterHandler {
            let needs = MilterNeeds(
                events: [], answers: [], actions: [.addHeaders, .changeHeaders])
            func makeSession(connection: MilterConnection) -> any MilterSession { Session() }
        }
        final class Session: MilterSession {
            var kept: (any MilterActions)?
            func endOfMessage(_ actions: any MilterActions) throws -> MilterReply {
                #expect(throws: MilterActionError.notNegotiated(.changeBody)) {
                    try actions.replaceBody([[0x78]])
                }
                #expect(throws: MilterActionError.notNegotiated(.deleteRecipient)) {
                    try actions.deleteRecipient("<a@b>")
                }
                #expect(throws: MilterActionError.fieldName) {
                    try actions.addHeader("X Y", value: [0x20])
                }
                #expect(throws: MilterActionError.fieldName) {
                    try actions.addHeader("", value: [0x20])
                }
                #expect(throws: MilterActionError.fieldValue) {
                    try actions.addHeader("X", value: Array(" a\r\nBcc: x".utf8))
                }
                #expect(throws: MilterActionError.fieldValue) {
                    try actions.addHeader("X", value: Array(" a\nBcc: x".utf8))
                }
                #expect(throws: MilterActionError.fieldValue) {
                    try actions.addHeader("X", value: Array(" a\rb".utf8))
                }
                #expect(throws: MilterActionError.fieldValue) {
                    try actions.addHeader("X", value: Array(" a\0b".utf8))
                }
                #expect(throws: MilterActionError.fieldValue) {
                    try actions.addHeader("X", value: Array(" a\r\n".utf8))
                }
                #expect(throws: MilterActionError.index(0)) {
                    try actions.deleteHeader("X", index: 0)
                }
                #expect(throws: MilterActionError.index(-1)) {
                    try actions.insertHeader(at: -1, "X", value: [0x20])
                }
                kept = actions
                return .continue
            }
            func closed() {
                #expect(throws: MilterActionError.notAtEndOfMessage) {
                    try kept?.addHeader("X", value: [0x20])
                }
                #expect(kept?.macros["i"] == nil)
            }
        }
        let message = base.rcpt("<user@relay.test>").endOfMessage().run(Handler()).message
        #expect(message.final == .continue && message.modifications.isEmpty)
    }

    @Test func modificationDifference_severalKinds_isReadable() {
        let difference = RecordedModification.difference(
            expected: [.from("<>"), .delete("X-A"), .change("To", 1, " b")],
            actual: [.from("<>"), .change("To", 1, " c"), .add("X", " y")])
        #expect(
            difference
                == "  from <>\n- delete X-A 1\n- change To 1: b\n+ change To 1: c\n+ add X: y")
    }
}
