// A stolen database shows no inbox and no name.

import Accounts
import Database
import Foundation
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct SecrecyTests {
    @Test(arguments: Engine.alone) func databaseFiles_inboxAndName_areNotReadable(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user(
            "u1", inbox: "Secretive.Person+x@private-home.example", name: "Jane Quietly Doe")
        _ = try test.store.inboxes.add(
            user: "u1", TestStore.inbox("second.secret@private-home.example"), isVerified: true,
            isReplyOnly: true,
            TestStore.change)
        let address = try test.address("u1")
        let correspondent = AddrSpec(localPart: "Odd Correspondent", domain: "odd-home.example")
        try test.store.tokens.insert(
            "tokentext", purpose: .reverse, account: address.account.number, address: correspondent,
            expiresAt: nil, now: 1)
        _ = try test.store.inboxes.confirm(user: "u1", .number(1), TestStore.change)
        for entry in try test.store.audit.entries() {
            #expect(!"\(entry)".contains("private-home"))
        }
        let contents = try engine.contents(test.folder.url)
        func isFound(_ text: String) -> Bool {
            contents.contains { $0.range(of: Data(text.utf8)) != nil }
        }
        // Text that is in clear is found, so the search works.
        #expect(isFound("The Juice Company"))
        #expect(isFound(address.address.localPart))
        #expect(isFound("tokentext"))
        for secret in [
            "Secretive", "secretive", "private-home", "second.secret", "Jane", "Quietly",
            "Odd Correspondent", "odd-home.example",
        ] {
            #expect(!isFound(secret), "\(secret) stands in the database")
        }
    }

    @Test(arguments: Engine.all) func sealedInbox_otherKeyFile_isNotUnsealed(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1", name: "Jane")
        let address = try test.address("u1").address
        let other = Store(
            database: test.database, keys: TestStore.keys(first: 100),
            relayDomains: ["relay.example"])
        let error = #expect(throws: StoreFailure.self) {
            try other.relay.relayAddress(localPart: address.localPart, domain: address.domain)
        }
        #expect(error?.code == .permanent(.unsealing))
        #expect(throws: StoreFailure.permanent(.unsealing)) { try other.users.user("u1") }
        #expect(try other.inboxes.userID(verified: TestStore.inbox("u1@home.example")) == nil)
    }

    @Test(arguments: Engine.all) func keyFile_ofOtherDatabase_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try Store.checkKeys(TestStore.keys(), of: test.database)
        try Store.checkKeys(TestStore.keys(), of: test.database)
        let error = #expect(throws: StoreFailure.self) {
            try Store.checkKeys(TestStore.keys(first: 100), of: test.database)
        }
        #expect(error?.code == .permanent(.unsealing))
    }

    @Test(arguments: Engine.all) func sealedInbox_movedToOtherRow_isNotUnsealed(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        try test.database.write(.durable) { connection in
            try connection.run(
                """
                UPDATE inboxes SET address_sealed = (SELECT address_sealed FROM inboxes WHERE user_id = 1) WHERE user_id = 2
                """)
        }
        let error = #expect(throws: StoreFailure.self) {
            try test.store.inboxes.inboxes(user: "u2")
        }
        #expect(error?.code == .permanent(.unsealing))
    }

    @Test(arguments: Engine.all) func sealedInbox_anyLength_hasSameSize(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1", inbox: "a@b.example")
        try test.user("u2", inbox: "a-considerably-longer-name@mail.home.example")
        let lengths = try test.database.read { connection in
            try connection.values("SELECT address_sealed FROM inboxes", [UInt8].self).map(\.count)
        }
        #expect(lengths.count == 2)
        #expect(lengths[0] == lengths[1])
    }

    @Test func description_privateValues_areHidden() throws {
        let test = try TestStore(.sqlite)
        let user = try test.user("u1", inbox: "hidden@home.example", name: "Jane")
        let inboxes = try test.store.inboxes.inboxes(user: "u1")
        var dumped = "\(user) \(inboxes)"
        let address = try test.store.addresses.issue(
            team: "juice", user: "u1", sharesName: true, TestStore.change
        ).address
        let account = try test.store.relay.account(number: address.account.number, day: 0)
        let record = try test.store.relay.relayAddress(
            localPart: address.address.localPart, domain: "relay.example")
        #expect(account?.sharedName == "Jane")
        dump((user, inboxes, TestStore.keys(), account, record), to: &dumped)
        dumped += "\(String(describing: account)) \(String(describing: record))"
        #expect(!dumped.contains("hidden"))
        #expect(!dumped.contains("Jane"))
        #expect(!dumped.contains("secret"))
    }
}

