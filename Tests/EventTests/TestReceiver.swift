// A receiver of events on loopback: HTTPS with a certificate for hooks.example, and the behaviour
// that a test sets.

import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SignIn
import Support
import Synchronization

/// An event that arrived.
struct ReceivedEvent: Sendable, Hashable {
    let jti: String
    let audience: String
    let type: String
    let sub: String
    let email: String?
    let decision: String?
    /// The object in `events`.
    let content: JSONObject
    let eventTime: Int64
    let issuedAt: Int64
}

/// A server that answers POST requests by a rule, and keeps the accepted events.
final class TestReceiver: Sendable {
    enum Behaviour: Sendable {
        case status(Int, [String: String] = [:])
        /// Never answers.
        case hang
        /// Ends the connection without a response.
        case close
        /// 200, and then an endless body.
        case flood
    }

    /// The behaviour for an event and the number of earlier requests.
    typealias Rule = @Sendable (ReceivedEvent, Int) -> Behaviour

    private struct State {
        var rule: Rule = { _, _ in .status(200) }
        var requests: [ReceivedEvent] = []
        var taken: [ReceivedEvent] = []
        var payloads: [String] = []
        var logouts: [String] = []
        /// Nil for no response.
        var logoutStatus: Int? = 200
    }

    private let state = Mutex(State())
    private let channel: any Channel
    let port: Int

    /// The path of a test certificate.
    static func certificate(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "Certificates/\(name)"
        ).path
    }

    init(isSecure: Bool = true, port: Int = 0) async throws {
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: NIOSSLCertificate.fromPEMFile(Self.certificate("receiver.pem"))
                    .map { .certificate($0) },
                privateKey: .privateKey(
                    NIOSSLPrivateKey(file: Self.certificate("receiver-key.pem"), format: .pem))))
        let box = Box()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if isSecure {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(box))
                }
            }.bind(host: "127.0.0.1", port: port).get()
        self.port = channel.localAddress?.port ?? 0
        box.receiver.withLock { $0 = self }
    }

    func stop() async { try? await channel.close() }

    /// Sets the rule for later requests.
    func rule(_ rule: @escaping Rule) { state.withLock { $0.rule = rule } }

    /// Every request, in the order of arrival.
    var requests: [ReceivedEvent] { state.withLock { $0.requests } }
    /// Events with a response of 200 … 299, repetitions included.
    var taken: [ReceivedEvent] { state.withLock { $0.taken } }
    /// JWS texts as received.
    var payloads: [String] { state.withLock { $0.payloads } }

    /// Logout tokens as received.
    var logouts: [String] { state.withLock { $0.logouts } }

    /// Sets the response to later logout tokens.
    func answerLogouts(_ status: Int?) { state.withLock { $0.logoutStatus = status } }

    fileprivate func answer(form body: [UInt8]) -> Behaviour {
        let text = String(decoding: body, as: UTF8.self)
        guard text.hasPrefix("logout_token=") else { return .status(400) }
        return state.withLock { state in
            state.logouts.append(String(text.dropFirst("logout_token=".utf8.count)))
            return state.logoutStatus.map { .status($0) } ?? .hang
        }
    }

    fileprivate func answer(_ body: [UInt8]) -> Behaviour {
        guard let (event, text) = try? Self.read(body) else { return .status(400) }
        let (rule, count) = state.withLock { state in
            state.payloads.append(text)
            state.requests.append(event)
            return (state.rule, state.requests.count - 1)
        }
        let behaviour = rule(event, count)
        if case .status(200..<300, _) = behaviour { state.withLock { $0.taken.append(event) } }
        if case .flood = behaviour { state.withLock { $0.taken.append(event) } }
        return behaviour
    }

    private static func read(_ body: [UInt8]) throws -> (ReceivedEvent, String) {
        let token = try IncomingEvent.payload(of: body)
        let claims = try StrictJSON.parseObject(token.payload, limit: 65_536)
        let event = try StrictJSON.parseObject(
            Array((claims["events"]?.string ?? "").utf8), limit: 65_536)
        let text = try StrictJSON.parseObject(body, limit: 65_536)["payload"]?.string ?? ""
        return (
            ReceivedEvent(
                jti: claims["jti"]?.string ?? "", audience: claims["aud"]?.string ?? "",
                type: event["type"]?.string ?? "",
                sub: event["sub"]?.string ?? "", email: event["email"]?.string,
                decision: event["decision_id"]?.string, content: event,
                eventTime: event["event_time"]?.number?.integer ?? 0,
                issuedAt: claims["iat"]?.number?.integer ?? 0), text
        )
    }

    private final class Box: Sendable {
        let receiver = Mutex<TestReceiver?>(nil)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let box: Box
        private var body: [UInt8] = []
        private var isPost = false
        private var isForm = false

        init(_ box: Box) { self.box = box }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                body = []
                isPost = head.method == .POST
                isForm =
                    head.headers.first(name: "Content-Type") == "application/x-www-form-urlencoded"
            case .body(let buffer): body += Array(buffer.readableBytesView)
            case .end:
                let receiver = box.receiver.withLock { $0 }
                let behaviour = isForm ? receiver?.answer(form: body) : receiver?.answer(body)
                switch isPost ? behaviour ?? .close : .status(405) {
                case .hang: break
                case .close: context.close(promise: nil)
                case .status(let code, let fields):
                    var headers = HTTPHeaders(fields.map { ($0.key, $0.value) })
                    headers.add(name: "Content-Length", value: "0")
                    let head = HTTPResponseHead(
                        version: .http1_1, status: .init(statusCode: code), headers: headers)
                    context.write(wrapOutboundOut(.head(head)), promise: nil)
                    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
                case .flood:
                    let head = HTTPResponseHead(
                        version: .http1_1, status: .ok, headers: ["Transfer-Encoding": "chunked"])
                    context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
                    flood(context)
                }
            }
        }

        private func flood(_ context: ChannelHandlerContext) {
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            let loop = NIOLoopBound(context, eventLoop: context.eventLoop)
            let chunk = ByteBuffer(repeating: UInt8(ascii: "x"), count: 65_536)
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(chunk)))).whenSuccess {
                bound.value.flood(loop.value)
            }
        }
    }
}
