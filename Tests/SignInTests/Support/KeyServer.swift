// A web server on loopback with the test's answers: all that an issuer of keys may do to its
// clients.

import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// The behaviour of the server.
enum KeyServerResponse: Sendable {
    case document([UInt8], cacheControl: String?)
    case status(Int)
    case redirect(String)
    /// Sends nothing.
    case hang
    /// Sends the head and a little of the body, then nothing more.
    case stall
    /// Sends an octet every tenth of a second, and never ends.
    case drip
    /// Sends this many octets without announcing their number.
    case stream(Int)
    /// Announces a body of this length, and begins it.
    case announce(Int)
    /// Ends the connection in the middle of the body.
    case cut
    /// Not HTTP.
    case garbage
}

final class KeyServer: Sendable {
    private let answer: Mutex<KeyServerResponse>
    private let requests = Mutex(0)
    private let channel: any Channel
    private let scheme: String
    private let box: Box

    var count: Int { requests.withLock { $0 } }
    var address: String { "\(scheme)://127.0.0.1:\(channel.localAddress?.port ?? 0)/keys" }

    private init(channel: any Channel, scheme: String, box: Box) {
        self.channel = channel
        self.box = box
        self.scheme = scheme
        answer = Mutex(.hang)
    }

    /// Starts one on a free port. `tls`: with this certificate and key.
    static func start(tls: NIOSSLContext? = nil) async throws -> KeyServer {
        let box = Box()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                box.connections.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLServerHandler(context: tls))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(box: box))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let server = KeyServer(channel: channel, scheme: tls == nil ? "http" : "https", box: box)
        box.server.withLock { $0 = server }
        return server
    }

    func set(_ answer: KeyServerResponse) { self.answer.withLock { $0 = answer } }

    /// Ends its connections too: a client waits for one that sends nothing.
    func stop() async {
        try? await channel.close()
        for connection in box.connections.withLock({ $0 }) { try? await connection.close() }
    }

    private final class Box: Sendable {
        let server = Mutex<KeyServer?>(nil)
        let connections = Mutex<[any Channel]>([])
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let box: Box
        init(box: Box) { self.box = box }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data), let server = box.server.withLock({ $0 }) else {
                return
            }
            server.requests.withLock { $0 += 1 }
            switch server.answer.withLock({ $0 }) {
            case .document(let octets, let cacheControl):
                var headers: HTTPHeaders = [
                    "content-type": "application/json", "content-length": "\(octets.count)",
                ]
                if let cacheControl { headers.add(name: "cache-control", value: cacheControl) }
                send(context, .ok, headers, octets, end: true)
            case .status(let status):
                send(
                    context, HTTPResponseStatus(statusCode: status), ["content-length": "2"],
                    Array("{}".utf8), end: true)
            case .redirect(let place):
                send(context, .found, ["location": place, "content-length": "0"], [], end: true)
            case .hang: break
            case .stall:
                send(context, .ok, ["content-length": "1000"], Array("{\"keys\":".utf8), end: false)
            case .drip:
                send(context, .ok, ["transfer-encoding": "chunked"], [], end: false)
                let (channel, loop) = (context.channel, context.eventLoop)
                loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(100)) { task in
                    guard channel.isActive else { return task.cancel() }
                    channel.writeAndFlush(
                        HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: " "))),
                        promise: nil)
                }
            case .stream(let count):
                send(
                    context, .ok, ["transfer-encoding": "chunked"],
                    [UInt8](repeating: 0x20, count: count), end: true)
            case .announce(let count):
                send(context, .ok, ["content-length": "\(count)"], [0x20], end: false)
            case .cut:
                send(context, .ok, ["content-length": "1000"], Array("{\"keys\":".utf8), end: false)
                context.close(promise: nil)
            case .garbage:
                context.channel.pipeline.context(handlerType: HTTPResponseEncoder.self).whenSuccess
                { encoder in
                    encoder.writeAndFlush(
                        NIOAny(ByteBuffer(string: "220 mail.example ESMTP\r\n")), promise: nil)
                }
            }
        }

        private func send(
            _ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ headers: HTTPHeaders,
            _ body: [UInt8], end: Bool
        ) {
            context.write(
                wrapOutboundOut(
                    .head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
                promise: nil)
            if !body.isEmpty {
                context.write(
                    wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
            }
            if end { context.write(wrapOutboundOut(.end(nil)), promise: nil) }
            context.flush()
        }
    }
}
