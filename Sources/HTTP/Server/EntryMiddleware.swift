// Wraps every request: its id, its line in the log, and errors as problem details.

import Database
import HTTPTypes
import Hummingbird
import Logging
import MailCrypto
import NIOHTTP1
import Support

struct EntryMiddleware: RouterMiddleware {
    let clock: APIClock
    let logger: Logger
    let bodyLimit: Int
    let isReachedByHTTPS: Bool
    /// For 405; complete before the first request.
    let table: RouteTable
    /// A page instead of a problem, for browsers; nil if no page applies. The Bool says whether no
    /// route was found.
    let page: @Sendable (Problem, Bool, Request, APIContext) -> Response?
    let observe: RequestObserver

    /// Methods that are logged and counted by name.
    private static let knownMethods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
    ]
    /// A year: a browser that was here before cannot be sent to an unencrypted copy of the page.
    /// This covers only this host; the operator decides for its subdomains.
    private static let strictTransport = "max-age=31536000"

    static let requestIDName = HTTPField.Name("X-Request-Id")

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        let start = clock.monotonic()
        context.requestID = Self.requestID(request.headers)
        context.maxUploadSize = bodyLimit
        context.logger = logger
        context.logger[metadataKey: "request"] = "\(context.requestID)"
        var response: Response
        do {
            response = try await next(request, context)
        } catch let error as HTTPParserError {
            // The connection is broken: no response is possible.
            throw error
        } catch {
            let problem = problem(error, request, context)
            let isUnrouted = (error as? HTTPError)?.status == .notFound
            response =
                page(problem, isUnrouted, request, context)
                ?? problem.response(requestID: context.requestID)
        }
        if request.method == .head { response = response.createHeadResponse() }
        if let name = Self.requestIDName { response.headers[name] = context.requestID }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        if let name = HTTPField.Name("X-Content-Type-Options") {
            response.headers[name] = "nosniff"
        }
        if isReachedByHTTPS, let name = HTTPField.Name("Strict-Transport-Security") {
            response.headers[name] = Self.strictTransport
        }
        let seconds = clock.monotonic() - start
        note(request, context, response.status.code, seconds)
        return response
    }

    private func problem(_ error: any Error, _ request: Request, _ context: APIContext) -> Problem {
        if let error = error as? HTTPError, error.status == .notFound,
            let allowed = table.allowed(request.uri.path)
        {
            return Problem(
                .methodNotAllowed, "method-not-allowed", "The method is not allowed here",
                detail: "allowed: \(allowed)",
                headers: [.allow: allowed])
        }
        let problem = Problem(error)
        if problem.status.code >= 500 { context.logger.requestFailed(error) }
        return problem
    }

    private func note(_ request: Request, _ context: APIContext, _ status: Int, _ seconds: Double) {
        // The pattern, never the path as received nor the query: those may hold anything.
        let route = context.endpointPath.flatMap { $0 == "NotFound" ? nil : $0 } ?? "(none)"
        let method =
            Self.knownMethods.contains(request.method.rawValue)
            ? request.method.rawValue : "(other)"
        observe(route, method, status, seconds)
        var metadata: Logger.Metadata = [
            "method": "\(method)", "route": "\(route)", "status": "\(status)",
            "ms": "\((seconds * 10_000).rounded() / 10)",
        ]
        if let principal = context.note.principal {
            metadata["key"] = "\(principal.keyID)"
            if let team = principal.team { metadata["team"] = "\(team.id)" }
        }
        // Monitoring sends requests several times a minute, so only failures are logged at the
        // normal level.
        let isRoutine = status < 400 && Self.monitored.contains { $0.hasSameOctets(as: route) }
        context.logger.log(level: isRoutine ? .debug : .info, "request", metadata: metadata)
    }

    private static let monitored = ["/metrics", "/healthz", "/readyz"]

    /// The client's id if it is harmless (1–64 letters, digits, `.`, `_`,
    /// `-`), otherwise a new one.
    static func requestID(_ headers: HTTPFields) -> String {
        if let name = requestIDName, let given = headers[name], (1...64).contains(given.utf8.count),
            given.utf8.allSatisfy({
                ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x41 && $0 <= 0x5A)
                    || ($0 >= 0x61 && $0 <= 0x7A)
                    || [0x2D, 0x2E, 0x5F].contains($0)
            })
        {
            return given
        }
        // Two system calls, instead of one for each octet.
        let random = [UInt64.random(in: .min ... .max), .random(in: .min ... .max)]
        return Base32.characters(
            fromRandom: random.flatMap { half in
                (0..<8).map { UInt8(truncatingIfNeeded: half >> (8 * $0)) }
            })
    }
}

extension Logger {
    /// Logs errors that became 500 or 503: their kinds, and the texts of the service's own errors
    /// only. Texts of other errors may contain client data.
    package func requestFailed(_ error: any Error) {
        let failure = error as? StoreFailure
        let shown = failure?.isRefusal == false ? "\(error)" : "\(type(of: error))"
        self.error("request failed", metadata: ["error": "\(shown)"])
    }
}
