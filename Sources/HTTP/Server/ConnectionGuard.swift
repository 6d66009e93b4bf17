// The timeouts of one connection: how long a request may take to arrive, and a
// response to be received.

import NIOCore
import NIOHTTP1
import NIOTLS

/// The time limits of a client.
package struct ConnectionTimeouts: Sendable {
    /// For the TLS handshake; the connection is closed after it.
    package var handshake: TimeAmount = .seconds(10)
    /// From the end of the handshake, or from the start without TLS, to the first octet: a client
    /// connects in order to send a request. Then closed without a response.
    package var first: TimeAmount = .seconds(10)
    /// For silence between requests. Then closed without a response.
    package var idle: TimeAmount = .seconds(75)
    /// From the first octet of a request to the end of its header section. Then 408.
    package var head: TimeAmount = .seconds(10)
    /// From the end of the header section to the end of the body. Then 408.
    package var body: TimeAmount = .seconds(30)
    /// From the end of the request until the client received its response. Then closed.
    package var response: TimeAmount = .seconds(60)
    /// After a response that was sent before the end of a request: how long the rest is still read
    /// and discarded.
    package var linger: TimeAmount = .seconds(2)

    package init() {}
}

/// Reports octets as they arrive, before they form a request.
final class OctetWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    private let connection: ConnectionGuard
    /// The last octets that arrived, four at most.
    private var tail: [UInt8] = []

    init(_ connection: ConnectionGuard) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let octets = unwrapInboundIn(data).readableBytesView
        tail = Array((tail + octets.suffix(4)).suffix(4))
        // Readers of requests skip empty lines before one (RFC 9112 section 2.2).
        let isBlank = octets.allSatisfy { $0 == 0x0D || $0 == 0x0A }
        connection.octetsArrived(
            isBlank: isBlank,
            endsHead: tail.suffix(2) == [0x0A, 0x0A] || tail == [0x0D, 0x0A, 0x0D, 0x0A])
        context.fireChannelRead(data)
    }
}

