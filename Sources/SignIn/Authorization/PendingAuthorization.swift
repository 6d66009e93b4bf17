// An authorization request while the sign-in page handles it, and its response until the browser
// fetches it.

import Accounts
import Database
import MailCrypto
import Support

/// A checked request that a sign-in page is handling.
package struct PendingAuthorization: Sendable {
    package let request: AuthenticationRequest
    /// The `sub` of a valid `id_token_hint`.
    package let subjectHint: String?
    /// Seconds since 1970.
    package let createdAt: Int64
    /// Seconds since 1970. Each step of the page moves it.
    package let expiresAt: Int64
    /// Whether the browser fetched the response.
    package let isFinished: Bool
    /// The check that the page carries out; nil for a sign-in.
    package var check: HostedCheck?

    /// Whether the page must report when the user signed in, so that an old sign-in
    /// does not pass for a new one.
    package var needsAuthenticationTime: Bool {
        request.prompts.contains(.login) || request.maximumAge != nil
    }

    /// Whether a sign-in is recent enough: after the request (`prompt=login`), or at most
    /// `max_age` seconds before it.
    /// - Parameter time: when the user signed in, seconds since 1970.
    package func accepts(authenticatedAt time: Int64) -> Bool {
        if request.prompts.contains(.login), time < createdAt { return false }
        return request.maximumAge.map { time >= createdAt - $0 } ?? true
    }

    /// Whether a sign-in is later than the request.
    /// - Parameter time: when the user signed in, seconds since 1970.
    package func isFollowed(by time: Int64) -> Bool { time > createdAt }
}

/// How long requests are kept, in seconds.
package enum PendingLifetime {
    /// For a request that no page has opened.
    static let first: Int64 = 10 * 60
    /// After each step of the page: as long as a mailed link works.
    static let step = PageLifetime.link
    /// Any request.
    package static let most: Int64 = 3600
    /// A check that a decision required.
    package static let check: Int64 = 10 * 60
    /// How often the use of a request is recorded, instead of at every step.
    static let seen: Int64 = 60
}

/// Limits of the stored requests. Anyone can send requests, so new requests of a network replace
/// its own older ones.
package struct PendingLimits: Sendable {
    /// Requests of one network. This allows several for each pupil of a class behind one address.
    package var perNetwork = 2_000
    package var octetsPerNetwork = 4 << 20
    /// Checks of one app. Its backend counts as one network: without a limit of its own, it would
    /// lose checks that users are about to pass, and without any, those who sign in to other apps
    /// would lose their requests to it.
    package var checksOfApp = 20_000
    package var octetsOfChecks = 32 << 20
    /// Requests of all networks.
    package var inAll = 50_000
    package var octetsInAll = 128 << 20
    /// All requests are counted once per this many new ones.
    package var counted: Int64 = 64

    package init() {}
}

