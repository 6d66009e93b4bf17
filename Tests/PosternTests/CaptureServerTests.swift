// The server that receives the test mail of `postern doctor` from Postfix.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@testable import Mail

@Suite(.blocking) struct CaptureServerTests {
    /// The server must answer the sender before it stops. Otherwise the message stays in Postfix's
    /// queue, and comes again when no server listens.
    @Test func captureServer_stoppedAfterMessage_answersSenderFirst() throws {
        for number in 0..<50 {
            let port = try FreePort.next()
            let place = try CaptureServer(port: port) { _ in .take }
            let client = try SMTPClient(port: port)
            try client.expect(250, "EHLO mx.relay.example")
            try client.expect(250, "MAIL FROM:<a@app.example>")
            try client.expect(250, "RCPT TO:<b@relay.example>")
            try client.expect(354, "DATA")
            let ender = Thread {
                _ = place.wait(seconds: 60) { $0.first }
                place.stop()
            }
            ender.start()
            try client.send(Array("Subject: \(number)\r\n\r\n.\r\n".utf8))
            #expect(try client.reply().code == 250)
            place.stop()
        }
    }
}
