// Codes that prove addresses, on both engines: each is valid once, for an hour and five tries, and
// no team can send endless mail.

import Accounts
import Database
import Dispatch
import InternetMessage
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct SourceCodeTests {
    private static let address = "team@partner.example"
    private static let hour: Int64 = 3600
    private static let day: Int64 = 86_400

    private static func at(_ seconds: Int64) -> Change {
        Change(actor: "key:k", now: TestStore.now + seconds)
    }

    private static func wrong(_ code: SourceCode, _ number: Int = 0) -> String {
        let digits = (Int(code.code) ?? 0) + 1 + number
        return String(String(digits + 1_000_000).suffix(6))
    }

    private static func serving(_ test: TestStore, team: String = "juice") throws -> [String] {
        try test.store.sources.sources(team: team).map { "\($0.kind) \($0.value)" }
    }

    /// A claim of juice, and its first code.
    private func claimed(_ test: TestStore, _ address: String = address) throws -> SourceCode {
        _ = try test.store.sourceClaims.claim(team: "juice", address, Self.at(0))
        return try #require(
            try test.store.sourceClaims.newCode(
                team: "juice", address: address, ifNone: true, Self.at(0)))
    }

    @Test(arguments: Engine.all) func sourceCode_correct_provesAddressUntilRemoved(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        let code = try claimed(test, "Team@Partner.Example")
        #expect(
            code.address.wireForm == Self.address && code.teamName == "The Juice Company"
                && "\(code)" == "<code of a source>")
        #expect(
            try claims.newCode(team: "juice", address: Self.address, ifNone: true, Self.at(9))
                == nil)
        #expect(try Self.serving(test).isEmpty)
        #expect(try test.store.sources.teams(registering: AddrSpec.typed(Self.address)).isEmpty)
        #expect(try claims.list(team: "juice", now: TestStore.now).map(\.state) == ["pending"])
        #expect(
            try claims.list(team: "juice", now: TestStore.now).first?.need
                == "the code that was mailed to it; tries left: 5")
        let proved = try claims.prove(
            team: "juice", address: Self.address, code: code.code, Self.at(60))
        #expect(proved.state == .proved && proved.provedAt == TestStore.now + 60)
        #expect(try Self.serving(test) == ["address \(Self.address)"])
        #expect(try test.store.sources.teams(registering: AddrSpec.typed(Self.address)).count == 1)
        #expect(
            try test.store.sources.teams(registering: AddrSpec.typed("other@partner.example"))
                .isEmpty)
        #expect(try claims.list(team: "juice", now: TestStore.now).map(\.need) == [nil])
        // No check ends it: it is never due, and no result changes it.
        #expect(try claims.due(now: TestStore.now + 4000 * Self.day, limit: 10).isEmpty)
        for proof in [SourceClaim.Proof.absent, .unanswered] {
            #expect(try claims.record(proof, of: proved, Self.at(100 * Self.day))?.state == .proved)
        }
        expectRefusal(.exists) {
            _ = try claims.newCode(team: "juice", address: Self.address, ifNone: false, Self.at(9))
        }
        #expect(
            try claims.prove(team: "juice", address: Self.address, code: "000000", Self.at(99))
                .state == .proved)
        #expect(
            try test.store.audit.entries(limit: 3).map(\.action) == [
                "source.prove", "source.code", "source.claim",
            ])
        try claims.remove(team: "juice", "TEAM@partner.example", Self.at(99))
        #expect(try Self.serving(test).isEmpty)
        // After another claim, the earlier code is not valid.
        _ = try claims.claim(team: "juice", Self.address, Self.at(100))
        expectRefusal(.unmet) {
            _ = try claims.prove(
                team: "juice", address: Self.address, code: code.code, Self.at(101))
        }
    }

    @Test(arguments: Engine.all) func sourceCode_fiveWrongTriesOrOneHour_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        let first = try claimed(test)
        func prove(_ code: String, at seconds: Int64 = 9) throws {
            _ = try claims.prove(team: "juice", address: Self.address, code: code, Self.at(seconds))
        }
        // A text that cannot be a code does not count as a try.
        for text in ["", "12345", "1234567", "12345x", "¹²³⁴⁵⁶"] {
            expectRefusal(.invalid) { try prove(text) }
        }
        for _ in 0..<5 { expectRefusal(.invalid) { try prove(Self.wrong(first)) } }
        // After five wrong codes the right one is not valid.
        expectRefusal(.unmet) { try prove(Self.wrong(first)) }
        expectRefusal(.unmet) { try prove(first.code) }
        #expect(
            try claims.list(team: "juice", now: TestStore.now).first?.need
                == "a new code: the team requests one (POST /v1/sources/code)")
        // Another code, which makes the previous one invalid, and ends after an hour.
        let second = try #require(
            try claims.newCode(team: "juice", address: Self.address, ifNone: true, Self.at(10)))
        if first.code != second.code { expectRefusal(.invalid) { try prove(first.code, at: 11) } }
        expectRefusal(.unmet) { try prove(second.code, at: 10 + Self.hour) }
        let third = try #require(
            try claims.newCode(
                team: "juice", address: Self.address, ifNone: true, Self.at(2 * Self.hour)))
        try prove(
            String(third.code.prefix(3) + "-" + third.code.dropFirst(3)), at: 2 * Self.hour + 1)
        #expect(try Self.serving(test).count == 1)
    }

    @Test(arguments: Engine.all) func sourceCode_overDailyLimits_isRefused(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        func mail(_ team: String, _ address: String, at seconds: Int64 = 0) throws {
            _ = try claims.claim(team: team, address, Self.at(seconds))
            _ = try claims.newCode(team: team, address: address, ifNone: false, Self.at(seconds))
        }
        for team in ["soda", "cola"] {
            _ = try test.store.teams.add(id: team, name: team, TestStore.change)
        }
        // Three for a team and mailbox, in every spelling, even if the claim was given up in
        // between.
        try mail("juice", "victim@gmail.com")
        try mail("juice", "vic.tim+1@gmail.com")
        try claims.remove(team: "juice", "victim@gmail.com", Self.at(0))
        try mail("juice", "victim@gmail.com")
        expectRefusal(.limit) { try mail("juice", "vic.tim@gmail.com") }
        // Six over all teams.
        for _ in 0..<3 { try mail("soda", "victim@gmail.com") }
        expectRefusal(.limit) { try mail("cola", "victim@gmail.com") }
        // Twenty for a team.
        for number in 0..<17 { try mail("juice", "a\(number)@partner.example") }
        expectRefusal(.limit) { try mail("juice", "more@partner.example", at: Self.day - 1) }
        try mail("cola", "more@partner.example")
        try mail("juice", "more@partner.example", at: Self.day)
        // Only messages that no limit counts are deleted.
        #expect(try claims.deleteExpiredCodes(now: TestStore.now + Self.day - 1) == 0)
        #expect(try claims.deleteExpiredCodes(now: TestStore.now + Self.day, limit: 20) == 20)
        while try claims.deleteExpiredCodes(now: TestStore.now + Self.day) > 0 {}
        #expect(
            try claims.codes(team: "juice", now: TestStore.now + Self.day).keys.sorted() == [
                "more@partner.example"
            ])
    }

    /// A mail server that is down for three minutes must not block an address for a day.
    @Test(arguments: Engine.all) func sourceCode_messageNotSent_doesNotCount(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        func fail(_ address: String, counts: Bool, at seconds: Int64) throws {
            let code = try #require(
                try claims.newCode(team: "juice", address: address, ifNone: true, Self.at(seconds)))
            try claims.withdraw(code, counts: counts, now: TestStore.now + seconds)
            expectRefusal(.unmet) {
                _ = try claims.prove(
                    team: "juice", address: address, code: code.code, Self.at(seconds))
            }
        }
        _ = try claims.claim(team: "juice", Self.address, Self.at(0))
        for second in Int64(0)..<30 { try fail(Self.address, counts: false, at: second) }
        for second in Int64(30)..<33 { try fail(Self.address, counts: true, at: second) }
        expectRefusal(.limit) { try fail(Self.address, counts: true, at: 33) }
        // These are limited too: sixty in an hour.
        _ = try claims.claim(team: "juice", "b@partner.example", Self.at(40))
        for second in Int64(40)..<70 { try fail("b@partner.example", counts: false, at: second) }
        expectRefusal(.limit) { try fail("b@partner.example", counts: false, at: 70) }
        try fail("b@partner.example", counts: false, at: Self.hour)
    }

    /// The tries of codes whose message was not sent must count, because they would be additional
    /// guesses.
    @Test(arguments: Engine.all) func sourceCode_wrongTriesOfUnsentCode_count(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        func prove(_ address: String, _ code: String) throws {
            _ = try claims.prove(team: "juice", address: address, code: code, Self.at(1))
        }
        for number in 0..<4 {
            let address = "a\(number)@partner.example"
            let code = try claimed(test, address)
            for _ in 0..<5 { expectRefusal(.invalid) { try prove(address, Self.wrong(code)) } }
            try claims.withdraw(code, counts: false, now: TestStore.now + 1)
        }
        let code = try claimed(test, "b@partner.example")
        expectRefusal(.limit) { try prove("b@partner.example", code.code) }
    }

    @Test(arguments: Engine.all) func sourceCode_manyWrongOfOneTeam_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        for number in 0..<4 {
            let code = try claimed(test, "a\(number)@partner.example")
            for _ in 0..<5 {
                expectRefusal(.invalid) {
                    _ = try claims.prove(
                        team: "juice", address: "a\(number)@partner.example",
                        code: Self.wrong(code), Self.at(1))
                }
            }
        }
        let code = try claimed(test, "b@partner.example")
        expectRefusal(.limit) {
            _ = try claims.prove(
                team: "juice", address: "b@partner.example", code: code.code, Self.at(1))
        }
    }

    /// Sixteen tries at the same time with one code: of wrong ones only five are compared, and of
    /// right ones only one proves the address.
    @Test(arguments: Engine.all) func sourceCode_concurrentTries_areCountedOneByOne(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        // One claim and one code, even with many concurrent requests.
        let sent = Mutex<[SourceCode]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            guard (try? claims.claim(team: "juice", Self.address, Self.at(0))) != nil,
                let code = try? claims.newCode(
                    team: "juice", address: Self.address, ifNone: true, Self.at(0))
            else { return }
            sent.withLock { $0.append(code) }
        }
        let codes = sent.withLock { $0 }
        #expect(codes.count == 1)
        #expect(try claims.claims(team: "juice").count == 1)
        let code = try #require(codes.first)
        let refused = Mutex<[StoreFailure.Code: Int]>([:])
        DispatchQueue.concurrentPerform(iterations: 16) { number in
            do {
                _ = try claims.prove(
                    team: "juice", address: Self.address, code: Self.wrong(code, number), Self.at(1)
                )
            } catch {
                refused.withLock {
                    $0[(error as? StoreFailure)?.code ?? .temporary(.busy), default: 0] += 1
                }
            }
        }
        #expect(refused.withLock { $0 } == [.refused(.invalid): 5, .refused(.unmet): 11])
        let next = try #require(
            try claims.newCode(team: "juice", address: Self.address, ifNone: false, Self.at(2)))
        let proved = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            if (try? claims.prove(team: "juice", address: Self.address, code: next.code, Self.at(3)))
                != nil
            {
                proved.withLock { $0 += 1 }
            }
        }
        #expect(proved.withLock { $0 } == 8)
        #expect(try Self.serving(test) == ["address \(Self.address)"])
        #expect(try test.store.audit.entries().filter { $0.action == "source.prove" }.count == 1)
    }

    @Test(arguments: Engine.all) func sourceClaim_addressUnproved_isDeletedAfterFortnight(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        _ = try claimed(test)
        #expect(try claims.due(now: TestStore.now + 14 * Self.day - 1, limit: 10).isEmpty)
        let due = try #require(try claims.due(now: TestStore.now + 14 * Self.day, limit: 10).first)
        #expect(try claims.record(.absent, of: due, Self.at(14 * Self.day)) == nil)
        #expect(try claims.claims(team: "juice").isEmpty)
    }

    /// A claim without a source must be removable with the command that lists it.
    @Test(arguments: Engine.all) func sourceClaim_administratorAddsOrRemoves_ends(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, claims) = (test.store, test.store.sourceClaims)
        let code = try claimed(test)
        try store.sources.remove(
            team: "juice", "Team@partner.example", envelopeDomain: nil, TestStore.change)
        #expect(try claims.claims(team: "juice").isEmpty)
        expectRefusal(.notFound) {
            try store.sources.remove(
                team: "juice", Self.address, envelopeDomain: nil, TestStore.change)
        }
        expectRefusal(.notFound) {
            _ = try claims.prove(team: "juice", address: Self.address, code: code.code, Self.at(1))
        }
        _ = try claims.claim(team: "juice", Self.address, Self.at(2))
        try store.sources.add(
            team: "juice",
            store.sources.checked(Self.address, envelopeDomain: nil, now: TestStore.now),
            TestStore.change)
        #expect(try Self.serving(test) == ["address \(Self.address)"])
        #expect(try claims.claims(team: "juice").isEmpty)
        expectRefusal(.exists) { _ = try claims.claim(team: "juice", Self.address, Self.at(3)) }
        // All of it is deleted with its team.
        _ = try claims.claim(team: "juice", "b@partner.example", Self.at(4))
        try store.teams.remove("juice", TestStore.change)
        #expect(try claims.due(now: .max, limit: 10).isEmpty)
    }
}