@Suite(.blocking) struct KeyFileTests {
    @Test func keyFile_written_isReadBack() throws {
        let keys = TestStore.keys()
        #expect(try KeyRing(fileText: keys.fileText) == keys)
    }

    @Test func keyFile_crlfLineEndings_isRead() throws {
        let text = TestStore.keys().fileText.replacing("\n", with: "\r\n")
        #expect(try KeyRing(fileText: text) == TestStore.keys())
    }

    /// Never traps, and accepts only 32 octets in hexadecimal.
    @Test func keyFile_damaged_isRefused() {
        var random = SystemRandomNumberGenerator()
        let text = Array(TestStore.keys().fileText.utf8)
        for _ in 0..<500 {
            var damaged = text
            for _ in 0..<3 {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            damaged.removeLast(Int.random(in: 0..<damaged.count, using: &random))
            guard let keys = try? KeyRing(fileText: String(decoding: damaged, as: UTF8.self)) else {
                continue
            }
            for set in [keys.seal, keys.index, keys.token] {
                #expect(set.versions.allSatisfy { $0.secret.count == KeyRing.keyLength })
                #expect(set.versions.contains(set.active))
            }
        }
        // A text that is cut anywhere lacks a key or a part of one; only the last line end may be
        // missing.
        for length in 0..<text.count - 1 {
            #expect(throws: KeyFileError.self, "\(length)") {
                try KeyRing(fileText: String(decoding: text[..<length], as: UTF8.self))
            }
        }
        let sign = TestStore.keys().fileText.replacing("seal a active 00", with: "seal a active +0")
        #expect(throws: KeyFileError.self) { try KeyRing(fileText: sign) }
    }

    @Test func keyFile_oldVersion_isStillRead() throws {
        let secret = String(repeating: "0f", count: 32)
        let text =
            TestStore.keys().fileText
            .replacing("token a active", with: "token a old") + "token b active \(secret)\n"
        let keys = try KeyRing(fileText: text)
        #expect(keys.token.active.idText == "b")
        #expect(keys.token[UInt8(ascii: "a")] == TestStore.keys().token.active)
        #expect(keys.token[UInt8(ascii: "c")] == nil)
    }

    @Test(arguments: [
        ("seal a active 00", 1), ("color a active \(String(repeating: "00", count: 32))", 1),
        ("seal A active x", 1),
        ("seal a maybe \(String(repeating: "00", count: 32))", 1), ("# only a comment\n", 0),
        ("\n\nseal a active", 3),
    ])
    func keyFile_malformedLine_isRefused(_ text: String, _ line: Int) throws {
        let error = #expect(throws: KeyFileError.self) { try KeyRing(fileText: text) }
        #expect(error?.line == line)
    }

    @Test func keyFile_duplicateKey_isRefused() throws {
        let text = TestStore.keys().fileText
        let secret = String(repeating: "0f", count: 32)
        #expect(throws: KeyFileError.self) {
            try KeyRing(fileText: text + "token a old \(secret)\n")
        }
        #expect(throws: KeyFileError.self) {
            try KeyRing(fileText: text + "token b active \(secret)\n")
        }
        #expect(throws: KeyFileError.self) {
            try KeyRing(fileText: text + "index b old \(secret)\n")
        }
        let mark = "mark a active \(secret)\n"
        #expect(throws: Never.self) {
            try KeyRing(fileText: text + mark + "index b old \(secret)\n")
        }
        #expect(throws: KeyFileError.self) {
            try KeyRing(fileText: text + mark + "mark b old \(secret)\n")
        }
        #expect(throws: KeyFileError.self) {
            try KeyRing(fileText: text + mark + "index b old \(secret)\nindex c old \(secret)\n")
        }
    }
}
