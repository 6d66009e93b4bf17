// The hand-over of a message to a mail server: the commands, the result of each answer, and errors
// without addresses.

import Foundation
import InternetMessage
import PostfixHarness
import TestSupport
import Testing

@testable import Mail

@Suite(.blocking) struct SMTPSubmissionTests {
    private static let inbox = InboxAddress(
        AddrSpec(localPart: "anna.secret", domain: "home.example"))
    private static let sender = AddrSpec(localPart: "acme", domain: "relay.example")
    private static let message = Array("Subject: x\r\n\r\n.one\r\n..two\r\nthree".utf8)

    private func submission(_ port: UInt16, timeout: Double = 120) -> SMTPSubmission {
        SMTPSubmission(
            host: "127.0.0.1", port: port, helo: "mx.relay.example", timeout: timeout,
            dataTimeout: timeout)
    }

    private func failure(
        _ replies: [String?], timeout: Double = 120, message: [UInt8] = message
    ) throws -> SubmissionFailure? {
        let server = try ScriptedServer(replies)
        do throws(SubmissionFailure) {
            try submission(server.port, timeout: timeout).send(
                from: Self.sender, to: Self.inbox, message: message)
            return nil
        } catch {
            return error
        }
    }

    @Test func submission_messageWithDots_arrivesUnchanged() throws {
        let sink = try SMTPSink()
        defer { sink.stop() }
        try submission(sink.port).send(from: Self.sender, to: Self.inbox, message: Self.message)
        let arrived = try #require(try sink.wait(for: 1).first)
        #expect(
            arrived.helo == "mx.relay.example" && arrived.mailFrom == "<acme@relay.example>"
                && arrived.mailArguments == [])
        #expect(arrived.recipients == ["<anna.secret@home.example>"])
        // Unchanged, with its dots; only the missing line break at the end is added.
        #expect(arrived.data == Self.message + [0x0D, 0x0A])
    }

    @Test func submission_nullSender_sendsEmptyReversePath() throws {
        let sink = try SMTPSink()
        defer { sink.stop() }
        try submission(sink.port).send(from: nil, to: Self.inbox, message: Self.message)
        #expect(try sink.wait(for: 1).first?.mailFrom == "<>")
    }

    @Test func submission_eightBitOrUTF8_needsServersExtension() throws {
        let eightBit = Array("Subject: x\r\n\r\nfünf\r\n".utf8)
        let sink = try SMTPSink()
        defer { sink.stop() }
        try submission(sink.port).send(from: nil, to: Self.inbox, message: eightBit)
        #expect(try sink.wait(for: 1).first?.mailArguments == ["BODY=8BITMIME"])

        let international = InboxAddress(AddrSpec(localPart: "änne", domain: "home.example"))
        #expect(
            throws: SubmissionFailure.permanent(
                .recipient, "the address needs SMTPUTF8, which the server does not offer")
        ) {
            try submission(sink.port).send(from: nil, to: international, message: Self.message)
        }
        var behaviour = SinkBehaviour()
        behaviour.keywords = ["SMTPUTF8"]
        sink.set(behaviour)
        try submission(sink.port).send(from: nil, to: international, message: Self.message)
        #expect(try sink.wait(for: 2).last?.mailArguments == ["SMTPUTF8"])

        let plain = try failure(["220 hi\r\n", "250 plain\r\n", "221 bye\r\n"], message: eightBit)
        guard case .permanent = plain else {
            return #expect(Bool(false), "\(String(describing: plain))")
        }
    }

    @Test func submission_internationalDomain_isSentAsALabels() throws {
        let sink = try SMTPSink()
        defer { sink.stop() }
        try submission(sink.port).send(
            from: nil, to: InboxAddress(AddrSpec(localPart: "anna", domain: "bücher.example")),
            message: Self.message)
        #expect(try sink.wait(for: 1).first?.recipients == ["<anna@xn--bcher-kva.example>"])
    }

    /// 5xx is permanent, all else is temporary. For every answer, the error contains no address.
    @Test(arguments: [
        (
            ["554 5.7.1 go away anna.secret@home.example\r\n"] as [String?],
            "permanent greeting 554 5.7.1"
        ),
        (["421 busy\r\n"], "temporary greeting 421"),
        (["220 hi\r\n", "500 what\r\n", "502 what\r\n"], "permanent EHLO 502"),
        (["220 hi\r\n", "250 ok\r\n", "451 4.3.0 later\r\n"], "temporary MAIL 451 4.3.0"),
        (
            [
                "220 hi\r\n", "250 ok\r\n", "250 ok\r\n",
                "550 5.1.1 <anna.secret@home.example> unknown\r\n",
            ],
            "permanent RCPT 550 5.1.1"
        ),
        (
            [
                "220 hi\r\n", "250 ok\r\n", "250 ok\r\n",
                "450-4.2.0 wait\r\n450 4.2.0 anna.secret\r\n",
            ], "temporary RCPT 450 4.2.0"
        ),
        (
            ["220 hi\r\n", "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "550 5.7.1 no\r\n"],
            "permanent DATA 550 5.7.1"
        ),
        (
            [
                "220 hi\r\n", "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n",
                "552 5.3.4 big\r\n",
            ],
            "permanent end of data 552 5.3.4"
        ),
        (
            ["220 hi\r\n", "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n", nil],
            "temporary end of data the server closed the connection"
        ),
        (["220 hi\r\n", nil], "temporary EHLO the server closed the connection"),
        (["HTTP/1.1 400 Bad Request\r\n"], "temporary greeting the server does not speak SMTP"),
        (["220-one\r\n221 two\r\n"], "temporary greeting the server does not speak SMTP"),
        (
            [String(repeating: "2", count: 5000)],
            "temporary greeting the server does not speak SMTP"
        ),
    ])
    func submission_refusedOrBroken_isClassifiedWithoutAddress(
        _ replies: [String?], _ expected: String
    ) throws {
        let failure = try #require(try failure(replies))
        let told: String
        switch failure {
        case .temporary(let error): told = "temporary \(error.stage.rawValue) \(error.detail)"
        case .permanent(let error): told = "permanent \(error.stage.rawValue) \(error.detail)"
        }
        #expect(told == expected)
        #expect(!"\(failure)".contains("secret"))
    }

    @Test func submission_serverSilent_timesOut() throws {
        #expect(try failure([""], timeout: 0.3) == .temporary(.greeting, "no answer in time"))
    }

    @Test func submission_nobodyListening_isTemporary() throws {
        let port = try ScriptedServer([]).port
        do {
            try submission(port).send(from: nil, to: Self.inbox, message: Self.message)
            Issue.record("it was sent")
        } catch {
            guard case .temporary(let error) = error else {
                return #expect(Bool(false), "\(error)")
            }
            #expect(error.stage == .connection)
        }
    }

    @Test func smtpReply_inAnyPieces_isReadWhole() throws {
        let text = Array("250-mx.example\r\n250-SIZE 10\r\n250 8BITMIME\r\n220 2.0.0 next\r\n".utf8)
        for cut in 1..<text.count {
            var reader = SMTPReplyReader()
            var replies: [ServerReply] = []
            for piece in [Array(text[..<cut]), Array(text[cut...])] {
                if let reply = try reader.next(feeding: piece) { replies.append(reply) }
                while let reply = try reader.next() { replies.append(reply) }
            }
            #expect(
                replies.map(\.code) == [250, 220]
                    && replies[0].lines == ["mx.example", "SIZE 10", "8BITMIME"]
                    && replies[1].enhanced == "2.0.0")
        }
    }
}
