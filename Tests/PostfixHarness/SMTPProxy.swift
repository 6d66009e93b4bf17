// Passes data between an SMTP client and a server, and can intervene at a transaction of the test's
// choice.

import Foundation

/// Passes connections to a server on 127.0.0.1. Stops with `stop`, or with the last reference.
package final class SMTPProxy: Sendable {
    /// The handling of a MAIL command.
    package enum Step: Sendable {
        case pass
        /// The server does not get it; the client gets this answer.
        case answer(String)
        /// The connection ends.
        case cut
    }

    private let listener: Socket
    package let port: UInt16
    private let target = Watched<UInt16>(0)
    private let step = Watched<@Sendable (Int) -> Step>({ _ in .pass })
    private let transactions = Watched(0)

    package init() throws {
        let listener = try Socket.listen()
        self.listener = listener
        port = listener.port
        let (target, step, transactions) = (target, step, transactions)
        Thread.detachNewThread {
            while let client = listener.accept() {
                Thread.detachNewThread {
                    guard
                        let server = try? Socket.connect(
                            port: target.with { $0 }, timeout: Int(standardTimeout))
                    else {
                        return
                    }
                    client.setTimeout(Int(standardTimeout))
                    Thread.detachNewThread {
                        while let octets = server.receive(), client.send(octets) {}
                        client.shutDown()
                    }
                    while let octets = client.receive() {
                        // A command comes in one piece, as its sender waits for the answer.
                        guard octets.starts(with: Array("MAIL FROM:".utf8)) else {
                            guard server.send(octets) else { break }
                            continue
                        }
                        let number = transactions.with { number in
                            number += 1
                            return number
                        }
                        // Not under the lock, as a test may do something that takes long.
                        let decide = step.with { $0 }
                        switch decide(number) {
                        case .pass: _ = server.send(octets)
                        case .answer(let line): _ = client.send(Array((line + "\r\n").utf8))
                        case .cut: client.shutDown()
                        }
                    }
                    server.shutDown()
                    client.shutDown()
                }
            }
        }
    }

    deinit { stop() }

    /// Passes connections to this port from now on. Calls `decide` before each MAIL, counted from 1
    /// over all connections.
    package func pass(to port: UInt16, _ decide: @escaping @Sendable (Int) -> Step = { _ in .pass })
    {
        target.with { $0 = port }
        step.with { $0 = decide }
        transactions.with { $0 = 0 }
    }

    /// MAIL commands since `pass`.
    package var count: Int { transactions.with { $0 } }

    package func stop() { listener.shutDown() }
}
