// What a sandbox offers beside /v1/decisions: test tokens and a clock that can be set forward.

import Decisions
import HTTP
import HTTPTypes
import Hummingbird
import MailCrypto
import Support
import Synchronization

/// The clock of a sandbox: the machine's, and what was added to it.
final class SandboxClock: Sendable {
    private let base: @Sendable () -> Int64
    private let offset = Mutex<Int64>(0)
    /// Ten years: enough for every rule, and far from the end of time.
    static let most: Int64 = 3_650 * 86_400

    init(_ base: @escaping @Sendable () -> Int64) { self.base = base }

    var now: Int64 { base() + offset.withLock { $0 } }

    /// Goes forward by so many seconds; false beyond what a sandbox allows.
    func advance(_ seconds: Int64) -> Bool {
        offset.withLock { offset in
            guard seconds >= 0, seconds <= Self.most - offset else { return false }
            offset += seconds
            return true
        }
    }
}

/// `/sandbox/token` and `/sandbox/clock`. Open: the sandbox listens on loopback only.
struct SandboxRoutes: RouteModule {
    let issuer: SandboxIssuer
    let clock: SandboxClock
    let clientID: String

    private struct TokenRequest: Decodable {
        let sub: String?
        let clientId: String?
        let nonce: String?
        let realUserStatus: Int?
        let nonceSupported: Bool?
        let email: String?
        let lifetime: Int?
        let age: Int?
    }

    private struct TokenResponse: Encodable {
        let identityToken: String
        let nonce: String?
        let sub: String
    }

    private struct ClockRequest: Decodable { let advance: Int }
    private struct ClockResponse: Encodable { let now: Timestamp }

    func addRoutes(to routes: Routes) {
        routes.open.post("/sandbox/token") { request, context -> Response in
            let wanted = try await request.decode(TokenRequest.self, context)
            let sub = try wanted.sub ?? "user-" + Base32.characters(fromRandom: SecureRandom.bytes(count: 8))
            guard (1...255).contains(sub.utf8.count) else { throw Problem.invalid("must be 1 to 255 octets", at: "/sub") }
            // A nonce is made unless there is to be none: an empty text.
            let made = try wanted.nonce ?? Base32.characters(fromRandom: SecureRandom.bytes(count: 16))
            let nonce = made.isEmpty ? nil : made
            let (lifetime, age) = (wanted.lifetime ?? 600, wanted.age ?? 0)
            guard (-86_400...864_000).contains(lifetime), (-86_400...864_000).contains(age) else {
                throw Problem.invalid("lifetime and age must be at most ten days, in seconds")
            }
            let token = try issuer.mint(
                SandboxToken(
                    subject: sub, audience: wanted.clientId ?? clientID, nonceClaim: nonce,
                    realUserStatus: wanted.realUserStatus.map(Int64.init), nonceSupported: wanted.nonceSupported,
                    email: wanted.email, lifetime: Int64(lifetime), issuedAt: clock.now - Int64(age)), now: clock.now)
            return try .json(TokenResponse(identityToken: token, nonce: nonce, sub: sub))
        }
        routes.open.post("/sandbox/clock") { request, context -> Response in
            let wanted = try await request.decode(ClockRequest.self, context)
            guard clock.advance(Int64(wanted.advance)) else {
                throw Problem.invalid("the clock only goes forward, by at most ten years in total", at: "/advance")
            }
            return try .json(ClockResponse(now: Timestamp(clock.now)))
        }
    }
}
