// Calls the operator's OpenID provider: its metadata, its keys, tokens for a code,
// and data about the user.

import AsyncHTTPClient
import Dispatch
import Foundation
import Logging
import NIOCore
import Support
import Transport

/// One instance serves for the whole life of a process. Every call returns or throws within a
/// limited time.
package final class UpstreamProvider: Sendable {
    package let settings: UpstreamSettings
    private let client: HTTPClient
    private let keys: KeySetCache
    private let metadataCache: MetadataCache
    private let now: @Sendable () -> Int64

    /// Seconds for one response; a user waits for it.
    private static let deadline: Int64 = 8
    /// The most octets of a response.
    private static let maximumLength = 262_144

    package init(_ settings: UpstreamSettings, now: @escaping @Sendable () -> Int64, logger: Logger)
    {
        self.settings = settings
        self.now = now
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        self.client = client
        keys = KeySetCache(
            fetcher: HTTPKeySetFetcher(client: client), storage: nil, now: now, logger: logger)
        metadataCache = MetadataCache(issuer: settings.issuer) { address throws(UpstreamFailure) in
            var request = HTTPClientRequest(url: address)
            request.headers.add(name: "Accept", value: "application/json")
            return try await Self.ask(client, request, for: "its metadata").octets
        }
    }

    /// A client must be shut down, even if the service never started.
    deinit { client.shutdown(queue: .global()) { _ in } }

    /// Shuts down the client.
    package func stop() async { try? await client.shutdown() }

    /// The provider's metadata. It is at most an hour old while the provider answers.
    package func metadata() async throws(UpstreamFailure) -> UpstreamMetadata {
        try await metadataCache.metadata(now: now())
    }

    /// Exchanges the code of an attempt, and verifies the result.
    /// - Parameter code: from the response to `attempt`.
    package func identity(
        _ attempt: UpstreamAttempt, code: String, redirectURI: String, _ metadata: UpstreamMetadata
    ) async throws(UpstreamFailure) -> UpstreamIdentity {
        let tokens = try await tokens(attempt, code: code, redirectURI: redirectURI, metadata)
        guard let text = tokens["id_token"]?.string else {
            throw .unproved("there is no identity token")
        }
        let claims = try await claims(text, attempt, metadata)
        let time = try attempt.authenticationTime(
            claims, leeway: IssuerConfiguration.defaultLeeway, now: now())
        let identity = try UpstreamIdentity(claims, profile: nil, settings, authenticatedAt: time)
        // Many providers give the address only at this endpoint.
        guard identity.address == nil, let endpoint = metadata.userInfoEndpoint,
            let token = tokens["access_token"]?.string,
            token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return identity }
        var request = HTTPClientRequest(url: endpoint)
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        request.headers.add(name: "Accept", value: "application/json")
        let answer = try await Self.ask(client, request, for: "the userinfo")
        guard let profile = try? StrictJSON.parseObject(answer.octets, limit: Self.maximumLength)
        else {
            throw .unavailable("the userinfo is not a valid JSON object")
        }
        return try UpstreamIdentity(claims, profile: profile, settings, authenticatedAt: time)
    }

    private func tokens(
        _ attempt: UpstreamAttempt, code: String, redirectURI: String, _ metadata: UpstreamMetadata
    ) async throws(UpstreamFailure) -> JSONObject {
        var form = [
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirectURI),
            ("code_verifier", attempt.verifier),
        ]
        var request = HTTPClientRequest(url: metadata.tokenEndpoint)
        request.method = .POST
        if let secret = settings.secret, !metadata.secretInForm {
            // Form-encoded first, then as Basic (RFC 6749 section 2.3.1).
            let pair = [settings.clientID, secret.revealed].map(FormEncoding.encode).joined(
                separator: ":")
            request.headers.add(
                name: "Authorization", value: "Basic \(Data(pair.utf8).base64EncodedString())")
        } else {
            form.append(("client_id", settings.clientID))
            if let secret = settings.secret { form.append(("client_secret", secret.revealed)) }
        }
        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
        request.headers.add(name: "Accept", value: "application/json")
        request.body = .bytes(ByteBuffer(string: FormEncoding.encode(form)))
        let answer = try await Self.ask(client, request, for: "tokens", allowing: 400...401)
        guard answer.status == 200 else {
            let error =
                (try? StrictJSON.parseObject(answer.octets, limit: Self.maximumLength))?["error"]?
                .string ?? "-"
            throw .unproved("the token endpoint said \(error.withoutControls(limit: 64))")
        }
        guard let object = try? StrictJSON.parseObject(answer.octets, limit: Self.maximumLength)
        else {
            throw .unavailable("the token endpoint's response is not a valid JSON object")
        }
        return object
    }

    private func claims(
        _ text: String, _ attempt: UpstreamAttempt, _ metadata: UpstreamMetadata
    ) async throws(UpstreamFailure) -> IdentityClaims {
        let issuer = IssuerConfiguration(
            name: "sign_in.upstream", issuer: settings.issuer, source: .uri(metadata.keys))
        do {
            let token = try CompactJWS(text)
            let (_, keyID) = try TokenChecks.keyName(token, algorithms: issuer.algorithms)
            let claims = try TokenChecks.verify(
                token, issuer: issuer, keys: try await keys.keys(of: issuer, for: keyID),
                audience: settings.clientID,
                nonce: ExpectedNonce(attempt.nonce), now: now())
            // A nonce was sent, so the token must have it, even if it reports no support for
            // nonces.
            guard claims.nonce != nil else { throw TokenRejection(.nonce, "the token has none") }
            if let party = claims.all["azp"],
                party.string?.hasSameOctets(as: settings.clientID) != true
            {
                throw TokenRejection(.audience, "the token is for another client")
            }
            return claims
        } catch let rejection as TokenRejection {
            throw .unproved("\(rejection)")
        } catch let error as KeysUnavailable {
            throw .unavailable("its keys: \(error.reason)")
        } catch {
            throw .unavailable("its keys")
        }
    }

    private static func ask(
        _ client: HTTPClient, _ request: HTTPClientRequest, for what: String,
        allowing others: ClosedRange<UInt> = 0...0
    ) async throws(UpstreamFailure) -> (status: UInt, octets: [UInt8]) {
        var request = request
        request.headers.add(name: "User-Agent", value: "postern")
        do {
            let end = NIODeadline.now() + .seconds(deadline)
            let response = try await client.execute(request, deadline: end)
            let status = response.status.code
            guard status == 200 || others.contains(status) else {
                throw UpstreamFailure.unavailable("\(what): status \(status)")
            }
            return (status, try await response.octets(limit: maximumLength, until: end))
        } catch let failure as UpstreamFailure {
            throw failure
        } catch is NIOTooManyBytesError {
            throw .unavailable("\(what): more than \(maximumLength) octets")
        } catch {
            throw .unavailable("\(what): \("\(error)".withoutControls(limit: 200))")
        }
    }
}

