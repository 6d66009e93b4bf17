// Signing keys: when each may sign, and that they are sealed.

import Accounts
import Database
import Foundation
import MailAuth
import Relay
import TestSupport
import Testing

@Suite(.blocking) struct DKIMKeyRepositoryTests {
    private static let pem =
        "-----BEGIN PRIVATE KEY-----\nc2VjcmV0IG9mIHRoZSByZWxheQ==\n-----END PRIVATE KEY-----\n"

    /// Adds a key; the store does not read the text.
    private func add(
        _ test: TestStore, _ selector: String, _ algorithm: DKIMAlgorithm = .rsa,
        domain: String = "relay.example",
        isActive: Bool = false
    ) throws -> DKIMKey {
        try test.store.dkimKeys.add(
            domain: domain, selector: selector, algorithm: algorithm, bits: 2048,
            privateKey: DKIMPrivateKey(pem: Self.pem + selector),
            isActive: isActive, TestStore.change)
    }

    private func signing(_ test: TestStore) throws -> [String] {
        try test.store.dkimKeys.signingKeys().keys.map { "\($0.key.domain)/\($0.key.selector)" }
    }

    @Test(arguments: Engine.all) func dkimKey_rotation_hasOneActivePerAlgorithm(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        let first = try add(test, "s1")
        #expect(first.state == .pending)
        #expect(try signing(test).isEmpty)
        #expect(try keys.activate(first.number, TestStore.change).replaced == nil)
        let second = try add(test, "s2")
        let other = try add(test, "e1", .ed25519)
        _ = try keys.activate(other.number, TestStore.change)
        #expect(try signing(test) == ["relay.example/s1", "relay.example/e1"])
        let later = Change(actor: "uid:0", now: TestStore.now + 5)
        let result = try keys.activate(second.number, later)
        #expect(result.key.state == .active)
        #expect(result.key.activatedAt == later.now)
        #expect(result.replaced?.selector == "s1")
        #expect(result.replaced?.state == .retiring)
        #expect(result.replaced?.deactivatedAt == later.now)
        #expect(result.replaced?.isPublished == true)
        #expect(try signing(test) == ["relay.example/s2", "relay.example/e1"])
        // The first key is activated again.
        #expect(try keys.activate(first.number, later).replaced?.selector == "s2")
        #expect(try signing(test) == ["relay.example/s1", "relay.example/e1"])
        #expect(try keys.activate(first.number, later).replaced == nil)
    }

    @Test(arguments: Engine.all) func dkimKey_active_isRetiredOnlyByForce(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        let key = try add(test, "s1", isActive: true)
        expectRefusal(.exists) { _ = try add(test, "s2", isActive: true) }
        expectRefusal(.unmet) { _ = try keys.retire(key.number, force: false, TestStore.change) }
        let retired = try keys.retire(key.number, force: true, TestStore.change)
        #expect(retired.state == .retired)
        #expect(retired.deactivatedAt == TestStore.now)
        #expect(!retired.isPublished)
        #expect(try signing(test).isEmpty)
        expectRefusal(.unmet) { _ = try keys.privateKey(retired) }
        expectRefusal(.unmet) { _ = try keys.activate(key.number, TestStore.change) }
        // A selector is never used twice, and a key that never signed is not reported as one that
        // did.
        expectRefusal(.exists) { _ = try add(test, "S1") }
        let unused = try add(test, "s3")
        #expect(try keys.retire(unused.number, force: false, TestStore.change).deactivatedAt == nil)
    }

    /// The record of a key must not be removed soon after its last signature.
    @Test(arguments: Engine.all) func dkimKey_recentlyReplaced_isNotRetired(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        let first = try add(test, "s1", isActive: true)
        _ = try keys.activate(try add(test, "s2").number, TestStore.change)
        func retire(after seconds: Int64) throws -> DKIMKey {
            try keys.retire(
                first.number, force: false, Change(actor: "uid:0", now: TestStore.now + seconds))
        }
        expectRefusal(.unmet) { _ = try retire(after: 120) }
        expectRefusal(.unmet) { _ = try retire(after: DKIMKeyRepository.publicationAfterUse - 1) }
        #expect(try retire(after: DKIMKeyRepository.publicationAfterUse).state == .retired)
    }

