// Around every request: its id, its line in the log, and errors as problem details.

import Hummingbird
import HTTPTypes
import Logging
import MailCrypto
import NIOHTTP1
import PosternStore
import Support

struct EntryMiddleware: RouterMiddleware {
    let clock: APIClock
    let logger: Logger
    let bodyLimit: Int
    let isReachedByHTTPS: Bool
    /// The routes' methods by path, for 405.
    let methods: MethodTable
    /// A page instead of a problem, for anyone who asks with a browser; nil where it is not a page's business.
    let page: @Sendable (Problem, Request, APIContext) -> Response?
    let observe: @Sendable (_ route: String, _ method: String, _ status: Int, _ seconds: Double) -> Void

    /// A year: who was here once is not led to a plain copy of the page afterwards. Of this host alone: what else is under its
    /// name is the operator's business.
    private static let strictTransport = "max-age=31536000"

    static let requestIDName = HTTPField.Name("X-Request-Id")

    func handle(
        _ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        let start = clock.monotonic()
        context.requestID = Self.requestID(request.headers)
        context.bodyLimit = bodyLimit
        context.logger = logger
        context.logger[metadataKey: "request"] = "\(context.requestID)"
        var response: Response
        do {
            response = try await next(request, context)
        } catch let error as HTTPParserError {
            // The connection is broken off: nothing can be answered on it.
            throw error
        } catch {
            let problem = problem(error, request, context)
            // What a route throws it answers in its own way.
            let isUnrouted = (error as? HTTPError)?.status == .notFound
            response = (isUnrouted ? page(problem, request, context) : nil) ?? problem.response(requestID: context.requestID)
        }
        if request.method == .head { response = response.createHeadResponse() }
        if let name = Self.requestIDName { response.headers[name] = context.requestID }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        if let name = HTTPField.Name("X-Content-Type-Options") { response.headers[name] = "nosniff" }
        if isReachedByHTTPS, let name = HTTPField.Name("Strict-Transport-Security") {
            response.headers[name] = Self.strictTransport
        }
        let seconds = clock.monotonic() - start
        note(request, context, response.status.code, seconds)
        return response
    }

    private func problem(_ error: any Error, _ request: Request, _ context: APIContext) -> Problem {
        if let error = error as? HTTPError, error.status == .notFound, let allowed = methods.allowed(request.uri.path) {
            return Problem(
                .methodNotAllowed, "method-not-allowed", "The method is not allowed here", detail: "allowed: \(allowed)",
                headers: [.allow: allowed])
        }
        let problem = Problem(error)
        if problem.status.code >= 500 {
            // Names kinds, and texts of our own errors only: others may hold what someone sent.
            context.logger.error("request failed", metadata: ["error": "\(Self.shown(error))"])
        }
        return problem
    }

    private func note(_ request: Request, _ context: APIContext, _ status: Int, _ seconds: Double) {
        // The pattern, never the path as it came, nor the query: those may hold anything.
        let route = context.endpointPath.flatMap { $0 == "NotFound" ? nil : $0 } ?? "(none)"
        let method = MethodTable.known.contains(request.method.rawValue) ? request.method.rawValue : "(other)"
        observe(route, method, status, seconds)
        var metadata: Logger.Metadata = [
            "method": "\(method)", "route": "\(route)", "status": "\(status)", "ms": "\((seconds * 10_000).rounded() / 10)",
        ]
        if let principal = context.note.principal {
            metadata["key"] = "\(principal.keyID)"
            if case .team(let id, _, _, _) = principal { metadata["team"] = "\(id)" }
        }
        context.logger.info("request", metadata: metadata)
    }

    /// The client's id where it is harmless (1–64 letters, digits, `.`, `_`, `-`), else one of ours.
    static func requestID(_ headers: HTTPFields) -> String {
        if let name = requestIDName, let given = headers[name], (1...64).contains(given.utf8.count),
            given.utf8.allSatisfy({
                ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x41 && $0 <= 0x5A) || ($0 >= 0x61 && $0 <= 0x7A)
                    || [0x2D, 0x2E, 0x5F].contains($0)
            })
        {
            return given
        }
        var generator = SystemRandomNumberGenerator()
        return Base32.characters(fromRandom: (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    private static func shown(_ error: any Error) -> String {
        switch error {
        case is TemporaryStoreError, is PermanentStoreError: "\(error)"
        default: "\(type(of: error))"
        }
    }
}

/// Which methods a path has.
struct MethodTable: Sendable {
    static let known: Set<String> = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    private let patterns: [(parts: [Substring], methods: Set<String>)]

    init(_ entries: [RouteEntry]) {
        var byPath: [String: Set<String>] = [:]
        for entry in entries {
            byPath[entry.path, default: []].insert(entry.method.rawValue)
            if entry.method == .get { byPath[entry.path, default: []].insert("HEAD") }
        }
        patterns = byPath.sorted { $0.key < $1.key }.map { ($0.key.split(separator: "/"), $0.value) }
    }

    /// As in the Allow field; nil where there is no such path.
    func allowed(_ path: String) -> String? {
        let parts = path.split(separator: "/")
        let found = patterns.filter { pattern in
            pattern.parts.count == parts.count && zip(pattern.parts, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
        let methods = found.reduce(into: Set<String>()) { $0.formUnion($1.methods) }
        return methods.isEmpty ? nil : methods.sorted().joined(separator: ", ")
    }
}
