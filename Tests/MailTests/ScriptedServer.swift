// An SMTP server that says what a test tells it to, and keeps what it was told.

import Foundation
@testable import PostfixHarness

/// Answers the commands of one connection from a script, in order.
final class ScriptedServer: Sendable {
    private let listener: Socket
    private let heard = Watched([String]())
    let port: UInt16

    /// - Parameter replies: greeting first; each with its CRLF; nil closes the connection, an empty text says nothing at all.
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
