// A connection's pipeline: TLS if there is a certificate, HTTP/1.1, and the guard.

import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL

struct APIChannel: ServerChildChannel, HTTPChannelHandler {
    typealias Value = AcceptedConnection<HTTPRequestPart, HTTPResponsePart>

    let base: HTTP1Channel
    let certificates: TLSCertificates?
    let timeouts: ConnectionTimeouts
    let connections: OpenConnections

    var responder: HTTPChannelHandler.Responder { base.responder }

    init(
        responder: @escaping HTTPChannelHandler.Responder, certificates: TLSCertificates?,
        timeouts: ConnectionTimeouts,
        connections: OpenConnections
    ) {
        // Header sections are small here: they hold a key, a type and a length.
        base = HTTP1Channel(
            responder: responder,
            configuration: .init(
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 16_384, maxHeaderListSize: 32_768, maxHeaderFieldCount: 100)
            ))
        self.certificates = certificates
        self.timeouts = timeouts
        self.connections = connections
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let id = connections.open(channel.remoteAddress) { Self.end(channel) }
        if let id { channel.closeFuture.whenComplete { [connections] _ in connections.close(id) } }
        // A connection beyond the limits gets no TLS either.
        let context = id == nil ? nil : certificates?.context
        // With a certificate configured, nothing is sent unencrypted.
        let isClosed = id == nil || (certificates != nil && context == nil)
        let connection = NIOLoopBound(
            ConnectionGuard(
                timeouts: timeouts, isEncrypted: context != nil,
                enter: { [connections] phase in id.map { connections.enter(phase, $0) } },
                problem: { Self.problem($0).body(requestID: nil) }),
            eventLoop: channel.eventLoop)
        return channel.eventLoop.makeCompletedFuture {
            if isClosed { try channel.pipeline.syncOperations.addHandler(ClosesAtOnce()) }
            if let context {
                try channel.pipeline.syncOperations.addHandler(
                    NIOSSLServerHandler(context: context))
            }
            try channel.pipeline.syncOperations.addHandler(OctetWatch(connection.value))
        }.flatMap {
            base.setup(channel: channel, logger: logger)
        }.flatMapThrowing { value in
            let decoder = try channel.pipeline.syncOperations.handler(
                type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try channel.pipeline.syncOperations.addHandler(
                connection.value, position: .after(decoder))
            return AcceptedConnection(value)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await handleHTTP(asyncChannel: value.take(), logger: logger)
    }

    /// Closes without a final message, and without waiting for the end of TLS: a silent client
    /// would delay it.
    private static func end(_ channel: any Channel) {
        channel.eventLoop.execute {
            if let encryption = try? channel.pipeline.syncOperations.context(
                handlerType: NIOSSLServerHandler.self)
            {
                encryption.close(promise: nil)
            } else {
                channel.close(promise: nil)
            }
        }
    }

    private static func problem(_ status: HTTPResponseStatus) -> Problem {
        switch status {
        case .requestTimeout: Problem.tooSlow
        case .requestHeaderFieldsTooLarge:
            Problem(
                .requestHeaderFieldsTooLarge, "head-too-large",
                "The header section of the request is too large")
        case .expectationFailed:
            Problem(
                .expectationFailed, "malformed",
                "The only supported expectation is Expect: 100-continue")
        default:
            Problem.malformed(
                "this is not a valid HTTP/1.1 request: it needs a valid method, an address in ASCII, and one Host field"
            )
        }
    }
}

/// Closes a connection that is beyond the limits, or for which no certificate is available.
private final class ClosesAtOnce: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelActive(context: ChannelHandlerContext) { context.close(promise: nil) }
}
