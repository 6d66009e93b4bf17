// A small SMTP server on loopback (RFC 5321): apps, users and Postern itself send to this port of a
// sandbox.

import Concurrency
import Database
import HTTP
import NIOCore
import NIOPosix
import ServiceLifecycle
import Support

/// Listens from the start, so that its port is known. It serves after `serve` is called.
struct SandboxSMTPServer: Sendable {
    typealias Connection = AcceptedConnection<ByteBuffer, ByteBuffer>
    typealias Listener = NIOAsyncChannel<Connection, Never>

    private let listener: Listener
    let port: Int

    /// Throws `APIServiceError` if the server cannot listen on the port.
    /// - Parameter port: 0 for any free one.
    static func listen(port: Int) async throws -> SandboxSMTPServer {
        let listener: Listener
        do {
            listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
                .bind(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try Connection(Connection.Connection(wrappingChannelSynchronously: channel))
                    }
                }
        } catch let error as IOError {
            throw APIServiceError(setting: "--smtp-port", address: "127.0.0.1:\(port)", error)
        }
        return SandboxSMTPServer(
            listener: listener, port: listener.channel.localAddress?.port ?? port)
    }

    /// Ends the listener if it never served.
    func close() { listener.channel.close(promise: nil) }

    /// Serves until the graceful shutdown.
    /// - Parameter pool: runs blocking calls.
    func serve(_ room: SandboxMailRoom, pool: BlockingPool, limit: Int) async throws {
        try await cancelWhenGracefulShutdown {
            try await listener.executeThenClose { connections in
                try await withThrowingDiscardingTaskGroup { group in
                    for try await connection in connections {
                        group.addTask {
                            // A client that disconnects ends only its own connection.
                            try? await connection.take().executeThenClose { inbound, outbound in
                                let peer =
                                    connection.channel.remoteAddress?.ipAddress ?? "127.0.0.1"
                                var dialogue = SandboxSMTPDialogue(
                                    connection: room.connect(from: peer), pool: pool, limit: limit)
                                try await outbound.write(
                                    ByteBuffer(string: SandboxSMTPDialogue.greeting))
                                for try await buffer in inbound {
                                    let (replies, isOver) = await dialogue.take(
                                        Array(buffer.readableBytesView))
                                    if !replies.isEmpty {
                                        try await outbound.write(ByteBuffer(string: replies))
                                    }
                                    if isOver { break }
                                }
                                await dialogue.end()
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The SMTP server in the group of services.
struct SandboxMailService: Service {
    let server: SandboxSMTPServer
    let room: SandboxMailRoom
    let pool: BlockingPool
    let limit: Int
    let ready: @Sendable () -> Void

    func run() async throws {
        ready()
        do { try await server.serve(room, pool: pool, limit: limit) } catch is CancellationError {}
    }
}

/// The server's side of one connection.
struct SandboxSMTPDialogue {
    static let greeting = "220 sandbox.example ESMTP Postern sandbox\r\n"
    /// Octets of a command line (RFC 5321 section 4.5.3.1.4 requires at least 512).
    private static let maximumLine = 4_096

    let connection: SandboxMailConnection
    let pool: BlockingPool
    /// Octets of a message.
    let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8]?
    private var isTooLarge = false
    private var hasSender = false
    private var isOver = false

    init(connection: SandboxMailConnection, pool: BlockingPool, limit: Int) {
        (self.connection, self.pool, self.limit) = (connection, pool, limit)
    }

    /// Processes octets of the client; returns the replies, and whether the connection ends.
    mutating func take(_ octets: [UInt8]) async -> (replies: String, isOver: Bool) {
        var replies = ""
        for octet in octets where !isOver {
            if octet != 0x0A {
                if line.count <= (data == nil ? Self.maximumLine : limit) { line.append(octet) }
                continue
            }
            if line.last == 0x0D { line.removeLast() }
            let full = line
            line = []
            replies += data == nil ? await command(full) : await content(full)
        }
        return (replies, isOver)
    }

    func end() async { _ = try? await pool.run { [connection] in connection.close() } }

    private mutating func content(_ line: [UInt8]) async -> String {
        guard line.elementsEqual([UInt8(ascii: ".")]) else {
            let rest = line.first == UInt8(ascii: ".") ? line.dropFirst() : line[...]
            if (data?.count ?? 0) + rest.count + 2 > limit {
                isTooLarge = true
            } else {
                data? += rest + [0x0D, 0x0A]
            }
            return ""
        }
        let message = data ?? []
        data = nil
        hasSender = false
        guard !isTooLarge else {
            connection.reset()
            return "552 5.3.4 Message size exceeds the limit of \(limit) octets\r\n"
        }
        let reply = try? await pool.run { [connection] in connection.message(message).reply }
        return Self.text(reply ?? SandboxReply(451, "4.3.0", "The sandbox is ending"))
    }

    private mutating func command(_ octets: [UInt8]) async -> String {
        guard octets.count <= Self.maximumLine, let text = WireText(validating: octets)?.text else {
            return "500 5.5.2 Line too long, or not UTF-8\r\n"
        }
        let verb =
            text.utf8.split(separator: 0x20, maxSplits: 1).first.map {
                String(decoding: $0, as: UTF8.self)
            } ?? ""
        switch verb.asciiLowercased {
        case "ehlo":
            await helo(text)
            return
                "250-sandbox.example\r\n250-PIPELINING\r\n250-SIZE \(limit)\r\n250-ENHANCEDSTATUSCODES\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n"
        case "helo":
            await helo(text)
            return "250 sandbox.example\r\n"
        case "mail":
            guard let (path, arguments) = Self.path(text, after: "mail from:") else {
                return "501 5.5.4 Syntax: MAIL FROM:<address>\r\n"
            }
            _ = try? await pool.run { [connection] in connection.mail(path, arguments) }
            hasSender = true
            return "250 2.1.0 Ok\r\n"
        case "rcpt":
            guard hasSender else { return "503 5.5.1 Error: need MAIL command\r\n" }
            guard let (path, _) = Self.path(text, after: "rcpt to:"), path.utf8.count > 2 else {
                return "501 5.5.4 Syntax: RCPT TO:<address>\r\n"
            }
            let reply = try? await pool.run { [connection] in connection.recipient(path) }
            return Self.text(reply ?? SandboxReply(451, "4.3.0", "The sandbox is ending"))
        case "data":
            guard hasSender, !connection.recipients.isEmpty else {
                return "503 5.5.1 Error: need RCPT command\r\n"
            }
            (data, isTooLarge) = ([], false)
            return "354 End data with <CR><LF>.<CR><LF>\r\n"
        case "rset":
            connection.reset()
            hasSender = false
            return "250 2.0.0 Ok\r\n"
        case "noop": return "250 2.0.0 Ok\r\n"
        case "vrfy": return "252 2.0.0 Send some mail\r\n"
        case "quit":
            isOver = true
            return "221 2.0.0 Bye\r\n"
        default: return "502 5.5.2 Command not recognized\r\n"
        }
    }

    private func helo(_ text: String) async {
        let name = text.utf8.split(separator: 0x20, maxSplits: 1).dropFirst().first
        let host = name.map { String(decoding: $0, as: UTF8.self) } ?? ""
        _ = try? await pool.run { [connection] in connection.helo(host) }
    }

    /// The path in angle brackets after `MAIL FROM:` or `RCPT TO:`, and the parameters after it.
    static func path(_ text: String, after start: String) -> (path: String, arguments: [String])? {
        let octets = Array(text.utf8)
        guard octets.count > start.utf8.count,
            String(decoding: octets[..<start.utf8.count], as: UTF8.self).asciiLowercased
                .hasSameOctets(as: start)
        else { return nil }
        let rest = octets[start.utf8.count...].drop { $0 == 0x20 }
        guard rest.first == UInt8(ascii: "<") else { return nil }
        var isQuoted = false
        var previous: UInt8 = 0
        for index in rest.indices {
            let octet = rest[index]
            if octet == UInt8(ascii: "\""), previous != UInt8(ascii: "\\") { isQuoted.toggle() }
            if octet == UInt8(ascii: ">"), !isQuoted {
                let arguments = rest[(index + 1)...].split(separator: 0x20).map {
                    String(decoding: $0, as: UTF8.self)
                }
                return (String(decoding: rest[...index], as: UTF8.self), arguments)
            }
            previous = octet
        }
        return nil
    }

    private static func text(_ reply: SandboxReply) -> String {
        "\(reply.code) \(reply.enhanced) \(reply.text)\r\n"
    }
}
