// Routes that check credentials themselves: the rate of a client's refused requests is limited.

import HTTPTypes
import Hummingbird

/// Counts refused requests by the client's network, and answers 429 beyond a rate. Requests that
/// succeed are not counted: a team's backend sends those of all its users.
struct FailureLimit: RouterMiddleware {
    /// As for unknown keys and tokens.
    private static let perSecond = 20.0
    private static let burst = 100.0

    private let limiter = RateLimiter(perSecond: FailureLimit.perSecond, burst: FailureLimit.burst)
    let clock: APIClock
    let proxies: TrustedProxies

    init(clock: APIClock, proxies: TrustedProxies) { (self.clock, self.proxies) = (clock, proxies) }

    func handle(
        _ request: Request, context: APIContext,
        next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        let networks = proxies.networks(of: request, context)
        if let seconds = limiter.wait(networks, now: clock.monotonic()) {
            throw Problem.tooManyRequests("too many refused requests", retryAfter: seconds)
        }
        let response = try await next(request, context)
        if [400, 401].contains(response.status.code) {
            _ = limiter.take(networks, now: clock.monotonic())
        }
        return response
    }
}
