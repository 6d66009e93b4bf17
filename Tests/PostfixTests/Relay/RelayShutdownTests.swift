// SIGTERM while `postern serve` rewrites a message that was made as slow as possible.

import Foundation
import HostileMail
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayShutdownTests {
    /// Seconds of processor time after the final dot, after which the message is in rewriting and
    /// no longer in reception.
    private static let rewritingBegan = 0.5

    /// A zip of 4,300 headers must not delay SIGTERM: the message must get its answer, and the
    /// service must end.
    @Test func service_sigtermWhileRewriting_answersAndEnds() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let reverse = try fixture.arrival(for: "anna@home.example").address("From")
        let bomb = try #require(Hostile.dearest)
        let fields = bomb.header.reduce("From: anna@home.example\r\nTo: \(reverse)\r\n") {
            $0 + "\($1.name): \($1.unfoldedValue)\r\n"
        }

        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<anna@home.example>")
        try client.expect(250, "RCPT TO:<\(reverse)>")
        try client.expect(354, "DATA")
        let process = try fixture.process
        let before = try #require(process.processorTime)
        let answer = Watched<Result<SMTPServerReply, any Error>?>(nil)
        // Only the thread uses it from here on.
        nonisolated(unsafe) let connection = client
        let message = SMTPClient.stuffed(Array(fields.utf8) + [0x0D, 0x0A] + bomb.body)
        Thread.detachNewThread {
            let reply = Result { () throws -> SMTPServerReply in
                try connection.send(message)
                return try connection.reply()
            }
            answer.with { $0 = reply }
        }
        var isRewriting = false
        // The answer also ends the waiting.
        while !isRewriting, answer.wait(seconds: 0.01, for: { $0 }) == nil {
            isRewriting = try #require(process.processorTime) - before > Self.rewritingBegan
        }
        #expect(isRewriting, "the message was answered before it was rewritten")
        let start = Date()
        process.signal(SIGTERM)
        let status = try process.waitForExit(seconds: 2 * standardTimeout)
        let seconds = -start.timeIntervalSinceNow
        #expect(status == 0, "\(process.output)")
        let reply = try #require(answer.wait(seconds: standardTimeout) { $0 }).get()
        print(
            "SIGTERM while the dearest message of \(message.count / 1_000_000) MB was rewritten: ended after \(seconds) s with \(reply)"
        )
        // Postern's own answer, and not that of Postfix for an interrupted message.
        #expect(reply.code == 550 && reply.enhancedStatus == "5.7.7", "\(reply)")
        #expect(fixture.sink.messages.count == 1)
    }
}
