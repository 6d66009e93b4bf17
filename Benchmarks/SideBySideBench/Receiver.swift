// A receiver of events that answers at once, over http on loopback.

import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

final class Receiver: Sendable {
    private let channel: any Channel
    let port: Int
    private let answered: Counter
    /// Requests answered so far.
    var arrived: Int { answered.count.load(ordering: .relaxed) }

    /// - Parameter hears: gets each body, on the receiver's thread; if nil, bodies are ignored.
    init(hears: (@Sendable ([UInt8]) -> Void)? = nil) async throws {
        let answered = Counter()
        self.answered = answered
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(answered, hears))
                }
            }.bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func stop() async { try? await channel.close() }

    private final class Counter: Sendable { let count = Atomic(0) }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let answered: Counter
        private let hears: (@Sendable ([UInt8]) -> Void)?
        private var body: [UInt8] = []

        init(_ answered: Counter, _ hears: (@Sendable ([UInt8]) -> Void)?) {
            (self.answered, self.hears) = (answered, hears)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head: return
            case .body(let part):
                if hears != nil { body += part.readableBytesView }
                return
            case .end: break
            }
            hears?(body)
            body = []
            answered.count.add(1, ordering: .relaxed)
            let head = HTTPResponseHead(
                version: .http1_1, status: .accepted, headers: ["Content-Length": "0"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
