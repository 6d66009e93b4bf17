// TLS as a conversion of octets (RFC 3207). NIOSSL works without access to the socket, so calls
// still block with their own deadlines.

import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS

/// The client's side of one TLS session. One thread at a time.
final class TLSLayer {
    private let channel = EmbeddedChannel()
    private let watch = HandshakeWatch()
    private let handler: NIOSSLClientHandler

    /// Whether the handshake is complete, and the server's identity verified.
    var isEstablished: Bool { watch.isDone }

    /// - Parameter host: the name that the certificate must be for, or an IP address.
    init(context: NIOSSLContext, host: String, port: UInt16) throws {
        let address = try? SocketAddress(ipAddress: host, port: Int(port))
        // An IP address is checked against the certificate's addresses; a
        // name is also sent to the server.
        if let address { channel.remoteAddress = address }
        handler = try NIOSSLClientHandler(
            context: context, serverHostname: address == nil ? host : nil)
        try channel.pipeline.syncOperations.addHandlers(handler, watch)
        channel.pipeline.fireChannelActive()
    }

    deinit {
        // With its handler in place, closing would wait for the peer's close_notify, which is not
        // read at this point.
        _ = channel.pipeline.syncOperations.removeHandler(handler)
        channel.embeddedEventLoop.run()
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    /// The octets that must be sent to the server now.
    func outgoing() throws -> [UInt8] {
        var octets: [UInt8] = []
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) {
            octets += buffer.readableBytesView
        }
        return octets
    }

    /// Decrypts octets from the server. Throws if the server or its certificate is not trusted.
    func incoming(_ octets: [UInt8]) throws -> [UInt8] {
        try channel.writeInbound(ByteBuffer(bytes: octets))
        return try read()
    }

    /// Encrypts. `outgoing` returns the result when the handshake is complete.
    func write(_ octets: [UInt8]) throws {
        _ = channel.writeAndFlush(ByteBuffer(bytes: octets))
        try channel.throwIfErrorCaught()
    }

    private func read() throws -> [UInt8] {
        var octets: [UInt8] = []
        while let buffer = try channel.readInbound(as: ByteBuffer.self) {
            octets += buffer.readableBytesView
        }
        return octets
    }
}

/// Observes the end of the handshake.
private final class HandshakeWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    private(set) var isDone = false

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.handshakeCompleted) = event as? TLSUserEvent { isDone = true }
        context.fireUserInboundEventTriggered(event)
    }
}
