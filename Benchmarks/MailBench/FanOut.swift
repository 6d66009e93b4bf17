// A message to many users in one transaction: how long its sender waits for the answer.

import BenchReport
import Foundation

enum FanOut {
    /// Returns seconds of wall time, medians over the rounds: of one transaction with all
    /// recipients, and of one transaction for each of them, one after the other.
    static func measure(
        _ world: MailFixture, recipients count: Int, rounds: Int
    ) throws -> (together: Double, apart: Double) {
        let recipients = try world.addUsers(count)
        var times: (together: [Double], apart: [Double]) = ([], [])
        for _ in 0..<rounds {
            times.together.append(try send(world, [recipients]))
            times.apart.append(try send(world, recipients.map { [$0] }))
        }
        return (times.together.median, times.apart.median)
    }

    private static func send(_ world: MailFixture, _ transactions: [[String]]) throws -> Double {
        let sender = world.sender(.forward)
        let start = Clock.wall()
        for recipients in transactions {
            // A different body each time: a repetition of a handed-over message goes to no one.
            let text = Array("Number \(UInt64.random(in: 0 ... .max)).\r\n".utf8)
            try Source(
                port: world.port(.forward), sessions: 1, messages: 1, recipients: recipients,
                sender: { _ in sender },
                message: world.unsignedMessage + text
            ).run()
        }
        let seconds = Clock.wall() - start
        try world.waitUntilDelivered()
        return seconds
    }
}
