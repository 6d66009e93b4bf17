// Who comes in: bearer keys (RFC 6750), scopes, rates.

import HTTPTypes
import Hummingbird
import PosternStore

/// Checks each request against the access that its route asks for.
package struct AccessGate: Sendable {
    let keys: KeyCache
    let limiter: RateLimiter
    let clock: APIClock

    /// Nil for open routes. Throws `Problem`: 401, 403, 429.
    func admit(_ request: Request, to access: RouteAccess, _ context: APIContext) async throws -> Principal? {
        guard access != .open else { return nil }
        let principal = try await authenticate(request)
        context.note.principal = principal
        if let seconds = limiter.take(principal.keyID, now: clock.monotonic()) {
            throw Problem.tooManyRequests("too many requests with this key", retryAfter: seconds)
        }
        var context = context
        context.principal = principal
        switch access {
        case .open: break
        case .team(let scope): _ = try context.team(scope: scope)
        case .operator(let scope): try context.operator(scope: scope)
        case .either(let scope): try context.principal(scope: scope)
        }
        return principal
    }

    private func authenticate(_ request: Request) async throws -> Principal {
        let values = request.headers[values: .authorization]
        guard let value = values.first, values.count == 1 else {
            throw Problem.unauthorized("send one Authorization field: Bearer and an API key")
        }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Problem.unauthorized("send Authorization: Bearer and an API key")
        }
        do throws(KeyCache.Refusal) {
            return try await keys.principal(String(parts[1]), clock: clock)
        } catch {
            switch error {
            case .unknown: throw Problem.unauthorized("this key is unknown or was revoked")
            case .expired: throw Problem.unauthorized("this key has expired")
            }
        }
    }
}

/// The clocks of the API.
package struct APIClock: Sendable {
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64
    /// Seconds on a clock that never goes back, from any beginning.
    package let monotonic: @Sendable () -> Double

    package init(now: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> Double = APIClock.uptime) {
        self.now = now
        self.monotonic = monotonic
    }

    private static let start = ContinuousClock.now

    @Sendable package static func uptime() -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