/// Placed right after the HTTP decoder. Ends connections that take too long, answers input that is
/// not HTTP, and closes when nothing more can follow.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// A request was abandoned: its body did not arrive in time, and 408 was sent.
    struct GivenUp: Error {}
    /// Sent by the route before it reads the body.
    struct BodyWanted: Sendable {}

    private let timeouts: ConnectionTimeouts
    /// The problem for a status, as JSON.
    private let problem: @Sendable (HTTPResponseStatus) -> ByteBuffer
    /// Called for each phase that the connection may have entered; the phase may be the same as
    /// before.
    private let enter: @Sendable (OpenConnections.Phase) -> Void
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    /// The TLS handshake is not complete.
    private var isShakingHands: Bool
    /// Octets have arrived.
    private var hasSpoken = false
    /// Between the end of the header section and the end of a request.
    private var isReading = false
    /// The client waits for permission before it sends the body (RFC 9110 section 10.1.1).
    private var isAskedToContinue = false
    /// A header section has begun, but not ended.
    private var hasHeadBegun = false
    /// The last octet that arrived may be the end of a header section.
    private var endsHead = false
    /// The request that is being read has a body.
    private var hasBody = false
    /// Requests whose header section was read and whose response was not written.
    private var unanswered = 0
    /// A response's header section was written, but not its end.
    private var isAnswering = false
    /// Responses that were begun but not sent to the end: the client does not receive them, or has
    /// not yet.
    private var unfetched = 0
    /// The connection ends with the response that is being written.
    private var closesAfterAnswer = false
    /// Nothing more is read or written.
    private var isOver = false

    /// - Parameter isEncrypted: whether TLS comes first.
    init(
        timeouts: ConnectionTimeouts, isEncrypted: Bool,
        enter: @escaping @Sendable (OpenConnections.Phase) -> Void,
        problem: @escaping @Sendable (HTTPResponseStatus) -> ByteBuffer
    ) {
        self.timeouts = timeouts
        self.enter = enter
        isShakingHands = isEncrypted
        self.problem = problem
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { watch() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        watch()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        isOver = true
        timer?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.handshakeCompleted) = event as? TLSUserEvent {
            isShakingHands = false
            if !hasSpoken { watch() }
        }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Input

    /// - Parameters:
    ///   - isBlank: whether all of the octets are line breaks.
    ///   - endsHead: whether a header section may end with the last of them.
    func octetsArrived(isBlank: Bool, endsHead: Bool) {
        hasSpoken = true
        self.endsHead = endsHead
        guard !isReading, !hasHeadBegun, !isOver, !isBlank || unanswered == 0 else { return }
        hasHeadBegun = true
        // While an earlier request is unanswered, the time limit starts only with its response.
        if unanswered == 0 { watch() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver, !closesAfterAnswer || isReading else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard Self.hasHost(head), !Self.isFramedFalsely(head) else {
                return giveUp(.badRequest)
            }
            let expectations = head.version == .http1_1 ? head.headers["Expect"] : []
            guard expectations.allSatisfy({ $0.lowercased() == "100-continue" }) else {
                return giveUp(.expectationFailed)
            }
            isAskedToContinue = !expectations.isEmpty
            hasHeadBegun = false
            isReading = true
            hasBody = false
            unanswered += 1
            if !head.isKeepAlive { closesAfterAnswer = true }
        case .body:
            isAskedToContinue = false
            hasBody = true
        case .end:
            isAskedToContinue = false
            isReading = false
            // Octets after the end of this request are the beginning of the next.
            if !hasBody, !endsHead { hasHeadBegun = true }
        }
        if !isReading || timer == nil { watch() }
        if case .head = unwrapInboundIn(data) { watch() }
        context.fireChannelRead(data)
    }

    /// One Host field with the characters that a host may have (RFC 9112 section 3.2, RFC 3986
    /// section 3.2.2); it may be missing before HTTP/1.1.
    private static func hasHost(_ head: HTTPRequestHead) -> Bool {
        let hosts = head.headers["Host"]
        guard let host = hosts.first else {
            return head.version == .http1_0 || head.version == .http0_9
        }
        return hosts.count == 1
            && host.utf8.allSatisfy { octet in
                (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5A)
                    || (octet >= 0x61 && octet <= 0x7A)
                    || "-._~!$&'()*+;=%[]:".utf8.contains(octet)
            }
    }

    /// HTTP/1.0 has no transfer codings: another program on the way may have seen a different end
    /// of the message (RFC 9112 section 6.1).
    private static func isFramedFalsely(_ head: HTTPRequestHead) -> Bool {
        (head.version.major, head.version.minor) < (1, 1)
            && head.headers.contains(name: "Transfer-Encoding")
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isOver else { return }
        if let error = error as? HTTPParserError {
            giveUp(error == .headerOverflow ? .requestHeaderFieldsTooLarge : .badRequest)
        } else {
            isOver = true
            context.close(promise: nil)
        }
        context.fireErrorCaught(error)
    }

    // MARK: Output

    func triggerUserOutboundEvent(
        context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
    ) {
        guard event is BodyWanted else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        promise?.succeed()
        // Responses go out in the order of requests. While an earlier request waits for its
        // response, this event belongs to that request.
        guard isAskedToContinue, unanswered == 1, !isAnswering, !isOver else { return }
        isAskedToContinue = false
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))),
            promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isOver else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head):
            isAnswering = true
            unfetched += 1
            enter(phase)
            // The connection does not wait for data that has not arrived yet.
            if isReading { closesAfterAnswer = true }
            if closesAfterAnswer { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            isAnswering = false
            unanswered -= 1
            let written = promise ?? context.eventLoop.makePromise(of: Void.self)
            let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
            written.futureResult.whenComplete { _ in loopBound.value.answered() }
            context.write(data, promise: written)
        default: context.write(data, promise: promise)
        }
    }

    private func answered() {
        unfetched -= 1
        guard !isOver, let context else { return }
        guard closesAfterAnswer, unanswered == 0 else { return watch() }
        if isReading {
            // The client must receive the response while it still writes: a reset would destroy the
            // response.
            isOver = true
            context.close(mode: .output, promise: nil)
            schedule(timeouts.linger) { $0.context?.close(promise: nil) }
        } else {
            isOver = true
            context.close(promise: nil)
        }
    }

    // MARK: Timeouts

    private var phase: OpenConnections.Phase {
        if isReading { return .arriving }
        if unfetched > 0 { return .fetching }
        if unanswered > 0 { return .working }
        return hasHeadBegun || !hasSpoken ? .arriving : .idle
    }

    /// Starts the timer of the connection's phase.
    private func watch() {
        enter(phase)
        if isReading {
            schedule(timeouts.body) { $0.expire(.requestTimeout) }
        } else if unanswered > 0 {
            schedule(timeouts.response) { $0.expire(nil) }
        } else if hasHeadBegun {
            schedule(timeouts.head) { $0.expire(.requestTimeout) }
        } else if !hasSpoken {
            schedule(isShakingHands ? timeouts.handshake : timeouts.first) { $0.expire(nil) }
        } else {
            schedule(timeouts.idle) { $0.expire(nil) }
        }
    }

    private func schedule(
        _ time: TimeAmount, _ action: @escaping @Sendable (ConnectionGuard) -> Void
    ) {
        timer?.cancel()
        guard let context else { return }
        let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: time) { action(loopBound.value) }
    }

    private func expire(_ status: HTTPResponseStatus?) {
        guard !isOver, let context else { return }
        guard let status else {
            isOver = true
            return context.close(promise: nil)
        }
        let wasReading = isReading
        giveUp(status)
        // Tells the reader of the body that it will not be complete.
        if wasReading { context.fireErrorCaught(GivenUp()) }
    }

    /// Responds with a problem if that is still possible, and closes.
    private func giveUp(_ status: HTTPResponseStatus) {
        guard !isOver, let context else { return }
        isOver = true
        // The route may already be answering a request whose header section was read.
        guard !isAnswering, unanswered <= (isReading ? 1 : 0) else {
            return context.close(promise: nil)
        }
        let body = problem(status)
        var head = HTTPResponseHead(version: .http1_1, status: status)
        head.headers.add(name: "Content-Type", value: "application/problem+json")
        head.headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        head.headers.add(name: "Cache-Control", value: "no-store")
        head.headers.add(name: "Connection", value: "close")
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let promise = context.eventLoop.makePromise(of: Void.self)
        let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
        promise.futureResult.whenComplete { _ in
            guard let context = loopBound.value.context else { return }
            context.close(mode: .output, promise: nil)
            loopBound.value.schedule(loopBound.value.timeouts.linger) {
                $0.context?.close(promise: nil)
            }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
    }
}
