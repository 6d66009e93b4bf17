// Wraps every request of a sandbox: the ordered failures, and the journal.

import Accounts
import Events
import HTTP
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle
import Support

struct SandboxGate: RouterMiddleware {
    let failures: SandboxFailures
    let journal: SandboxJournal
    let now: @Sendable () -> Int64
    /// Called for each refusal.
    let refused: @Sendable (SandboxJournal.Entry) -> Void

    /// Octets of a response that are read for its error.
    private static let maximumError = 65_536
    /// Orders and pages of the sandbox itself never fail, and are not in the journal.
    private static let quiet = ["/sandbox", "/healthz", "/readyz", "/metrics"]

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        let path = request.uri.path
        guard Self.isOfThisMachine(request.head.authority) else {
            return Problem.invalid("the sandbox answers only at 127.0.0.1 and localhost").response(
                requestID: context.requestID)
        }
        if path.utf8.starts(with: "/sandbox".utf8), request.method != .get,
            let origin = request.headers[.origin],
            !Self.isOfThisMachine(origin.split(separator: "/").last.map(String.init))
        {
            return Problem(
                .forbidden, "forbidden", "A page of another site cannot change the sandbox"
            )
            .response(requestID: context.requestID)
        }
        guard !Self.quiet.contains(where: { path.utf8.starts(with: $0.utf8) }) else {
            return try await next(request, context)
        }
        let order = failures.take(path: path)
        // The journal shows the request while it hangs.
        if let order, order.failure == .timeout || order.failure == .lostAnswer {
            note(request, path, order.failure.status ?? 504, error: nil, cause: order.words)
        }
        var response: Response
        switch order?.failure {
        case .status500, .status503: response = Self.failure(order)
        case .timeout:
            await Self.wait(order)
            response = Self.failure(order)
        case .lostAnswer:
            _ = try await next(request, context)
            await Self.wait(order)
            response = Self.failure(order)
        case .slow:
            await Self.wait(order)
            response = try await next(request, context)
        case nil: response = try await next(request, context)
        }
        if order?.failure != .timeout, order?.failure != .lostAnswer {
            let (error, cause) = await Self.read(&response)
            note(request, path, response.status.code, error: error, cause: order?.words ?? cause)
        }
        return response
    }

    /// Another site's name could lead to this machine, and pages of that site could then read this
    /// sandbox.
    /// - Parameter authority: a host, with or without a port.
    private static func isOfThisMachine(_ authority: String?) -> Bool {
        guard let authority else { return false }
        return ["127.0.0.1", "localhost", "[::1]"].contains { host in
            let rest = authority.utf8.dropFirst(host.utf8.count)
            return authority.utf8.starts(with: host.utf8)
                && (rest.isEmpty
                    || rest.first == UInt8(ascii: ":")
                        && rest.dropFirst().allSatisfy(\.isASCIIDigit))
        }
    }

    private func note(
        _ request: Request, _ path: String, _ status: Int, error: String?, cause: String?
    ) {
        let entry = journal.note(
            at: now(), request.method.rawValue.withoutControls(limit: 20),
            path.withoutControls(limit: 200), status: status,
            error: error, cause: cause)
        if entry.isRefusal { refused(entry) }
    }

    /// Ends early if the sandbox ends.
    private static func wait(_ order: SandboxFailures.Order?) async {
        let seconds = order?.seconds ?? 0
        try? await cancelWhenGracefulShutdown { try await Task.sleep(for: .seconds(seconds)) }
    }

    private static func failure(_ order: SandboxFailures.Order?) -> Response {
        let problem: Problem =
            switch order?.failure {
            case .status500: .fault()
            case .timeout, .lostAnswer:
                Problem(.gatewayTimeout, "timeout", "No answer came in time", detail: "as ordered")
            case .status503, .slow, nil: .unavailable()
            }
        return problem.response(requestID: nil)
    }

    /// The content of an error response: the problem's name, or OAuth's error; and the details. The
    /// response keeps its body.
    private static func read(_ response: inout Response) async -> (error: String?, cause: String?) {
        let media = response.headers[.contentType] ?? ""
        guard response.status.code >= 400, let length = response.body.contentLength,
            length <= maximumError,
            media.contains("json") || media.contains("html")
        else { return (nil, nil) }
        let collected = Collected()
        guard (try? await response.body.write(CollectingWriter(collected))) != nil else {
            return (nil, nil)
        }
        response.body = .init(byteBuffer: collected.buffer)
        guard media.contains("json") else {
            return (nil, Self.cause(ofPage: String(buffer: collected.buffer)))
        }
        guard
            let object = try? StrictJSON.parseObject(
                Array(collected.buffer.readableBytesView), limit: maximumError)
        else {
            return (nil, nil)
        }
        let type = object["type"]?.string.map {
            String(
                decoding: Array($0.utf8).split(separator: UInt8(ascii: ":")).last ?? [],
                as: UTF8.self)
        }
        // Only the list of errors names the invalid member of the body.
        let member = object["errors"]?.array?.first?.object
        let named = member.flatMap { member in
            member["detail"]?.string.map { "\(member["pointer"]?.string ?? "") \($0)" }
        }
        let cause =
            named ?? object["detail"]?.string ?? object["error_description"]?.string
            ?? object["title"]?.string
        return (object["error"]?.string ?? type, cause?.withoutControls(limit: 600))
    }

    /// The reason on a page that refuses: next to the field, or as its heading.
    private static func cause(ofPage html: String) -> String? {
        let found =
            html.firstMatch(of: /role="alert"[^>]*>([^<]+)</)
            ?? html.firstMatch(of: /<h1[^>]*>([^<]+)</)
        return found.map { Self.unescaped(String($0.output.1)).withoutControls(limit: 600) }
    }

    /// The text of one of our own pages.
    private static func unescaped(_ html: String) -> String {
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")].reduce(
            html
        ) { text, pair in
            text.replacing(pair.0, with: pair.1)
        }
    }

    /// For one response, by one task.
    private final class Collected: @unchecked Sendable { var buffer = ByteBuffer() }

    private struct CollectingWriter: ResponseBodyWriter {
        let collected: Collected

        init(_ collected: Collected) { self.collected = collected }

        mutating func write(_ buffer: ByteBuffer) async throws {
            collected.buffer.writeImmutableBuffer(buffer)
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}

extension SandboxFailures.Order {
    /// For the journal.
    fileprivate var words: String {
        "as ordered: \(failure.rawValue)" + (failure.waits ? ", \(seconds) s" : "")
    }
}

extension SandboxFailure {
    /// Whether it lasts for some seconds.
    var waits: Bool { self == .slow || self == .timeout || self == .lostAnswer }
}

/// Posts events, unless a failure of deliveries is ordered.
struct SandboxPoster: EventPosting {
    let base: any EventPosting
    let failures: SandboxFailures

    func post(
        _ message: EventMessage, to url: EndpointURL, at addresses: EndpointAddresses
    ) async -> PostOutcome {
        guard let order = failures.take(.deliveries) else {
            return await base.post(message, to: url, at: addresses)
        }
        if order.failure.waits { try? await Task.sleep(for: .seconds(order.seconds)) }
        guard let status = order.failure.status else {
            return await base.post(message, to: url, at: addresses)
        }
        return .failed(
            reason: order.failure == .timeout
                ? "no complete response in time" : "the response has status \(status)",
            isEndpoints: true, retryAfter: nil)
    }
}
