// The dialogue of an MTA with the relay, in any order: no trap, and no outgoing message to a relay
// address without rewriting.

import InternetMessage
import Logging
import MailAuth
import MailTesting
import Milter
import MilterTesting
import RelayCore
import RelayMilter

enum MilterFuzzing {
    private static let fixture = Fixture(evidence: .signed("app.example"))
    private static let handler: RelayMilterHandler = {
        var logger = Logger(label: "fuzz")
        logger.logLevel = .critical
        return RelayMilterHandler(engine: { fixture.engine }, now: { Fixture.now }, logger: logger)
    }()

    /// Each line is a step; its first octet selects it.
    static let dialogue: FuzzTarget = { input in
        var transaction = MilterTransaction()
        for line in input.split(separator: 0x0A, omittingEmptySubsequences: false).prefix(200) {
            let text = String(decoding: line.dropFirst(), as: UTF8.self)
            switch line.first {
            case UInt8(ascii: "h"): transaction = transaction.helo(text)
            case UInt8(ascii: "m"): transaction = transaction.mail("<\(text)>")
            case UInt8(ascii: "r"): transaction = transaction.rcpt("<\(text)>")
            case UInt8(ascii: "f"):
                let parts = text.split(separator: ":", maxSplits: 1)
                if parts.count == 2 {
                    transaction = transaction.header(String(parts[0]), String(parts[1]))
                }
            case UInt8(ascii: "b"): transaction = transaction.body(text + "\r\n")
            case UInt8(ascii: "."): transaction = transaction.endOfMessage()
            case UInt8(ascii: "x"): transaction = transaction.reset()
            case UInt8(ascii: "u"): transaction = transaction.unknown(text)
            default: break
            }
        }
        for message in transaction.run(handler).messages {
            guard let delivered = message.delivered else { continue }
            for recipient in delivered.recipients {
                require(
                    !recipient.lowercased().hasSuffix("@relay.example>"),
                    "nothing goes on to a relay address: \(message.answers) \(message.final) \(delivered.recipients)"
                )
            }
        }
    }
}
