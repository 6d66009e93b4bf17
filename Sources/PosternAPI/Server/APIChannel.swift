// A connection's pipeline: TLS where there is a certificate, HTTP/1.1, and the guard.

import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL

struct APIChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = HTTP1Channel.Value

    let base: HTTP1Channel
    let certificates: TLSCertificates?
    let timeouts: ConnectionTimeouts
    let counts: ConnectionCounts

    var responder: HTTPChannelHandler.Responder { base.responder }

    init(
        responder: @escaping HTTPChannelHandler.Responder, certificates: TLSCertificates?, timeouts: ConnectionTimeouts,
        counts: ConnectionCounts
    ) {
        // Heads are small here: a key, a type, a length.
        base = HTTP1Channel(
            responder: responder,
            configuration: .init(httpDecoderConfiguration: .init(maxHeaderFieldSize: 16_384, maxHeaderListSize: 32_768, maxHeaderFieldCount: 100)))
        self.certificates = certificates
        self.timeouts = timeouts
        self.counts = counts
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let networks = counts.open(channel.remoteAddress)
        if let networks { channel.closeFuture.whenComplete { [counts] _ in counts.close(networks) } }
        // What is not counted is not spoken to either.
        let context = networks == nil ? nil : certificates?.context
        let connection = NIOLoopBound(
            ConnectionGuard(timeouts: timeouts, isEncrypted: context != nil) { Self.problem($0).body(requestID: nil) },
            eventLoop: channel.eventLoop)
        return channel.eventLoop.makeCompletedFuture {
            if networks == nil { try channel.pipeline.syncOperations.addHandler(ClosesAtOnce()) }
            if let context {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
            }
            try channel.pipeline.syncOperations.addHandler(OctetWatch(connection.value))
        }.flatMap {
            base.setup(channel: channel, logger: logger)
        }.flatMapThrowing { value in
            let decoder = try channel.pipeline.syncOperations.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try channel.pipeline.syncOperations.addHandler(connection.value, position: .after(decoder))
            return value
        }
    }

    func handle(value: Value, logger: Logger) async { await handleHTTP(asyncChannel: value, logger: logger) }

    private static func problem(_ status: HTTPResponseStatus) -> Problem {
        switch status {
        case .requestTimeout: Problem.tooSlow
        case .requestHeaderFieldsTooLarge:
            Problem(.requestHeaderFieldsTooLarge, "head-too-large", "The head of the request is too large")
        case .expectationFailed: Problem(.expectationFailed, "malformed", "Expect: 100-continue is all that can be expected")
        default: Problem.malformed("this is no HTTP/1.1 that is taken: a request has one Host field")
        }
    }
}

/// For a connection of a network that has too many.
private final class ClosesAtOnce: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}
