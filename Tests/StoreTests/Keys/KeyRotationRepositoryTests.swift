// Key replacement while the database contains values of old and new keys.

import Accounts
import Administration
import Database
import Decisions
import Foundation
import InternetMessage
import PasskeyTesting
import Relay
import Support
import TestSupport
import Testing

@Suite(.blocking) struct KeyRotationRepositoryTests {
    private static let second = (0..<32).map { UInt8(200 &+ $0) }
    private static let third = (0..<32).map { UInt8(100 &+ $0) }

    /// A ring with further seal and index keys, which are active.
    private static func rotated(_ ring: KeyRing) throws -> KeyRing {
        try #require(ring.adding(.seal, secret: second)?.adding(.index, secret: third)).activating(
            .seal
        ).activating(.index)
    }

    private static func pass(_ store: Store, limit: Int = 3) throws -> Int {
        var changed = 0
        var position: KeyRotationRepository.Position? = .start
        while let here = position {
            let step = try store.keyRotation.step(here, limit: limit)
            changed += step.changed
            position = step.next
        }
        return changed
    }

    private static func fill(_ test: TestStore) throws {
        for number in 1...8 { try test.user("u\(number)", name: "Name \(number)") }
        _ = try test.store.inboxes.add(
            user: "u1", TestStore.inbox("other@home.example"), isVerified: false, isReplyOnly: true,
            TestStore.change)
        let account = try test.address("u1").account.number
        try test.store.tokens.insert(
            "tok", purpose: .reverse, account: account,
            address: AddrSpec(localPart: "A B", domain: "c.example"), expiresAt: nil,
            now: 1)
        _ = try test.store.dkimKeys.add(
            domain: "relay.example", selector: "s1", algorithm: .rsa, bits: 2048,
            privateKey: DKIMPrivateKey(pem: "-----PEM-----"),
            isActive: true, TestStore.change)
    }

    @Test(arguments: Engine.all) func keyRotation_inProgress_readsAllValues(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let store = test.store
        try Self.fill(test)
        let velocity = try test.database.read {
            try $0.rows("SELECT velocity_index, tombstone_index FROM inboxes ORDER BY id")
        }
        .map(\.values)
        func check() throws {
            for number in 1...8 {
                #expect(try store.users.user("u\(number)").name == "Name \(number)")
                #expect(
                    try store.inboxes.userID(verified: TestStore.inbox("U\(number)@home.example"))
                        == "u\(number)")
            }
            #expect(
                try store.tokens.find("tok", purpose: .reverse, now: 1)?.address.domain
                    == "c.example")
            try Store.checkKeys(store.keys.current, of: test.database)
        }
        store.keys.exchange(try Self.rotated(TestStore.keys()))
        try check()
        // One batch: now some values have the new keys, and some the old ones.
        let step = try store.keyRotation.step(.start, limit: 3)
        #expect(step.changed == 3)
        let half = try store.keyRotation.step(try #require(try skipUsers(store)), limit: 3)
        #expect(half.changed == 3)
        #expect(try Set(store.keyRotation.usage().map(\.key)) == ["a", "b"])
        try check()
        // A search with another key must not allow the same inbox twice.
        expectRefusal(.exists) {
            _ = try store.inboxes.add(
                user: "u8", TestStore.inbox("u8@home.example"), isVerified: false,
                isReplyOnly: false, TestStore.change)
        }
        expectRefusal(.exists) {
            _ = try store.inboxes.add(
                user: "u1", TestStore.inbox("u7@home.example"), isVerified: true,
                isReplyOnly: false, TestStore.change)
        }
        try test.user("u9")
        #expect(try Self.pass(store) > 0)
        #expect(try Self.pass(store) == 0)
        #expect(try Set(store.keyRotation.usage().map(\.key)) == ["b"])
        try check()
        // A ring without the old keys.
        let ring = store.keys.current.removing(.seal, id: "a").removing(.index, id: "a")
        #expect(ring.seal.versions.count == 1 && ring.index.versions.count == 1)
        let fresh = Store(
            database: test.database, keys: try KeyRing(fileText: ring.fileText),
            relayDomains: ["relay.example"])
        for number in 1...8 {
            #expect(
                try fresh.inboxes.userID(verified: TestStore.inbox("u\(number)@home.example"))
                    == "u\(number)")
            #expect(try fresh.users.user("u\(number)").name == "Name \(number)")
        }
        try Store.checkKeys(ring, of: test.database)
        // Values that are compared over years are still found.
        let later = try test.database.read {
            try $0.rows("SELECT velocity_index, tombstone_index FROM inboxes ORDER BY id")
        }
        .map(\.values)
        #expect(Array(later.prefix(velocity.count)) == velocity)
    }

    @Test(arguments: Engine.all) func keyRotation_attestedDevice_assertsBeforeAndAfter(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, now) = (test.store, TestStore.now)
        _ = try store.apps.add(team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        let app = try #require(try store.clients.client("com.juice"))
        let team = app.teamNumber
        let authority = try TestDevice.Authority()
        let device = try TestDevice(authority)
        try store.attestedApps.add(
            team: "juice", clientID: "com.juice", appID: device.appID, environment: .production,
            root: authority.certificate,
            TestStore.change)
        func challenge() throws -> String {
            try store.devices.challenge(team: team, clientID: "com.juice", now: now).text
        }
        let text = try challenge()
        _ = try store.devices.attest(
            team: team, clientID: "com.juice", challenge: text, keyID: device.keyID,
            attestation: device.attestation(Array(text.utf8)), now: now)
        func assert(counter: UInt32) throws -> AttestedDevice {
            let clientData = Array(#"{"challenge":"\#(try challenge())"}"#.utf8)
            return try store.devices.assert(
                team: team, clientID: "com.juice", keyID: device.keyID,
                assertion: device.assertion(clientData, counter: counter), clientData: clientData,
                now: now)
        }
        let id = try assert(counter: 1).id
        store.keys.exchange(try Self.rotated(TestStore.keys()))
        #expect(try assert(counter: 2).id == id)
        #expect(try Self.pass(store) > 0)
        #expect(try Self.pass(store) == 0)
        store.keys.exchange(store.keys.current.removing(.seal, id: "a").removing(.index, id: "a"))
        #expect(try assert(counter: 3).assertions == 3)
        expectRefusal(.unmet) { _ = try assert(counter: 3) }
        let facts = try store.devices.facts(
            device: id, app: app.appNumber, account: "jane", now: now)
        #expect(facts.isAttested && facts.assertions == 3 && facts.accounts == 1)
        // The app's removal also deletes the device.
        try store.apps.remove(team: "juice", clientID: "com.juice", TestStore.change)
        #expect(try test.database.read { try $0.rows("SELECT id FROM devices") }.isEmpty)
    }

    private func skipUsers(_ store: Store) throws -> KeyRotationRepository.Position? {
        var position: KeyRotationRepository.Position? = .start
        while let here = position {
            let step = try store.keyRotation.step(here, limit: 1000)
            if step.seen == 0 { return step.next }
            position = step.next
        }
        return nil
    }

    @Test(arguments: Engine.all) func keyRotation_olderKeyFile_cannotWrite(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let stale = Store(
            database: test.database, keys: TestStore.keys(), relayDomains: ["relay.example"])
        test.store.keys.exchange(try Self.rotated(TestStore.keys()))
        _ = try stale.users.add(
            id: "before", name: nil, inbox: TestStore.inbox("before@home.example"),
            isVerified: true, TestStore.change)
        try test.store.keyRotation.demandActiveKeys(TestStore.change)
        let error = #expect(throws: StoreFailure.self) {
            _ = try stale.users.add(
                id: "after", name: nil, inbox: TestStore.inbox("after@home.example"),
                isVerified: true, TestStore.change)
        }
        #expect(error?.code == .temporary(.staleKeys))
        try test.user("after")
        // It still reads what it can, until the values of the old keys are converted.
        #expect(
            try stale.inboxes.userID(verified: TestStore.inbox("before@home.example")) == "before")
    }

    @Test(arguments: Engine.alone) func keyRotation_databaseFiles_holdNoKey(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try Self.fill(test)
        test.store.keys.exchange(try Self.rotated(TestStore.keys()))
        try test.store.keyRotation.demandActiveKeys(TestStore.change)
        _ = try Self.pass(test.store)
        let ring = test.store.keys.current
        let contents = try engine.contents(test.folder.url)
        func isFound(_ data: Data) -> Bool { contents.contains { $0.range(of: data) != nil } }
        #expect(isFound(Data("The Juice Company".utf8)))
        #expect(!isFound(Data("-----PEM-----".utf8)))
        for version in [ring.seal, ring.index, ring.token, ring.marks].flatMap(\.versions) {
            #expect(!isFound(Data(version.secret)))
            #expect(!isFound(Data(Hex.encode(version.secret).utf8)))
        }
        for secret in ["Name 1", "u1@home.example", "home.example"] {
            #expect(!isFound(Data(secret.utf8)), "\(secret)")
        }
    }

    @Test func keyRing_written_isReadBack() throws {
        let ring = TestStore.keys()
        let next = try #require(ring.adding(.index, secret: Self.second))
        #expect(next.adding(.index, secret: Self.third) == nil)
        #expect(try KeyRing(fileText: next.fileText) == next)
        #expect(next.marks.active == ring.index.active)
        let active = next.activating(.index)
        #expect(active.index.active.idText == "b" && active.index.old.map(\.idText) == ["a"])
        #expect(try KeyRing(fileText: active.fileText) == active)
        let done = active.removing(.index, id: "a")
        #expect(done.index.old.isEmpty && done.marks.active == ring.index.active)
        #expect(done.removing(.index, id: "b") == done)
        #expect(try KeyRing(fileText: done.fileText) == done)
        #expect(done.summary["index b"]?.hasPrefix("active ") == true)
        #expect(ring.activating(.seal) == ring)
    }
}