/// Requests that the sign-in page handles, and responses until browsers fetch them. Addresses,
/// cookies and mails contain a handle of 27 octets instead of the request: proxies limit their
/// length.
package struct PendingAuthorizations: Sendable {
    let database: any Database
    let secrets: SecretHash
    package var limits = PendingLimits()

    private struct Request: Codable {
        let request: AuthenticationRequest
        let subjectHint: String?
        var check: HostedCheck?
    }

    private struct Response: Codable {
        let response: AuthorizationResponse
        /// The user who answered; nil for an error.
        let userID: String?
        /// Seconds since 1970.
        let answeredAt: Int64
    }

    // MARK: Requests

    /// Stores a request, and returns its handle: base64url.
    /// - Parameters:
    ///   - browser: the cookie of the browser that made the request; nil if `bind` follows.
    ///   - network: the widest network that the request counts for.
    package func add(
        _ request: AuthenticationRequest, subjectHint: String?, browser: String?, network: String,
        now: Int64
    ) throws(StoreFailure) -> String {
        try add(
            Request(request: request, subjectHint: subjectHint), .authorizationRequest,
            browser: browser, network: network,
            now: now)
    }

    /// The same for a request to sign out.
    package func add(
        _ request: EndSessionRequest, network: String, now: Int64
    ) throws(StoreFailure) -> String {
        try add(request, .endSession, browser: nil, network: network, now: now)
    }

    /// Stores a check that a decision required, and returns its handle: that of the decision, so
    /// that a repeated request gets the same.
    /// - Parameter subject: the `sub` of the account; nil if the page has no user for it.
    package func add(
        _ check: HostedCheck, clientID: String, subject: String?,
        target: AuthorizationResponseTarget, now: Int64
    ) throws(StoreFailure) -> String {
        let request = Request(
            request: AuthenticationRequest(
                clientID: clientID, target: target, responseType: .code, scopes: [], nonce: nil,
                challenge: nil, prompts: [.login], maximumAge: nil, loginHint: nil,
                uiLocales: [], contextClasses: []),
            subjectHint: subject, check: check)
        let token = Array(
            secrets.hash(.authorizationRequest, check.decisionID, context: "check")[
                ..<SealedTokens.tokenLength])
        // The key of the handle seals one content: a second one of the same decision is not stored.
        return try add(
            request, .authorizationRequest, token: token, browser: nil,
            network: "checks of \(clientID)", limit: (limits.checksOfApp, limits.octetsOfChecks),
            most: PendingLifetime.check, now: now)
    }

    /// The request of a handle; nil if it is unknown or too old.
    package func open(_ handle: String, now: Int64) throws(StoreFailure) -> PendingAuthorization? {
        guard let token = Self.token(handle) else { return nil }
        let row = try row(token, .authorizationRequest, now: now)
        guard let row,
            let kept: Request = try sealing.decrypt(row["content"], token, .authorizationRequest)
        else { return nil }
        let response: [UInt8]? = try row["response"]
        return try PendingAuthorization(
            request: kept.request, subjectHint: kept.subjectHint, createdAt: row["created_at"],
            expiresAt: row["expires_at"],
            isFinished: response.map(\.isEmpty) ?? false, check: kept.check)
    }

    /// Whether a request is bound to this browser.
    package func isBound(
        _ handle: String, to browser: String, now: Int64
    ) throws(StoreFailure) -> Bool {
        guard let token = Self.token(handle) else { return false }
        let bound: [UInt8]? = try database.read { connection throws(StoreFailure) in
            try connection.value(
                """
                SELECT browser_hash FROM pending_requests
                WHERE handle_hash = \(hash(token, .authorizationRequest)) AND expires_at > \(now)
                """)
        }
        return bound.map { constantTimeEqual($0, secrets.hash(.browser, browser)) } ?? false
    }

    /// A request to sign out; nil if it is unknown or too old.
    package func openEndSession(
        _ handle: String, now: Int64
    ) throws(StoreFailure) -> EndSessionRequest? {
        guard let token = Self.token(handle), let row = try row(token, .endSession, now: now) else {
            return nil
        }
        return try sealing.decrypt(row["content"], token, .endSession)
    }

    /// Binds a request that came without a cookie to its browser. Returns false if the request is
    /// unknown, too old or already bound. Browsers send no cookie with a form of another site, but
    /// they send it with the redirect that follows.
    package func bind(_ handle: String, to browser: String, now: Int64) throws(StoreFailure) -> Bool
    {
        guard let token = Self.token(handle) else { return false }
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE pending_requests SET browser_hash = \(secrets.hash(.browser, browser))
                WHERE handle_hash = \(hash(token, .authorizationRequest)) AND browser_hash IS NULL AND expires_at > \(now)
                """) > 0
        }
    }

    // MARK: Responses

    /// Stores the response to a request for its browser, for the lifetime of a code. Refused if the
    /// request was already answered.
    /// - Returns: a ticket for the response, for the browser in which the user signed in.
    ///   Fetching the response needs both the ticket and the cookie of the browser that made
    ///   the request. If one person has another sign in for them, the first has only the
    ///   cookie, and the other only the ticket.
    package func answer(
        _ handle: String, with response: AuthorizationResponse, now: Int64
    ) throws(StoreFailure) -> String {
        try database.write(.durable) { connection throws(StoreFailure) in
            try answer(connection, handle, with: response, of: nil, now: now)
        }
    }

    /// The same within a transaction: if the response is refused, the work done
    /// for it is undone as well.
    /// - Parameter user: the user who may get the same ticket again with
    ///   `ticketAgain`; nil for no user.
    package func answer(
        _ connection: any DatabaseConnection, _ handle: String,
        with response: AuthorizationResponse, of user: String?, now: Int64
    ) throws(StoreFailure) -> String {
        guard let token = Self.token(handle) else { throw Self.unknown }
        let sealed = try sealing.encrypt(
            Response(response: response, userID: user, answeredAt: now), token,
            .authorizationContent)
        let ticket = ticket(token, of: sealed)
        // The row stays with an empty response after the browser fetched it, so that the request
        // cannot be answered again.
        let answered = try connection.run(
            """
            UPDATE pending_requests SET response = \(sealed), ticket_hash = \(self.hash(ticket, .authorizationContent)),
                expires_at = CASE WHEN expires_at > \(now + ProviderLifetime.code) THEN expires_at
                    ELSE \(now + ProviderLifetime.code) END
            WHERE handle_hash = \(self.hash(token, .authorizationRequest)) AND response IS NULL AND expires_at > \(now)
            """)
        guard answered == 0 else { return Base64URL.encode(ticket) }
        guard try row(connection, token, .authorizationRequest, now: now) != nil else {
            throw Self.unknown
        }
        throw .refused(.exists, "the request was answered already")
    }

    /// Ends a request without a stored response: the app gets an error at once, and no response
    /// later. Returns false if the browser already fetched a response.
    package func finish(_ handle: String, now: Int64) throws(StoreFailure) -> Bool {
        guard let token = Self.token(handle) else { return false }
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            let empty = [UInt8]()
            return try connection.run(
                """
                UPDATE pending_requests SET response = \(empty), ticket_hash = NULL
                WHERE handle_hash = \(hash(token, .authorizationRequest)) AND expires_at > \(now)
                    AND (response IS NULL OR response <> \(empty))
                """) > 0
        }
    }

    /// Returns the same ticket again if the user answered but the browser did not fetch the
    /// response: the user pressed the button twice, or the connection was lost. Nil in any other
    /// case. When two presses come at once, the browser may show the answer to either.
    package func ticketAgain(
        _ handle: String, of user: String, now: Int64
    ) throws(StoreFailure) -> String? {
        guard let token = Self.token(handle) else { return nil }
        return try database.read { connection throws(StoreFailure) in
            guard let row = try row(connection, token, .authorizationRequest, now: now),
                let sealed: [UInt8] = try row["response"],
                let kept: Response = sealing.decrypt(sealed, token, .authorizationContent),
                let answerer = kept.userID,
                answerer.hasSameOctets(as: user), now < kept.answeredAt + ProviderLifetime.code
            else { return nil }
            return Base64URL.encode(ticket(token, of: sealed))
        }
    }

    /// The response for a ticket, once, and only for the browser that made
    /// the request; nil otherwise.
    package func take(
        ticket text: String, browser: String, now: Int64
    ) throws(StoreFailure) -> AuthorizationResponse? {
        guard let ticket = Base64URL.decode(text.utf8), ticket.count == 2 * SealedTokens.tokenLength
        else { return nil }
        let (token, hash) = (
            Array(ticket[..<SealedTokens.tokenLength]), hash(ticket, .authorizationContent)
        )
        // The write does not wait for the disk. A response that returns after a power failure still
        // needs ticket and cookie, and its code works only once.
        return try database.write(.relaxed) { connection throws(StoreFailure) in
            let row = try connection.row(
                "SELECT id, response, browser_hash FROM pending_requests WHERE ticket_hash = \(hash)"
            )
            guard let row, let sealed: [UInt8] = try row["response"],
                let wanted: [UInt8] = try row["browser_hash"],
                let kept: Response = sealing.decrypt(sealed, token, .authorizationContent),
                constantTimeEqual(wanted, secrets.hash(.browser, browser)),
                now < kept.answeredAt + ProviderLifetime.code
            else { return nil }
            let number: Int64 = try row["id"]
            // Of two simultaneous requests one wins: the condition on
            // the response fails for the other.
            let taken = try connection.run(
                "UPDATE pending_requests SET response = \([UInt8]()) WHERE id = \(number) AND response = \(sealed)"
            )
            return taken > 0 ? kept.response : nil
        }
    }

    // MARK: Parts

    private static let unknown = StoreFailure.refused(
        .invalid, "the request is unknown or has expired")

    private var sealing: SealedTokens { SealedTokens(secrets: secrets) }

    private static func token(_ handle: String) -> [UInt8]? {
        guard handle.utf8.count <= 64, let token = Base64URL.decode(handle.utf8),
            token.count == SealedTokens.tokenLength
        else {
            return nil
        }
        return token
    }

    private func hash(_ token: [UInt8], _ purpose: SecretHash.Purpose) -> [UInt8] {
        secrets.hash(purpose, Hex.encode(token), context: "row")
    }

    /// A ticket contains the token of its request, which opens the response, and a MAC that only
    /// our secret can make. The app that made the request knows only the token.
    private func ticket(_ token: [UInt8], of sealed: [UInt8]) -> [UInt8] {
        token
            + secrets.hash(.authorizationContent, Hex.encode(token + sealed), context: "ticket")[
                ..<SealedTokens.tokenLength]
    }

    private func row(
        _ token: [UInt8], _ purpose: SecretHash.Purpose, now: Int64
    ) throws(StoreFailure) -> SQLRow? {
        let found = try database.read { connection throws(StoreFailure) -> SQLRow? in
            try row(connection, token, purpose, now: now)
        }
        guard let row = found else { return nil }
        let (number, endsAt, expiresAt): (Int64, Int64, Int64) = try (
            row["id"], row["ends_at"], row["expires_at"]
        )
        let prolonged = min(endsAt, now + PendingLifetime.step)
        if prolonged - expiresAt >= PendingLifetime.seen {
            try database.write(.relaxed) { connection throws(StoreFailure) in
                try connection.run(
                    "UPDATE pending_requests SET expires_at = \(prolonged) WHERE id = \(number) AND expires_at < \(prolonged)"
                )
            }
        }
        return row
    }

    private func row(
        _ connection: any DatabaseConnection, _ token: [UInt8], _ purpose: SecretHash.Purpose,
        now: Int64
    ) throws(StoreFailure) -> SQLRow? {
        try connection.row(
            """
            SELECT id, content, response, created_at, expires_at, ends_at FROM pending_requests
            WHERE handle_hash = \(hash(token, purpose)) AND expires_at > \(now)
            """)
    }

    /// - Parameter token: of the handle; nil for a random one.
    private func add(
        _ value: some Encodable, _ purpose: SecretHash.Purpose, token given: [UInt8]? = nil,
        browser: String?, network: String, limit: (count: Int, octets: Int)? = nil,
        most: Int64 = PendingLifetime.most, now: Int64
    ) throws(StoreFailure) -> String {
        let token = if let given { given } else { try SealedTokens.newToken() }
        let content = try sealing.encrypt(value, token, purpose)
        let source = secrets.hash(.network, network)
        let browser = browser.map { secrets.hash(.browser, $0) }
        // The write does not wait for the disk: after a power failure the app sends a lost request
        // again.
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let number: Int64? = try connection.value(
                """
                INSERT INTO pending_requests
                    (handle_hash, content, octets, network_hash, browser_hash, created_at, expires_at, ends_at)
                VALUES (\(hash(token, purpose)), \(content), \(content.count), \(source), \(browser), \(now),
                    \(now + min(most, PendingLifetime.first)), \(now + most))
                ON CONFLICT (handle_hash) DO NOTHING RETURNING id
                """)
            guard let number else { return }
            try drop(
                connection, of: source, most: limit?.count ?? limits.perNetwork,
                octets: limit?.octets ?? limits.octetsPerNetwork)
            guard number % limits.counted == 0 else { return }
            let all = try connection.row(
                "SELECT COUNT(*) AS count, CAST(COALESCE(SUM(octets), 0) AS BIGINT) AS octets FROM pending_requests"
            )
            guard let all else { return }
            let (count, octets): (Int, Int) = try (all["count"], all["octets"])
            guard count > limits.inAll || octets > limits.octetsInAll else { return }
            // The network with the most octets loses requests, not the network of the newest
            // request.
            let largest: [UInt8]? = try connection.value(
                "SELECT network_hash FROM pending_requests GROUP BY network_hash ORDER BY SUM(octets) DESC LIMIT 1"
            )
            if let largest { try drop(connection, of: largest, most: 0, octets: 0) }
        }
        return Base64URL.encode(token)
    }

    /// Deletes the older half of a network's requests if the network exceeds its limit.
    private func drop(
        _ connection: any DatabaseConnection, of network: [UInt8], most: Int, octets: Int
    ) throws(StoreFailure) {
        let kept = try connection.row(
            """
            SELECT COUNT(*) AS count, CAST(COALESCE(SUM(octets), 0) AS BIGINT) AS octets FROM pending_requests
            WHERE network_hash = \(network)
            """)
        guard let kept else { return }
        let (count, sum): (Int, Int) = try (kept["count"], kept["octets"])
        guard count > most || sum > octets else { return }
        let half = (count + 1) / 2
        try connection.run(
            """
            DELETE FROM pending_requests WHERE id IN (
                SELECT id FROM pending_requests WHERE network_hash = \(network) ORDER BY id LIMIT \(half))
            """)
    }
}
