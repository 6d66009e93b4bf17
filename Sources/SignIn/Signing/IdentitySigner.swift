// The provider's signer: the active key of the store, and the key set that is published beside it.

import Database
import Accounts
import JSON
import Logging
import NIOPosix

extension NewIdentityKey {
    /// A new key on P-256, ready for the store.
    package static func generate() throws(KeySetError) -> NewIdentityKey {
        let (key, pem) = try IdentitySigningKey.generate()
        return NewIdentityKey(keyID: key.keyID, publicJWK: JSONValue.object(key.publicJWK).text, pem: pem)
    }
}

/// Signs identity tokens and events, and gives the key set for `/auth/keys`. Follows the store: a rotation on any host counts
/// within two seconds. While the store is down it goes on with what it has.
package actor IdentitySigner {
    /// Seconds between two looks at the store.
    package static let interval: Int64 = 2

    private struct State {
        let revision: Int64
        let key: IdentitySigningKey
        let document: [UInt8]
    }

    private let repository: IdentityKeyRepository
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private var state: State?
    private var lookedAt: Int64 = .min

    /// - Parameter now: seconds since 1970.
    package init(_ repository: IdentityKeyRepository, now: @escaping @Sendable () -> Int64, logger: Logger) {
        self.repository = repository
        self.now = now
        self.logger = logger
    }

    /// The key that signs now. Makes the first keys of an installation. Throws what the store throws where no key was read yet.
    package func key() async throws -> IdentitySigningKey { try await current().key }

    /// The JWK Set to publish: the active key, the next, and those replaced of which tokens may be under way.
    package func publishedKeys() async throws -> [UInt8] { try await current().document }

    /// Signs an identity token.
    package func sign(_ content: IdentityTokenContent) async throws -> String { try await key().sign(content.claims) }

    /// Signs an event and gives the body to send.
    package func body(of event: OutgoingEvent) async throws -> [UInt8] { try event.body(signedWith: try await key()) }

    private func current() async throws -> State {
        let time = now()
        if let state, time &- lookedAt < Self.interval, time >= lookedAt { return state }
        do {
            let repository = repository
            let revision = try await NIOThreadPool.singleton.runIfActive { try repository.revision() }
            if let state, state.revision == revision {
                lookedAt = time
                return state
            }
            let read = try await read()
            // Another reader may have been quicker with something newer.
            if let state, state.revision > read.revision { return state }
            state = read
            lookedAt = time
            return read
        } catch {
            guard let state else { throw error }
            logger.error("signing keys cannot be read, the old ones stay in use", metadata: ["detail": "\(error)"])
            lookedAt = time
            return state
        }
    }

    private func read() async throws -> State {
        let repository = repository
        var stored = try await NIOThreadPool.singleton.runIfActive { try repository.signing() }
        if stored.active == nil {
            let (first, second) = (try NewIdentityKey.generate(), try NewIdentityKey.generate())
            let change = Change(actor: "serve", now: now())
            stored = try await NIOThreadPool.singleton.runIfActive {
                _ = try repository.install(active: first, next: second, change)
                return try repository.signing()
            }
        }
        guard let active = stored.active else {
            throw StoreFailure.permanent(.unexpectedData, "there is no active signing key")
        }
        do {
            let published = try stored.published.map { key throws(JSONError) in
                try StrictJSON.parseObject(Array(key.publicJWK.utf8), limit: 4096)
            }
            return State(
                revision: stored.revision, key: try IdentitySigningKey(pem: active.pem),
                document: PublishedKeys.document(published))
        } catch {
            throw StoreFailure.permanent(.unexpectedData, "the signing key \(active.key.keyID) cannot be read: \(error)")
        }
    }
}
