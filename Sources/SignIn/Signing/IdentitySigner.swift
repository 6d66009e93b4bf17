// The provider's signer: the store's active key, and the key set published with it.

import Accounts
import Database
import Logging
import Support

extension NewIdentityKey {
    /// A new key, ready for the store.
    package static func generate(
        _ algorithm: SignatureAlgorithm = .es256
    ) throws(KeySetError) -> NewIdentityKey {
        let (key, pem) = try IdentitySigningKey.generate(algorithm)
        return NewIdentityKey(
            keyID: key.keyID, algorithm: algorithm, publicJWK: JSONValue.object(key.publicJWK).text,
            pem: pem)
    }
}

/// Signs identity tokens and events, and provides the key set for `/auth/keys`. Follows the store:
/// a rotation on any host takes effect within two seconds. While the store is unavailable, the
/// current keys stay in use.
package actor IdentitySigner {
    /// Seconds between two checks of the store.
    package static let interval: Int64 = 2

    private struct State {
        let revision: Int64
        let keys: [SignatureAlgorithm: IdentitySigningKey]
        let document: [UInt8]
        /// For verifying tokens that were signed here.
        let published: JWKSet
    }

    private let repository: IdentityKeyRepository
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private var state: State?
    private var lookedAt: Int64 = .min

    /// - Parameter now: seconds since 1970.
    package init(
        _ repository: IdentityKeyRepository, now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.repository = repository
        self.now = now
        self.logger = logger
    }

    /// The current signing key. Makes the first keys of an algorithm; for RS256, once a client
    /// needs them. Throws the store's errors if no key was read yet.
    package func key(_ algorithm: SignatureAlgorithm = .es256) async throws -> IdentitySigningKey {
        if let key = try await current().keys[algorithm] { return key }
        try await install(algorithm)
        lookedAt = now() &- Self.interval
        guard let key = try await current().keys[algorithm] else {
            throw StoreFailure.permanent(
                .unexpectedData, "there is no active signing key for \(algorithm.rawValue)")
        }
        return key
    }

    /// The published keys, for verifying the provider's own tokens when they are sent back.
    package func verificationKeys() async throws -> JWKSet { try await current().published }

    /// The JWK Set to publish: the active key, the next, and replaced ones
    /// whose tokens may be in use.
    package func publishedKeys() async throws -> [UInt8] { try await current().document }

    /// Signs an identity token.
    package func sign(_ content: IdentityTokenContent) async throws -> String {
        try await key().sign(content.claims)
    }

    /// Signs an event and returns the body to send.
    package func body(of event: OutgoingEvent) async throws -> [UInt8] {
        try event.body(signedWith: try await key())
    }

    private func current() async throws -> State {
        let time = now()
        if let state, time &- lookedAt < Self.interval, time >= lookedAt { return state }
        do {
            let repository = repository
            let revision = try await BlockingPool.issuers.run { try repository.revision() }
            if let state, state.revision == revision {
                lookedAt = time
                return state
            }
            let read = try await read()
            // Another reader may already have read something newer.
            if let state, state.revision > read.revision { return state }
            state = read
            lookedAt = time
            return read
        } catch {
            guard let state else { throw error }
            logger.error(
                "signing keys cannot be read, the old ones stay in use",
                metadata: ["detail": "\(error)"])
            lookedAt = time
            return state
        }
    }

    private func read() async throws -> State {
        let repository = repository
        var stored = try await BlockingPool.issuers.run { try repository.signingKeys() }
        if stored.active[.es256] == nil {
            try await install(.es256)
            stored = try await BlockingPool.issuers.run { try repository.signingKeys() }
        }
        guard stored.active[.es256] != nil else {
            throw StoreFailure.permanent(.unexpectedData, "there is no active signing key")
        }
        do {
            let published = try stored.published.map { key throws(JSONError) in
                try StrictJSON.parseObject(Array(key.publicJWK.utf8), limit: 4096)
            }
            let document = PublishedKeys.document(published)
            return State(
                revision: stored.revision,
                keys: try stored.active.mapValues { try IdentitySigningKey(pem: $0.pem) },
                document: document, published: try JWKSet.parse(document))
        } catch {
            throw StoreFailure.permanent(.unexpectedData, "a signing key cannot be read: \(error)")
        }
    }

    /// Adds the first two keys of an algorithm to the store, unless another host was faster.
    private func install(_ algorithm: SignatureAlgorithm) async throws {
        let change = Change(actor: "serve", now: now())
        _ = try await BlockingPool.issuers.run { [repository] in
            // On a separate thread: an RSA key takes some tenths of a second.
            let (first, second) = (
                try NewIdentityKey.generate(algorithm), try NewIdentityKey.generate(algorithm)
            )
            return try repository.install(active: first, next: second, change)
        }
    }
}
