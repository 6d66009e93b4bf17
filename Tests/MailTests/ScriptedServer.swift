// An SMTP server that sends the replies of a test, and records the received commands.

import Foundation

@testable import PostfixHarness

/// Answers the commands of one connection from a script, in order.
final class ScriptedServer: Sendable {
    private let listener: Socket
    private let heard = Watched([String]())
    let port: UInt16

    /// - Parameter replies: greeting first; each with its CRLF. Nil closes the connection; an empty
    ///   text sends nothing.
    init(_ replies: [String?]) throws {
        let listener = try Socket.listen()
        self.listener = listener
        port = listener.port
        let heard = heard
        Thread.detachNewThread {
            guard let connection = listener.accept() else { return }
            var reader = LineReader(connection)
            for reply in replies {
                guard let reply else { break }
                _ = connection.send(Array(reply.utf8))
                guard !reply.hasPrefix("354") else {
                    _ = reader.message()
                    continue
                }
                guard let line = reader.line() else { break }
                heard.with { $0.append(String(decoding: line, as: UTF8.self)) }
            }
            connection.shutDown()
        }
    }

    deinit { listener.shutDown() }

    var commands: [String] { heard.with { $0 } }
}
