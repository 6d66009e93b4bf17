// Between /auth/authorize and the response: the request on its way through the sign-in page, and the response on its way to the
// browser.

import Accounts
import Database
import MailCrypto
import Support

/// A checked request that a sign-in page is handling.
package struct PendingAuthorization: Sendable, Codable {
    /// Seconds for which a page may handle it: enough for a user who waits for a mail or looks for a key.
    package static let lifetime: Int64 = 3_600
    /// Seconds by which the clock of the host that opens it may be behind that of the host that sealed it.
    static let leeway: Int64 = 60

    package let request: AuthenticationRequest
    /// The `sub` of a valid `id_token_hint`.
    package let subjectHint: String?
    /// Keyed hash of the cookie of the browser that made the request.
    let browser: [UInt8]
    /// Seconds since 1970.
    package let createdAt: Int64

    /// Whether the page must report when the user signed in, so that an old sign-in does not pass for a new one.
    package var needsAuthenticationTime: Bool { request.prompts.contains(.login) || request.maximumAge != nil }

    /// Whether a sign-in is recent enough: after the request (`prompt=login`), or at most `max_age` seconds before it.
    /// - Parameter time: when the user signed in, seconds since 1970.
    package func accepts(authenticatedAt time: Int64) -> Bool {
        if request.prompts.contains(.login), time < createdAt { return false }
        return request.maximumAge.map { time >= createdAt - $0 } ?? true
    }

    /// Whether a sign-in is later than the request.
    /// - Parameter time: when the user signed in, seconds since 1970.
    package func isFollowed(by time: Int64) -> Bool { time > createdAt }
}

/// Seals requests for the page, so that nothing is stored before a sign-in, and keeps responses until they are fetched.
package struct PendingAuthorizations: Sendable {
    let database: any Database
    let secrets: SecretHash

    /// A response that waits for a browser.
    private struct Answer: Codable {
        let response: AuthorizationResponse
        let browser: [UInt8]
        /// Seconds since 1970.
        let answeredAt: Int64
    }

    /// An identifier for the page's URL, which contains the sealed request: base64url.
    /// - Parameter browser: the cookie of the browser that made the request.
    package func seal(
        _ request: AuthenticationRequest, subjectHint: String?, browser: String, now: Int64
    ) throws(StoreFailure) -> String {
        let pending = PendingAuthorization(
            request: request, subjectHint: subjectHint, browser: secrets.hash(.browser, browser), createdAt: now)
        return try sealing.seal(pending, .authorizationRequest)
    }

    /// The request of an identifier; nil if the identifier was not sealed here or is too old.
    package func open(_ identifier: String, now: Int64) -> PendingAuthorization? {
        guard let pending: PendingAuthorization = sealing.open(identifier, .authorizationRequest),
            pending.createdAt <= now + PendingAuthorization.leeway, now < pending.createdAt + PendingAuthorization.lifetime
        else { return nil }
        return pending
    }

    /// The same for a request to sign out.
    package func seal(_ request: EndSessionRequest, now: Int64) throws(StoreFailure) -> String {
        try sealing.seal(SignOut(request: request, createdAt: now), .endSession)
    }

    /// A request to sign out; nil if it was not sealed here or is too old.
    package func openEndSession(_ identifier: String, now: Int64) -> EndSessionRequest? {
        guard let found: SignOut = sealing.open(identifier, .endSession),
            found.createdAt <= now + PendingAuthorization.leeway, now < found.createdAt + PendingAuthorization.lifetime
        else { return nil }
        return found.request
    }

    /// Keeps the response to a request for its browser, for as long as a code lives. Refused if the request was already
    /// answered.
    /// - Returns: a ticket for the response, for the browser in which the user signed in. Fetching the response needs both the
    ///   ticket and the cookie of the browser that made the request. If one person has another sign in for them, the first has
    ///   only the cookie, and the other only the ticket.
    package func answer(_ identifier: String, with response: AuthorizationResponse, now: Int64) throws(StoreFailure) -> String {
        try database.write(.durable) { connection throws(StoreFailure) in
            try answer(connection, identifier, with: response, now: now)
        }
    }

    /// The same within a transaction: if the response is refused, the work done for it is undone as well.
    package func answer(
        _ connection: any DatabaseConnection, _ identifier: String, with response: AuthorizationResponse, now: Int64
    ) throws(StoreFailure) -> String {
        guard let token = SealedTokens.parts(identifier)?.token, let pending = open(identifier, now: now) else {
            throw .refused(.invalid, "the request is unknown or has expired")
        }
        let ticket = try SealedTokens.newToken()
        let answer = Answer(response: response, browser: pending.browser, answeredAt: now)
        let content = try sealing.encrypt(answer, ticket, .authorizationContent)
        // After its response is fetched, the row stays, empty, as long as its request can be opened.
        let expiresAt = pending.createdAt + PendingAuthorization.lifetime + ProviderLifetime.code
        let added = try connection.run(
            """
            INSERT INTO authorization_answers (request_hash, ticket_hash, content, expires_at)
            VALUES (\(hash(token, .authorizationRequest)), \(hash(ticket, .authorizationContent)), \(content), \(expiresAt))
            ON CONFLICT (request_hash) DO NOTHING
            """)
        guard added > 0 else { throw .refused(.exists, "the request was answered already") }
        return Base64URL.encode(ticket)
    }

    /// The response for a ticket, once, and only for the browser that made the request; nil otherwise.
    package func take(ticket text: String, browser: String, now: Int64) throws(StoreFailure) -> AuthorizationResponse? {
        guard let ticket = Base64URL.decode(text.utf8), ticket.count == SealedTokens.tokenLength else { return nil }
        let hash = hash(ticket, .authorizationContent)
        // Not worth waiting for the disk: a response restored by a power failure again needs ticket and cookie, and its code
        // works only once.
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            let stored: [UInt8]? = try connection.value(
                "SELECT content FROM authorization_answers WHERE ticket_hash = \(hash)")
            guard let stored, let answer: Answer = sealing.decrypt(stored, ticket, .authorizationContent),
                constantTimeEqual(answer.browser, secrets.hash(.browser, browser)),
                now < answer.answeredAt + ProviderLifetime.code
            else { return nil }
            // Of two simultaneous requests one wins: the condition on the content fails for the other.
            let taken = try connection.run(
                """
                UPDATE authorization_answers SET content = \([UInt8]()) WHERE ticket_hash = \(hash) AND content = \(stored)
                """)
            return taken > 0 ? answer.response : nil
        }
    }

    // MARK: Parts

    private struct SignOut: Codable {
        let request: EndSessionRequest
        let createdAt: Int64
    }

    private var sealing: SealedTokens { SealedTokens(secrets: secrets) }

    private func hash(_ token: [UInt8], _ purpose: SecretHash.Purpose) -> [UInt8] {
        secrets.hash(purpose, Hex.encode(token), context: "row")
    }
}