/// The provider's metadata. One fetch runs at a time, for any number of callers.
private actor MetadataCache {
    /// Seconds for which metadata is used without a fetch, and seconds for which the last good
    /// metadata is used while the provider is unavailable.
    private static let (freshness, maximumAge): (Int64, Int64) = (3600, 86_400)
    /// Seconds after a failure during which no fetch is made.
    private static let pause: Int64 = 5

    private let issuer: String
    private let fetch: @Sendable (String) async throws(UpstreamFailure) -> [UInt8]
    private var known: (metadata: UpstreamMetadata, at: Int64)?
    private var failed: (failure: UpstreamFailure, at: Int64)?
    private var running: Task<Result<UpstreamMetadata, UpstreamFailure>, Never>?

    init(
        issuer: String, fetch: @escaping @Sendable (String) async throws(UpstreamFailure) -> [UInt8]
    ) {
        self.issuer = issuer
        self.fetch = fetch
    }

    func metadata(now: Int64) async throws(UpstreamFailure) -> UpstreamMetadata {
        if let known, (0..<Self.freshness).contains(now - known.at) { return known.metadata }
        if let failed, (0..<Self.pause).contains(now - failed.at) {
            return try old(failed.failure, now)
        }
        let task = running ?? start()
        switch await task.value {
        case .success(let metadata):
            (known, failed, running) = ((metadata, now), nil, nil)
            return metadata
        case .failure(let failure):
            (failed, running) = ((failure, now), nil)
            return try old(failure, now)
        }
    }

    private func old(
        _ failure: UpstreamFailure, _ now: Int64
    ) throws(UpstreamFailure) -> UpstreamMetadata {
        guard let known, (0..<Self.maximumAge).contains(now - known.at) else { throw failure }
        return known.metadata
    }

    private func start() -> Task<Result<UpstreamMetadata, UpstreamFailure>, Never> {
        let (issuer, fetch) = (issuer, fetch)
        let task = Task { () -> Result<UpstreamMetadata, UpstreamFailure> in
            do throws(UpstreamFailure) {
                let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
                let document = try await fetch("\(base)/.well-known/openid-configuration")
                return .success(try UpstreamMetadata(document, issuer: issuer))
            } catch {
                return .failure(error)
            }
        }
        running = task
        return task
    }
}
