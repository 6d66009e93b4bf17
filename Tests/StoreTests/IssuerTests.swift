// Issuers and their stored keys.

import Accounts
import Database
import Foundation
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct IssuerTests {
    private func issuer(
        _ name: String, iss: String, location: String = "https://issuer.example/keys"
    ) -> Issuer {
        Issuer(
            name: name, iss: iss, source: .uri, location: location, algorithms: ["RS256", "ES256"],
            nonceForm: "sha256_hex",
            leeway: 30)
    }

    @Test(arguments: Engine.all) func issuer_added_isReadUntilRemoved(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let issuers = test.store.issuers
        let added = try issuers.add(
            issuer("apple", iss: "https://appleid.apple.com"), TestStore.change)
        #expect(added.algorithms == ["ES256", "RS256"])
        #expect(try issuers.issuers() == [added])
        #expect(try issuers.issuer("apple") == added)
        #expect(
            added.nonceForm == "sha256_hex" && added.leeway == 30 && !added.allowsHTTP
                && added.createdAt == TestStore.now)
        try issuers.remove("apple", TestStore.change)
        expectRefusal(.notFound) { _ = try issuers.issuer("apple") }
        expectRefusal(.notFound) { try issuers.remove("apple", TestStore.change) }
        #expect(
            try test.store.audit.entries().prefix(2).map(\.action) == [
                "issuer.remove", "issuer.add",
            ])
    }

    @Test(arguments: Engine.all) func issuer_nameOrIssTaken_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        _ = try test.store.issuers.add(issuer("a", iss: "https://a.example"), TestStore.change)
        expectRefusal(.exists) {
            _ = try test.store.issuers.add(issuer("a", iss: "https://b.example"), TestStore.change)
        }
        expectRefusal(.exists) {
            _ = try test.store.issuers.add(issuer("b", iss: "https://a.example"), TestStore.change)
        }
        expectRefusal(.invalid) {
            _ = try test.store.issuers.add(
                issuer("a b", iss: "https://c.example"), TestStore.change)
        }
        // They differ in one octet, so they are two issuers.
        _ = try test.store.issuers.add(issuer("c", iss: "https://a.example/"), TestStore.change)
    }

    @Test(arguments: Engine.all) func issuer_overLimit_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        for number in 0..<IssuerRepository.maximumCount {
            _ = try test.store.issuers.add(
                issuer("i\(number)", iss: "https://\(number).example"), TestStore.change)
        }
        expectRefusal(.limit) {
            _ = try test.store.issuers.add(
                issuer("more", iss: "https://more.example"), TestStore.change)
        }
    }

    @Test(arguments: Engine.all) func issuerKeys_older_doNotReplaceNewer(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let issuers = test.store.issuers
        let location = "https://issuer.example/keys"
        _ = try issuers.add(issuer("a", iss: "https://a.example"), TestStore.change)
        #expect(try issuers.keys(of: "a", location: location) == nil)
        let new = IssuerKeys(document: [1, 2], fetchedAt: 200, freshUntil: 300)
        try issuers.keep(new, of: "a", location: location)
        #expect(try issuers.keys(of: "a", location: location) == new)
        // A slower host does not replace newer keys with older ones.
        try issuers.keep(
            IssuerKeys(document: [3], fetchedAt: 100, freshUntil: 400), of: "a", location: location)
        #expect(try issuers.keys(of: "a", location: location) == new)
        let newest = IssuerKeys(document: [4], fetchedAt: 201, freshUntil: 301)
        try issuers.keep(newest, of: "a", location: location)
        #expect(try issuers.keys(of: "a", location: location) == newest)
        // Keys from another address are not used.
        try issuers.keep(
            IssuerKeys(document: [5], fetchedAt: 900, freshUntil: 900), of: "a",
            location: "https://other.example/")
        #expect(try issuers.keys(of: "a", location: location) == newest)
        #expect(try issuers.keys(of: "a", location: "https://other.example/") == nil)
        try issuers.keep(newest, of: "unknown", location: location)
        try issuers.remove("a", TestStore.change)
        _ = try issuers.add(issuer("a", iss: "https://a.example"), TestStore.change)
        #expect(try issuers.keys(of: "a", location: location) == nil)
    }

    @Test(arguments: Engine.all) func identityKey_otherKeyFileOrRow_isNotUnsealed(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let key = NewIdentityKey(keyID: "k1", publicJWK: "{}", pem: "the secret part")
        let next = NewIdentityKey(keyID: "k2", publicJWK: "{}", pem: "another")
        #expect(try test.store.identityKeys.install(active: key, next: next, TestStore.change))
        #expect(try !test.store.identityKeys.install(active: next, next: key, TestStore.change))
        let other = Store(
            database: test.database, keys: TestStore.keys(first: 100),
            relayDomains: ["relay.example"])
        let error = #expect(throws: StoreFailure.self) { try other.identityKeys.signing() }
        #expect(error?.code == .permanent(.unsealing))
        // A private key moved to another row does not open there.
        try test.database.write(.durable) { connection in
            _ = try connection.run(
                """
                UPDATE identity_keys SET private_sealed = (SELECT private_sealed FROM identity_keys WHERE kid = 'k2') WHERE kid = 'k1'
                """)
        }
        let moved = #expect(throws: StoreFailure.self) { try test.store.identityKeys.signing() }
        #expect(moved?.code == .permanent(.unsealing))
    }

    @Test(arguments: Engine.all) func identityKey_eachChange_raisesRevision(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let keys = test.store.identityKeys
        func new(_ id: String) -> NewIdentityKey {
            NewIdentityKey(keyID: id, publicJWK: "{}", pem: id)
        }
        var last = try keys.revision()
        #expect(last == 0)
        func expectChange() throws {
            let now = try keys.revision()
            #expect(now > last)
            last = now
        }
        expectRefusal(.unmet) {
            _ = try keys.rotate(replacement: new("x"), early: true, TestStore.change)
        }
        _ = try keys.install(active: new("k1"), next: new("k2"), TestStore.change)
        try expectChange()
        expectRefusal(.unmet) {
            _ = try keys.rotate(replacement: new("k3"), early: false, TestStore.change)
        }
        let later = Change(
            actor: "uid:0", now: TestStore.now + IdentityKeyRepository.publicationBeforeUse)
        let result = try keys.rotate(replacement: new("k3"), early: false, later)
        #expect(
            [result.active.keyID, result.replaced.keyID, result.next.keyID] == ["k2", "k1", "k3"])
        try expectChange()
        #expect(try keys.signing().published.map(\.keyID) == ["k2", "k3", "k1"])
        let end = later.now + IdentityKeyRepository.publicationAfterUse
        #expect(try keys.retireExpired(Change(actor: "serve", now: end - 1)) == 0)
        #expect(try keys.retireExpired(Change(actor: "serve", now: end)) == 1)
        try expectChange()
        #expect(try keys.signing().published.map(\.keyID) == ["k2", "k3"])
        #expect(try keys.keys().map(\.state) == [.next, .active, .retired])
        #expect(
            try test.store.audit.entries().prefix(3).map(\.action) == [
                "keys.signing.retire", "keys.signing.rotate", "keys.signing.generate",
            ])
    }
}
