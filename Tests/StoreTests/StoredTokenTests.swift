// Addresses kept under a token.

import InternetMessage
import PosternStore
import Testing

@Suite struct StoredTokenTests {
    private let odd = AddrSpec(localPart: "Odd \"quoted\" @ part", domain: "[IPv6:2001:db8::1]")

    @Test(arguments: Engine.all) func writtenOnceAndFoundInAnyLetterCase(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        for _ in 0..<2 {
            try tokens.insert("abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        }
        let found = try #require(try tokens.find("ABC", purpose: .reverse, now: 1 << 40))
        #expect(found.accountNumber == account)
        #expect(found.address.localPart == odd.localPart)
        #expect(found.address.domain == odd.domain)
        #expect(found.expiresAt == nil)
        #expect(try tokens.find("abc", purpose: .returnPath, now: 1) == nil)
        #expect(try tokens.find("abd", purpose: .reverse, now: 1) == nil)
    }

    @Test(arguments: Engine.all) func neverStandsForAnotherAddress(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        try tokens.insert("abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        let other = AddrSpec(localPart: "other", domain: "a.example")
        let error = #expect(throws: PermanentStoreError.self) {
            try tokens.insert("abc", purpose: .reverse, account: account, address: other, expiresAt: nil, now: 1)
        }
        #expect(error?.code == .constraint)
        #expect(throws: PermanentStoreError.self) {
            try tokens.insert("abc", purpose: .returnPath, account: account, address: odd, expiresAt: 5, now: 1)
        }
        #expect(throws: PermanentStoreError.self) {
            try tokens.insert("new", purpose: .reverse, account: account + 1, address: odd, expiresAt: nil, now: 1)
        }
    }

    @Test(arguments: Engine.all) func manyAreWrittenTogetherAndOneThatCannotBeFailsAlone(_ engine: Engine) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        let commits = GroupCommit(test.database)
        defer { commits.close() }
        let failed = await withTaskGroup(of: Int?.self) { group in
            for number in 0..<100 {
                group.addTask {
                    do {
                        try tokens.insert(
                            "t\(number)", purpose: number % 2 == 0 ? .reverse : .returnPath, account: number == 41 ? account + 1 : account,
                            address: AddrSpec(localPart: "bounce+\(number)", domain: "a.example"), expiresAt: number % 2 == 0 ? nil : 500,
                            now: 1, in: commits)
                        return nil
                    } catch is PermanentStoreError {
                        return number
                    } catch {
                        return -1
                    }
                }
            }
            return await group.reduce(into: [Int]()) { failed, number in if let number { failed.append(number) } }
        }
        #expect(failed == [41])
        for number in [0, 1, 98, 99] {
            let found = try tokens.find("t\(number)", purpose: number % 2 == 0 ? .reverse : .returnPath, now: 1)
            #expect(found?.address.localPart == "bounce+\(number)")
        }
        commits.close()
        #expect(throws: TemporaryStoreError.self) {
            try tokens.insert("late", purpose: .returnPath, account: account, address: odd, expiresAt: 500, now: 1, in: commits)
        }
    }

    @Test(arguments: Engine.all) func expires(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        try tokens.insert("early", purpose: .returnPath, account: account, address: odd, expiresAt: 100, now: 1)
        try tokens.insert("late", purpose: .returnPath, account: account, address: odd, expiresAt: 100, now: 1)
        try tokens.insert("late", purpose: .returnPath, account: account, address: odd, expiresAt: 200, now: 2)
        try tokens.insert("ever", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        #expect(try tokens.find("early", purpose: .returnPath, now: 99) != nil)
        #expect(try tokens.find("early", purpose: .returnPath, now: 100) == nil)
        #expect(try tokens.find("late", purpose: .returnPath, now: 199)?.expiresAt == 200)
        #expect(try tokens.deleteExpired(now: 150) == 1)
        #expect(try tokens.deleteExpired(now: 250) == 1)
        #expect(try tokens.find("ever", purpose: .reverse, now: 1 << 40) != nil)
    }

    @Test(arguments: Engine.all) func goesWithItsAccount(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        try test.store.tokens.insert("abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        try test.store.users.remove("u1", TestStore.change)
        #expect(try test.store.tokens.find("abc", purpose: .reverse, now: 1) == nil)
    }
}
