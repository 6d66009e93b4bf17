// Addresses stored under a token.

import Accounts
import Database
import Foundation
import InternetMessage
import RelayCore
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct StoredTokenRepositoryTests {
    private let odd = AddrSpec(localPart: "Odd \"quoted\" @ part", domain: "[IPv6:2001:db8::1]")

    @Test(arguments: Engine.all) func token_insertedTwice_isFoundInAnyCase(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        for _ in 0..<2 {
            try tokens.insert(
                "abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        }
        let found = try #require(try tokens.find("ABC", purpose: .reverse, now: 365 * 86_400))
        #expect(found.accountNumber == account)
        #expect(found.address.localPart == odd.localPart)
        #expect(found.address.domain == odd.domain)
        #expect(found.expiresAt == Int64(366 * 86_400))
        #expect(try tokens.find("abc", purpose: .returnPath, now: 1) == nil)
        #expect(try tokens.find("abd", purpose: .reverse, now: 1) == nil)
    }

    @Test(arguments: Engine.all) func token_otherAddress_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        try tokens.insert(
            "abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        let other = AddrSpec(localPart: "other", domain: "a.example")
        let error = #expect(throws: StoreFailure.self) {
            try tokens.insert(
                "abc", purpose: .reverse, account: account, address: other, expiresAt: nil, now: 1)
        }
        #expect(error?.code == .permanent(.constraint))
        #expect(throws: StoreFailure.permanent(.constraint)) {
            try tokens.insert(
                "abc", purpose: .returnPath, account: account, address: odd, expiresAt: 5, now: 1)
        }
        #expect(throws: StoreFailure.permanent(.constraint)) {
            try tokens.insert(
                "new", purpose: .reverse, account: account + 1, address: odd, expiresAt: nil, now: 1
            )
        }
    }

    @Test(arguments: Engine.all) func token_oneOfManyInsertsFails_keepsTheOthers(
        _ engine: Engine
    ) async throws {
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
                            "t\(number)", purpose: number % 2 == 0 ? .reverse : .returnPath,
                            account: number == 41 ? account + 1 : account,
                            address: AddrSpec(localPart: "bounce+\(number)", domain: "a.example"),
                            expiresAt: number % 2 == 0 ? nil : 500,
                            now: 1, in: commits)
                        return nil
                    } catch {
                        return (error as? StoreFailure)?.code == .permanent(.constraint)
                            ? number : -1
                    }
                }
            }
            return await group.reduce(into: [Int]()) { failed, number in
                if let number { failed.append(number) }
            }
        }
        #expect(failed == [41])
        for number in [0, 1, 98, 99] {
            let found = try tokens.find(
                "t\(number)", purpose: number % 2 == 0 ? .reverse : .returnPath, now: 1)
            #expect(found?.address.localPart == "bounce+\(number)")
        }
        commits.close()
        #expect(throws: StoreFailure.temporary(.resources)) {
            try tokens.insert(
                "late", purpose: .returnPath, account: account, address: odd, expiresAt: 500,
                now: 1, in: commits)
        }
    }

    @Test(arguments: Engine.all) func token_expired_isNotFoundAndDeleted(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        let day: Int64 = 86_400
        try tokens.insert(
            "early", purpose: .returnPath, account: account, address: odd, expiresAt: day, now: 1)
        try tokens.insert(
            "late", purpose: .returnPath, account: account, address: odd, expiresAt: day, now: 1)
        try tokens.insert(
            "late", purpose: .returnPath, account: account, address: odd, expiresAt: 3 * day, now: 2
        )
        try tokens.insert(
            "ever", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        // The first is kept a day longer than needed, one that came again a week.
        #expect(try tokens.find("early", purpose: .returnPath, now: 2 * day - 1) != nil)
        #expect(try tokens.find("early", purpose: .returnPath, now: 2 * day) == nil)
        #expect(
            try tokens.find("late", purpose: .returnPath, now: 10 * day - 1)?.expiresAt == 10 * day)
        #expect(try tokens.deleteExpired(now: 9 * day) == 1)
        #expect(try tokens.deleteExpired(now: 10 * day) == 1)
        #expect(try tokens.find("ever", purpose: .reverse, now: 300 * day) != nil)
    }

    /// A token does not depend on the letter case of a domain beyond ASCII. Otherwise its row would
    /// look like another address's, and the mail would be deferred.
    @Test(arguments: Engine.all) func token_nonASCIIDomainInAnyCase_isSame(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        for domain in ["MÜLLER.example", "müller.example"] {
            try test.store.tokens.insert(
                "abc", purpose: .returnPath, account: account,
                address: AddrSpec(localPart: "x", domain: domain), expiresAt: 5,
                now: 1)
        }
        #expect(throws: StoreFailure.permanent(.constraint)) {
            try test.store.tokens.insert(
                "abc", purpose: .returnPath, account: account,
                address: AddrSpec(localPart: "X", domain: "müller.example"),
                expiresAt: 5, now: 1)
        }
    }

    /// The messages of a sender with a long address must not each wait for a write.
    @Test(arguments: Engine.all) func token_knownSender_isNotWrittenAgain(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let changes = Mutex(0)
        let recorder = RecordingDatabase(
            test.database, beforeWrite: { changes.withLock { $0 += 1 } })
        let tokens = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]
        ).tokens
        let day: Int64 = 86_400
        func mail(
            on today: Int64, _ token: String = "sender", address: AddrSpec? = nil
        ) throws -> (changes: Int, expiry: Int64?) {
            changes.withLock { $0 = 0 }
            try tokens.insert(
                token, purpose: .returnPath, account: account, address: address ?? odd,
                expiresAt: (today + 15) * day,
                now: today * day + 5)
            return (
                changes.withLock { $0 },
                try tokens.find(token, purpose: .returnPath, now: today * day)?.expiresAt
            )
        }
        #expect(try mail(on: 100) == (1, 116 * day))
        #expect(try mail(on: 100) == (0, 116 * day))
        #expect(try mail(on: 101) == (0, 116 * day))
        // Every day from here on: written once in eight days.
        #expect(try mail(on: 102) == (1, 124 * day))
        for today: Int64 in 102...109 {
            #expect(try mail(on: today) == (0, 124 * day), "day \(today)")
        }
        #expect(try mail(on: 110) == (1, 132 * day))
        // It never expires before its last message needs it, and it stays one row.
        #expect(try test.database.value("SELECT COUNT(*) FROM stored_tokens") as Int64? == 1)
        // An expired row that is not deleted yet is used again like a new one.
        #expect(try tokens.find("sender", purpose: .returnPath, now: 132 * day) == nil)
        #expect(try mail(on: 140) == (1, 162 * day))
        #expect(try tokens.deleteExpired(now: 162 * day) == 1)
        #expect(try mail(on: 170) == (1, 186 * day))
        // A known row is compared without a write, too.
        let error = #expect(throws: StoreFailure.self) {
            try mail(on: 170, address: AddrSpec(localPart: "other", domain: "a.example"))
        }
        #expect(error?.code == .permanent(.constraint) && changes.withLock { $0 } == 0)
    }

    /// Two hosts, and several sessions of each, get the first messages of a sender at the same
    /// time.
    @Test(arguments: Engine.all) func token_concurrentFirstMessages_makesOneRow(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let hosts = [GroupCommit(test.database), GroupCommit(test.database)]
        defer { for host in hosts { host.close() } }
        let address = odd
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask {
                    // In both orders, so that the hosts may wait for each other.
                    for sender in number % 4 < 2 ? ["s1", "s2"] : ["s2", "s1"] {
                        try test.store.tokens.insert(
                            sender, purpose: .returnPath, account: account, address: address,
                            expiresAt: Int64(number % 3 + 15) * 86_400, now: 1,
                            in: hosts[number % 2])
                    }
                }
            }
            try await group.waitForAll()
        }
        for sender in ["s1", "s2"] {
            let found = try #require(
                try test.store.tokens.find(sender, purpose: .returnPath, now: 1))
            #expect(found.expiresAt >= 17 * 86_400 && found.address.localPart == odd.localPart)
        }
        #expect(try test.database.value("SELECT COUNT(*) FROM stored_tokens") as Int64? == 2)
    }

    private func new(_ numbers: Range<Int>) -> [StoredAddress] {
        numbers.map {
            StoredAddress(
                token: "t\($0)", address: AddrSpec(localPart: "Long.\($0)", domain: "a.example"))
        }
    }

    /// A team must not create any number of rows for an account.
    @Test(arguments: Engine.all) func token_newAddressesOverDailyLimit_areRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        try test.user("u2")
        let accounts = try [test.address("u1").account.number, test.address("u2").account.number]
        let tokens = test.store.tokens
        func store(_ numbers: Range<Int>, day: Int64, account: Int = 0) throws -> Bool {
            try tokens.store(
                new(numbers), account: accounts[account], day: day, newPerDay: 10, now: day * 86_400
            )
        }
        #expect(try store(0..<8, day: 3))
        #expect(try !store(5..<11, day: 3), "three are new, and two would fit")
        for number in 8..<11 {
            #expect(try tokens.find("t\(number)", purpose: .reverse, now: 1) == nil, "all or none")
        }
        #expect(try store(0..<10, day: 3))
        #expect(try store(0..<10, day: 3), "what is known is not new")
        #expect(try !store(10..<11, day: 3))
        #expect(try store(10..<20, day: 4))
        #expect(try store(100..<110, day: 4, account: 1), "another account has a limit of its own")
        // Return paths expire within days, and are as many as messages, so this limit does not
        // count them.
        let path = StoredAddress(token: "p", address: odd, expiryDay: 8)
        #expect(
            try tokens.store([path], account: accounts[0], day: 4, newPerDay: 10, now: 4 * 86_400))
        #expect(
            try !tokens.store(
                [path] + new(30..<31), account: accounts[0], day: 4, newPerDay: 10, now: 4 * 86_400)
        )
        #expect(
            try test.store.counters.count(account: accounts[0], kind: .addressesStored, day: 3)
                == 10)
    }

    /// Two hosts at the same time.
    @Test(arguments: Engine.all) func token_concurrentStores_keepDailyLimit(
        _ engine: Engine
    ) async throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let stored = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                group.addTask {
                    try test.store.tokens.store(
                        new((3 * number)..<(3 * number + 3)), account: account, day: 1,
                        newPerDay: 30, now: 86_400)
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(stored == 10)
        #expect(
            try test.store.counters.count(account: account, kind: .addressesStored, day: 1) == 30)
    }

    /// Tokens that no mail uses must not be kept for ever.
    @Test(arguments: Engine.all) func token_unusedForAYear_isDeleted(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        let tokens = test.store.tokens
        let day: Int64 = 86_400
        func forward(_ number: Int, on today: Int64) throws {
            #expect(
                try tokens.store(
                    new(number..<(number + 1)), account: account, day: today, newPerDay: 10,
                    now: today * day))
        }
        for number in 0..<3 { try forward(number, on: 0) }
        // A forward uses one, a reply another, and no mail the third.
        try forward(0, on: 300)
        let met = try #require(try tokens.find("t1", purpose: .reverse, now: 300 * day))
        try tokens.keep(met, "T1", now: 300 * day)
        #expect(try tokens.deleteExpired(now: 365 * day) == 0)
        #expect(try tokens.deleteExpired(now: 366 * day) == 1)
        #expect(try tokens.find("t2", purpose: .reverse, now: 366 * day) == nil)
        for token in ["t0", "t1"] {
            #expect(
                try tokens.find(token, purpose: .reverse, now: 366 * day)?.expiresAt == 666 * day,
                "\(token)")
        }
        // Within a month after the last write nothing is written.
        try forward(0, on: 320)
        #expect(try tokens.find("t0", purpose: .reverse, now: 1)?.expiresAt == 666 * day)
        // An expired row that is used before its deletion is used again like a new one.
        #expect(try tokens.find("t1", purpose: .reverse, now: 700 * day) == nil)
        try forward(1, on: 700)
        #expect(try tokens.find("t1", purpose: .reverse, now: 700 * day) != nil)
    }

    @Test(arguments: Engine.all) func token_accountRemoved_isDeleted(_ engine: Engine) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        let account = try test.address("u1").account.number
        try test.store.tokens.insert(
            "abc", purpose: .reverse, account: account, address: odd, expiresAt: nil, now: 1)
        #expect(try test.store.tokens.find("abc", purpose: .reverse, now: 1) != nil)
        try test.store.users.remove("u1", TestStore.change)
        #expect(try test.store.tokens.find("abc", purpose: .reverse, now: 1) == nil)
    }
}

extension StoredTokenRepository {
    /// One token of any account and day.
    func insert(
        _ token: String, purpose: StoredTokenPurpose, account: Int64, address: AddrSpec,
        expiresAt: Int64?, now: Int64,
        in commits: GroupCommit? = nil
    ) throws {
        // Whole days, as in return paths.
        let new = StoredAddress(
            token: token, address: address,
            expiryDay: expiresAt.map { UInt64(max(0, $0 / 86_400 - 1)) })
        _ = try store(
            [new], account: account, day: Day.number(now), newPerDay: .max, now: now, in: commits)
    }

    /// For the account of a row.
    func store(
        _ tokens: [StoredAddress], account: Int64, day: Int64, newPerDay: Int, now: Int64,
        in commits: GroupCommit? = nil
    ) throws -> Bool {
        try store(
            tokens, account: TestStore.number(account), day: day, newPerDay: newPerDay, now: now,
            in: commits)
    }
}
