// Access control: bearer keys (RFC 6750), scopes, rates.

import Accounts
import HTTPTypes
import Hummingbird

/// The holder of an app's access token; nil for an invalid token.
package typealias TokenHolders = @Sendable (_ token: String) async throws -> Principal?

/// Admits keys that have a scope, each at its rate. Throws `Problem`: 401, 403, 429.
struct AccessGate: RouterMiddleware {
    /// The instruction for a client without a usable Authorization field.
    static let hint = "send Authorization: Bearer and an API key"

    let keys: KeyCache
    let limiter: RateLimiter
    let clock: APIClock
    let scope: Scope
    let proxies: TrustedProxies
    /// Accepts access tokens besides keys; nil if no token gives access.
    var tokens: TokenHolders?

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        let principal: Principal
        do { principal = try await authenticate(request, context) } catch var problem as Problem {
            // OAuth clients evaluate this (RFC 6750 section 3.1).
            if tokens != nil, problem.status == .unauthorized,
                request.headers[.authorization] != nil
            {
                problem.headers[.wwwAuthenticate] =
                    "Bearer realm=\"postern\", error=\"invalid_token\""
            }
            throw problem
        }
        context.note.principal = principal
        if let seconds = limiter.take(principal.keyID, now: clock.monotonic()) {
            throw Problem.tooManyRequests("too many requests with this key", retryAfter: seconds)
        }
        guard principal.scopes.contains(where: { $0.grants(scope) }) else {
            var problem = Problem.forbidden("the key lacks the scope \(scope.rawValue)")
            if tokens != nil {
                problem.headers[.wwwAuthenticate] =
                    "Bearer realm=\"postern\", error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""
            }
            throw problem
        }
        return try await next(request, context)
    }

    private func authenticate(_ request: Request, _ context: APIContext) async throws -> Principal {
        let values = request.headers[values: .authorization]
        guard values.count == 1 else {
            throw Problem.unauthorized("send one Authorization field: Bearer and an API key")
        }
        guard let token = request.bearerToken else { throw Problem.unauthorized(Self.hint) }
        if let tokens, SecretHash.isAccessToken(token) {
            let now = clock.monotonic()
            if let seconds = keys.tokens.wait(
                for: token, from: proxies.networks(of: request, context), now: now)
            {
                throw Problem.tooManyRequests("too many unknown tokens", retryAfter: seconds)
            }
            let holder = try await tokens(token)
            keys.tokens.note(token, isGood: holder != nil, now: now)
            if let holder { return holder }
        }
        do throws(KeyCache.Refusal) {
            return try await keys.principal(token, clock: clock)
        } catch {
            switch error {
            case .unknown: throw Problem.unauthorized("this key is unknown or was revoked")
            case .expired: throw Problem.unauthorized("this key has expired")
            }
        }
    }
}

extension Request {
    /// The text after `Bearer` in the only Authorization field (RFC 6750 section
    /// 2.1); nil for anything else.
    package var bearerToken: String? { credentials(of: "bearer") }

    /// The text after the name of a scheme in the only Authorization field; nil for another scheme.
    package func credentials(of scheme: String) -> String? {
        let values = headers[values: .authorization]
        let parts = (values.first ?? "").split(separator: " ", maxSplits: 1)
        return values.count == 1 && parts.count == 2 && parts[0].lowercased() == scheme
            ? String(parts[1]) : nil
    }
}

/// The clocks of the API.
package struct APIClock: Sendable {
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64
    /// Seconds on a clock that never goes back, from any starting point.
    package let monotonic: @Sendable () -> Double

    package init(
        now: @escaping @Sendable () -> Int64,
        monotonic: @escaping @Sendable () -> Double = APIClock.uptime
    ) {
        self.now = now
        self.monotonic = monotonic
    }

    private static let start = ContinuousClock.now

    @Sendable package static func uptime() -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