    @Test(arguments: Engine.all) func dkimKey_eachChange_raisesRevision(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        var seen = [try keys.revision()]
        #expect(seen == [0])
        let first = try add(test, "s1", isActive: true)
        seen.append(try keys.revision())
        let second = try add(test, "s2")
        seen.append(try keys.revision())
        _ = try keys.activate(second.number, TestStore.change)
        seen.append(try keys.revision())
        _ = try keys.retire(first.number, force: true, TestStore.change)
        seen.append(try keys.revision())
        #expect(Set(seen).count == seen.count)
        #expect(seen == seen.sorted())
        #expect(try keys.signingKeys().revision == seen.last)
    }

    @Test(arguments: Engine.all) func dkimKey_selectorOrDomain_mustBeValidAndUnique(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        _ = try add(test, "s1")
        #expect(try keys.key(selector: "S1", domain: nil).domain == "relay.example")
        _ = try add(test, "s1", domain: "Old-Relay.example")
        expectRefusal(.unmet) { _ = try keys.key(selector: "s1", domain: nil) }
        #expect(
            try keys.key(selector: "s1", domain: "OLD-relay.example").domain == "old-relay.example")
        expectRefusal(.notFound) { _ = try keys.key(selector: "s2", domain: nil) }
        for selector in [
            "", "-a", "a-", "a..b", ".a", "a_b", "é", String(repeating: "a", count: 64),
        ] {
            expectRefusal(.invalid) { _ = try add(test, selector) }
        }
        expectRefusal(.invalid) { _ = try add(test, "s9", domain: "elsewhere.example") }
        for number in 2...DKIMKeyRepository.maximumPerDomain { _ = try add(test, "x\(number)") }
        expectRefusal(.limit) { _ = try add(test, "one-too-many") }
    }

    @Test(arguments: Engine.all) func dkimKey_privateKey_isSealedAndBoundToItsName(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let keys = test.store.dkimKeys
        let first = try add(test, "s1", isActive: true)
        let second = try add(test, "s2")
        #expect(try keys.privateKey(first).pem == Self.pem + "s1")
        #expect(!"\(try keys.privateKey(first))".contains("PRIVATE KEY-"))
        let files = try FileManager.default.contentsOfDirectory(
            at: test.folder.url, includingPropertiesForKeys: nil)
        for file in files {
            #expect(
                try Data(contentsOf: file).range(of: Data("c2VjcmV0".utf8)) == nil,
                "the key stands in \(file.lastPathComponent)")
        }
        try test.database.write(.durable) { connection in
            try connection.run(
                """
                UPDATE dkim_keys SET private_sealed = (SELECT private_sealed FROM dkim_keys WHERE id = \(first.number)) WHERE id = \(second.number)
                """)
        }
        let error = #expect(throws: StoreFailure.self) { try keys.privateKey(second) }
        #expect(error?.code == .permanent(.unsealing))
    }

    @Test(arguments: Engine.all) func dkimKey_eachChange_isAudited(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let first = try add(test, "s1", isActive: true)
        let second = try add(test, "s2")
        _ = try test.store.dkimKeys.activate(second.number, TestStore.change)
        _ = try test.store.dkimKeys.retire(first.number, force: true, TestStore.change)
        let entries = try test.store.audit.entries().filter { $0.action.hasPrefix("keys.dkim.") }
        #expect(
            entries.map(\.action) == [
                "keys.dkim.retire", "keys.dkim.activate", "keys.dkim.generate",
                "keys.dkim.generate",
            ])
        #expect(entries.first?.subject == "dkim:s1._domainkey.relay.example")
        #expect(entries.allSatisfy { $0.actor == "uid:0" })
    }
}
