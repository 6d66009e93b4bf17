// Issuers, key sets and signing keys on a real database.

import Accounts
import Database
import Foundation
import NIOCore
import PosternSQLite
import SignIn
import StoreTesting
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct StoredTests {
    /// A store in a folder that is removed with it.
    private final class Stored: Sendable {
        let folder: URL
        let database: SQLiteDatabase
        let store: Store
        let clock = ManualClock()
        var change: Change { Change(actor: "uid:0", now: clock.now()) }

        init() throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent(
                "postern-stored-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            database = try MigratedStore.sqlite(
                at: folder.appendingPathComponent("postern.db").path)
            let keys = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
            store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        }

        deinit {
            try? database.close()
            try? FileManager.default.removeItem(at: folder)
        }

        func signer() -> IdentitySigner {
            IdentitySigner(store.identityKeys, now: clock.now, logger: silence)
        }

        func addIssuer(_ name: String, iss: String, location: String) throws {
            _ = try store.issuers.add(
                Issuer(
                    name: name, iss: iss, source: .uri, location: location, algorithms: ["ES256"],
                    nonceForm: "raw", leeway: 10),
                change)
        }
    }

    @Test func signer_firstUse_makesKeys() async throws {
        let stored = try Stored()
        let signer = stored.signer()
        let key = try await signer.key()
        let set = try JWKSet.parse(try await signer.publishedKeys())
        #expect(set.keys.count == 2)
        #expect(set.keys.first?.keyID == key.keyID)
        // Another host of the same database signs with the same key.
        #expect(try await stored.signer().key().keyID == key.keyID)
        #expect(try stored.store.identityKeys.keys().map(\.state) == [.next, .active])
    }

    @Test func signer_hostsStartTogether_haveOneKey() async throws {
        let stored = try Stored()
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 { group.addTask { try await stored.signer().key().keyID } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try stored.store.identityKeys.keys().count == 2)
    }

    /// At every moment, a client that fetched the key set within the last day can verify new
    /// signatures. A client that fetches it now can verify the signatures of the last seven days.
    @Test func keyRotation_everySixHours_leavesNoGap() async throws {
        let stored = try Stored()
        let signer = stored.signer()
        let keys = stored.store.identityKeys
        var published: [(at: Int64, set: JWKSet)] = []
        var signed: [(at: Int64, token: CompactJWS)] = []
        for hour in 0..<(24 * 20) {
            let now = stored.clock.now()
            // An operator who tries to rotate every six hours.
            if hour % 6 == 5 {
                do {
                    _ = try keys.rotate(
                        replacement: try NewIdentityKey.generate(), early: false, stored.change)
                } catch let failure as StoreFailure {
                    #expect(failure.code == .refused(.unmet))
                }
            }
            try keys.retireExpired(stored.change)
            let set = try JWKSet.parse(try await signer.publishedKeys())
            published.append((now, set))
            let token = try CompactJWS(try await signer.key().sign(TestIssuer.claims))
            signed.append((now, token))
            for old in published where now - old.at <= 86_400 {
                try TokenChecks.signature(token, algorithms: [.es256], keys: old.set)
            }
            for old in signed.suffix(24 * 7) {
                try TokenChecks.signature(old.token, algorithms: [.es256], keys: set)
            }
            published.removeAll { now - $0.at > 86_400 }
            stored.clock.advance(3600)
        }
        // Rotated often, and old keys were ended.
        let all = try keys.keys()
        #expect(all.count >= 15)
        #expect(all.filter { $0.state == .retired }.count >= 5)
        #expect(all.filter { $0.state == .retiring }.count <= 9)
    }

    @Test func keyRotation_early_mustBeAskedFor() async throws {
        let stored = try Stored()
        let signer = stored.signer()
        let first = try await signer.key().keyID
        let keys = stored.store.identityKeys
        let replacement = try NewIdentityKey.generate()
        #expect(throws: StoreFailure.refused(.unmet, "")) {
            try keys.rotate(replacement: replacement, early: false, stored.change)
        }
        let result = try keys.rotate(replacement: replacement, early: true, stored.change)
        #expect(result.replaced.keyID == first)
        // Seen within two seconds.
        stored.clock.advance(2)
        #expect(try await signer.key().keyID == result.active.keyID)
        // The one that was stolen is ended at once.
        #expect(try keys.retire(first, stored.change).state == .retired)
        stored.clock.advance(2)
        let set = try JWKSet.parse(try await signer.publishedKeys())
        #expect(set.keys.map(\.keyID) == [result.active.keyID, result.next.keyID])
        #expect(throws: StoreFailure.refused(.unmet, "")) {
            try keys.retire(result.active.keyID, stored.change)
        }
        #expect(throws: StoreFailure.refused(.unmet, "")) {
            try keys.retire(result.next.keyID, stored.change)
        }
        #expect(throws: StoreFailure.refused(.notFound, "")) {
            try keys.retire("unknown", stored.change)
        }
    }

    @Test func signer_storeDown_keepsSigning() async throws {
        let stored = try Stored()
        let signer = stored.signer()
        let key = try await signer.key().keyID
        try stored.database.close()
        stored.clock.advance(10)
        #expect(try await signer.key().keyID == key)
        await #expect(throws: (any Error).self) { try await stored.signer().key() }
    }

    @Test func signingKey_stored_isNotInTheClear() async throws {
        let stored = try Stored()
        let key = try NewIdentityKey.generate()
        let next = try NewIdentityKey.generate()
        _ = try stored.store.identityKeys.install(active: key, next: next, stored.change)
        let secret = Data(key.pem.split(separator: "\n")[1].utf8)
        for file in try FileManager.default.contentsOfDirectory(
            at: stored.folder, includingPropertiesForKeys: nil)
        {
            let contents = try Data(contentsOf: file)
            #expect(contents.range(of: secret) == nil)
        }
        #expect(try stored.store.identityKeys.signing().active?.pem == key.pem)
        #expect(!"\(key)".contains("PRIVATE"))
    }

    @Test func storedIssuers_addedThenStoreDown_areKept() async throws {
        let stored = try Stored()
        let issuers = StoredIssuers(stored.store.issuers, now: stored.clock.now, logger: silence)
        #expect(try await issuers.issuer(TestIssuer.iss) == nil)
        try stored.addIssuer("own", iss: TestIssuer.iss, location: "https://issuer.example/keys")
        stored.clock.advance(1)
        let issuer = try #require(try await issuers.issuer(TestIssuer.iss))
        #expect(
            issuer
                == IssuerConfiguration(
                    name: "own", issuer: TestIssuer.iss,
                    source: .uri("https://issuer.example/keys"), algorithms: [.es256],
                    leeway: 10))
        #expect(try await issuers.issuer(TestIssuer.iss + "/") == nil)
        // While the store is unavailable, the last keys stay.
        try stored.database.close()
        stored.clock.advance(5)
        #expect(try await issuers.issuer(named: "own") == issuer)
        let fresh = StoredIssuers(stored.store.issuers, now: stored.clock.now, logger: silence)
        await #expect(throws: (any Error).self) { try await fresh.all() }
    }

    @Test func storedKeySets_newProcess_areKept() async throws {
        let stored = try Stored()
        let test = try await TestIssuer()
        let fetcher = CountingFetcher(document: PublishedKeys.document([test.key.publicJWK]))
        try stored.addIssuer("own", iss: TestIssuer.iss, location: "https://issuer.example/keys")
        let issuer = IssuerConfiguration(try stored.store.issuers.issuer("own"))
        func cache() -> KeySetCache {
            KeySetCache(
                fetcher: fetcher, storage: StoredKeySets(stored.store.issuers, logger: silence),
                now: stored.clock.now,
                logger: silence)
        }
        #expect(try await cache().keys(of: issuer, for: test.key.keyID).keys.count == 1)
        #expect(try await cache().keys(of: issuer, for: test.key.keyID).keys.count == 1)
        #expect(fetcher.count == 1)
        // Keys of another address are not keys of this one.
        try stored.store.issuers.remove("own", stored.change)
        try stored.addIssuer("own", iss: TestIssuer.iss, location: "https://moved.example/keys")
        _ = try await cache().keys(
            of: IssuerConfiguration(try stored.store.issuers.issuer("own")), for: test.key.keyID)
        #expect(fetcher.count == 2)
    }

    private final class CountingFetcher: KeySetFetcher {
        private let document: [UInt8]
        private let requests = Mutex(0)
        var count: Int { requests.withLock { $0 } }
        init(document: [UInt8]) { self.document = document }
        func fetch(_ source: KeySource) async throws(KeySetFetchError) -> FetchedKeySet {
            requests.withLock { $0 += 1 }
            return FetchedKeySet(document: document, maxAge: nil)
        }
    }
}
