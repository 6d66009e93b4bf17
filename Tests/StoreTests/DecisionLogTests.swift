// The decision log, the changes written with it, and the outcomes that teams report.

import Accounts
import Database
import Decisions
import Foundation
import InternetMessage
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct DecisionLogTests {
    private static let now = TestStore.now

    @Test(arguments: Engine.all) func decisionLog_record_isReadAsWritten(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        var record = try test.record(
            "rd_a", challenges: ["email_code", "reauthenticate"], mark: [1, 2])
        record.reasons = ["INBOX_RECYCLED", "B"]
        record.wireReasons = ["ACCOUNT_HISTORY", "B"]
        record.asked = ["r1", "r2"]
        record.skips = ["s1"]
        record.waived = ["w1"]
        record.missing = ["m1"]
        record.errors = ["e1"]
        record.shadow = ["h1"]
        record.overriddenBy = "event == \"sign_up\""
        record.signals = #"{"event":"sign_up"}"#
        record.realUserStatus = 1
        record.upgradeResult = "failure"
        record.isDegraded = true
        let log = test.inner.store.decisions
        try log.insert([record, record])
        let logged = try #require(try log.decision("rd_a"))
        #expect(logged.record == record)
        #expect(logged.teamID == "juice")
        #expect(try log.decision("rd_a", team: record.teamNumber + 1) == nil)
        #expect(try log.decision("rd_b") == nil)
    }

    @Test(arguments: Engine.all) func decisionLog_filteredPages_continueInOrder(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let log = test.inner.store.decisions
        try log.insert(
            (0..<1_203).map { number in
                var record = try test.record("rd_\(number)", at: Self.now + Int64(number))
                if number % 100 == 0 { record.asked = ["rare"] }
                record.reasons = number % 2 == 0 ? ["EVEN"] : ["ODD"]
                return record
            })
        func walked(_ filter: DecisionFilter) throws -> [String] { try self.walked(log, filter) }
        #expect(
            try log.newest(DecisionFilter(), limit: 3).map(\.record.id) == [
                "rd_1202", "rd_1201", "rd_1200",
            ])
        #expect(
            try log.newest(DecisionFilter(until: Self.now + 2), limit: 9).map(\.record.id) == [
                "rd_1", "rd_0",
            ])
        let rare = stride(from: 0, through: 1_200, by: 100).map { "rd_\($0)" }
        #expect(
            try log.newest(DecisionFilter(rule: "rare"), limit: 99).map(\.record.id)
                == rare.reversed())
        #expect(try walked(DecisionFilter()) == (0..<1_203).map { "rd_\($0)" })
        #expect(
            try walked(DecisionFilter(since: Self.now + 100, rule: "rare"))
                == Array(rare.dropFirst()))
        #expect(try walked(DecisionFilter(until: Self.now + 4, reason: "ODD")) == ["rd_1", "rd_3"])
        #expect(try log.count(DecisionFilter(since: Self.now + 1_000, team: "juice")) == 203)
        expectRefusal(.notFound) { _ = try log.count(DecisionFilter(team: "nobody")) }
        var deleted = 0
        while case let count = try log.deleteExpired(before: Self.now + 1_200), count > 0 {
            deleted += count
        }
        #expect(deleted == 1_200)
        #expect(try log.newest(DecisionFilter(), limit: 9).count == 3)
    }

    private func walked(_ log: DecisionRepository, _ filter: DecisionFilter) throws -> [String] {
        var ids: [String] = []
        try log.walk(filter) { ids += $0.map(\.record.id) }
        return ids
    }

    /// Two hosts write in no particular order, and many decisions are in one second.
    @Test(arguments: Engine.all) func decisionLog_manyInOneSecond_isPagedByTime(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let log = test.inner.store.decisions
        let late = try (0..<700).map { try test.record("rd_b\($0)", at: Self.now + 1) }
        let early = try (0..<700).map { try test.record("rd_a\($0)", at: Self.now) }
        try log.insert(late)
        try log.insert(early)
        let inOrder = (early + late).map(\.id)
        #expect(try walked(log, DecisionFilter()) == inOrder)
        #expect(
            try log.newest(DecisionFilter(), limit: 1_400).map(\.record.id) == inOrder.reversed())
    }

    @Test(arguments: Engine.all) func decisionWrite_externalSubject_makesGrantWithoutUser(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let subject = GrantSubject.external(issuer: "https://issuer.example", subject: "001.abc")
        #expect(try test.settle(subject, isVerified: false) == .written(grant: nil))
        #expect(try test.history(subject) == nil)
        try test.settle(subject, isVerified: true, status: 1)
        let history = try #require(try test.history(subject))
        #expect(history.isExternal)
        #expect(history.userNumber == nil)
        #expect(history.inbox == nil)
        #expect(history.hasEmail == nil)
        #expect(history.grant?.realUserStatus == 1)
        // A backend names the account by the issuer's subject.
        #expect(try test.history(.named("001.abc"))?.accountNumber == history.accountNumber)
        try test.settle(subject, isVerified: true, status: 2, at: Self.now + 9)
        let later = try #require(try test.history(subject))
        #expect(later.grant?.realUserStatus == 1, "the first status stays")
        #expect(later.grant?.firstAskedAt == Self.now)
        #expect(later.grant?.lastSeenAt == Self.now + 9)
        try test.inner.store.decisionWrites.noteExternalForwarding(
            issuer: "https://issuer.example", subject: "001.abc", team: test.app().teamNumber,
            isOn: false)
        #expect(try test.history(subject)?.isForwardingOn == false)
    }

    @Test(arguments: Engine.all) func decisionWrite_nonceConsumed_keepsFirstAnswer(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        let nonce = ConsumedNonce(
            mark: [1], subject: [2], claimedEvent: "sign_in", event: "sign_up", decisionID: "rd_1",
            answer: "{}",
            expiresAt: Self.now + 600)
        var decisionWrite = try test.decisionWrite(
            subject, isVerified: true, record: test.record("rd_1"))
        decisionWrite.nonce = nonce
        guard
            case .written(.some(let grant)) = try test.inner.store.decisionWrites.apply(
                decisionWrite)
        else {
            return #expect(Bool(false), "settled")
        }
        decisionWrite.record = try test.record("rd_2")
        decisionWrite.realUserStatus = 2
        #expect(try test.inner.store.decisionWrites.apply(decisionWrite) == .nonceConsumed(nonce))
        #expect(try test.inner.store.decisions.decision("rd_2") == nil)
        #expect(try test.history(subject)?.grant?.realUserStatus == nil)
        #expect(try test.inner.store.decisions.decision("rd_1")?.record.grantNumber == grant)
        #expect(try test.inner.store.decisionWrites.deleteExpiredNonces(now: Self.now + 599) == 0)
        #expect(try test.inner.store.decisionWrites.deleteExpiredNonces(now: Self.now + 600) == 1)
        #expect(try test.inner.store.decisionWrites.consumedNonce([1]) == nil)
    }

    @Test(arguments: Engine.all) func decisionWrite_grantChangedMeanwhile_isNotApplied(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        var decisionWrite = try test.decisionWrite(
            subject, isVerified: true, record: test.record("rd_1"))
        decisionWrite.expected = GrantStamp(try test.history(subject))
        try test.settle(subject, isVerified: true, makesPending: true)
        #expect(try test.inner.store.decisionWrites.apply(decisionWrite) == .changed)
        #expect(try test.inner.store.decisions.decision("rd_1") == nil)
        decisionWrite.expected = GrantStamp(try test.history(subject))
        #expect(try test.inner.store.decisionWrites.apply(decisionWrite) != .changed)
    }

    @Test(arguments: Engine.all) func decisionWrite_return_keepsPriorStatus(_ engine: Engine) throws
    {
        let test = try TestDecisions(engine)
        let subject = GrantSubject.own(sub: try test.sub("u1"))
        try test.settle(subject, isVerified: true, status: 1, makesPending: true)
        let account = try test.account("u1")
        let group = try #require(try test.inner.store.grants.grants(account: account).first).group
        try test.inner.store.grants.revoke(account: account, group: group, TestStore.change)
        #expect(try test.history(subject)?.grant?.isAuthorized == false)
        var decisionWrite = try test.decisionWrite(subject, isVerified: true, at: Self.now + 50)
        decisionWrite.isReturn = true
        decisionWrite.realUserStatus = 2
        _ = try test.inner.store.decisionWrites.apply(decisionWrite)
        let history = try #require(try test.history(subject))
        #expect(history.grant?.isAuthorized == true)
        #expect(history.grant?.priorStatus == 1)
        #expect(history.grant?.realUserStatus == 2)
        #expect(history.grant?.signUpCheck == .pending, "what was outstanding stays so")
        #expect(history.grant?.firstAskedAt == Self.now + 50)
        #expect(history.rejoins30d == 1)
    }

    @Test(arguments: Engine.all) func outcome_report_mustBeOfferedAndInOrder(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let id = try test.decided("u1", challenges: ["email_code", "reauthenticate"])
        try test.settle(.own(sub: try test.sub("u1")), isVerified: true, makesPending: true)
        #expect(throws: OutcomeRefusal.outOfOrder) {
            try test.report(id, .passed, "email_code", at: Self.now)
        }
        #expect(throws: OutcomeRefusal.notOffered) {
            try test.report(id, .initiated, "human_check", at: Self.now)
        }
        #expect(throws: OutcomeRefusal.notFound) {
            try test.report("rd_x", .initiated, "email_code", at: Self.now)
        }
        #expect(throws: OutcomeRefusal.notFound) {
            try test.inner.store.checks.report(
                decision: id, team: test.app().teamNumber + 1, outcome: .initiated,
                challenge: "email_code", now: Self.now
            ).get()
        }
        #expect(throws: OutcomeRefusal.tooLate) {
            try test.report(id, .initiated, "email_code", at: Self.now + 86_401)
        }
        let begun = try test.report(id, .initiated, "email_code", at: Self.now + 1)
        #expect(
            try test.report(id, .initiated, "email_code", at: Self.now + 9) == begun,
            "a repetition changes nothing")
        #expect(try test.history(.own(sub: test.sub("u1")))?.grant?.signUpCheck == .pending)
        let passed = try test.report(id, .passed, "email_code", at: Self.now + 20)
        #expect(
            passed.checks == [
                CheckRecord(
                    challenge: "email_code", initiatedAt: Self.now + 1, passedAt: Self.now + 20,
                    failedAt: nil)
            ])
        #expect(try test.report(id, .passed, "email_code", at: Self.now + 90_000) == passed)
        #expect(throws: OutcomeRefusal.contradicts) {
            try test.report(id, .failed, "email_code", at: Self.now + 30)
        }
        #expect(try test.history(.own(sub: test.sub("u1")))?.grant?.signUpCheck == .passed)
        // The other challenge is independent.
        _ = try test.report(id, .initiated, "reauthenticate", at: Self.now + 40)
        let failed = try test.report(id, .failed, "reauthenticate", at: Self.now + 41)
        #expect(failed.checks.count == 2)
        #expect(try test.report(id, .failed, "reauthenticate", at: Self.now + 42) == failed)
        // A failed check is not final: a second try counts.
        #expect(throws: OutcomeRefusal.tooLate) {
            try test.report(id, .passed, "reauthenticate", at: Self.now + 86_401)
        }
        let mended = try test.report(id, .passed, "reauthenticate", at: Self.now + 43)
        #expect(
            mended.checks.last?.passedAt == Self.now + 43
                && mended.checks.last?.failedAt == Self.now + 41)
        #expect(try test.history(.own(sub: test.sub("u1")))?.failedChecks24h == 0)
        // The same report again, late.
        #expect(try test.report(id, .failed, "reauthenticate", at: Self.now + 44) == mended)
        #expect(try test.inner.store.checks.deleteExpired(before: Self.now + 41) == 2)
    }

    @Test(arguments: Engine.all) func label_anyTime_isTakenAndRevised(_ engine: Engine) throws {
        let test = try TestDecisions(engine)
        let id = try test.decided("u1", challenges: [])
        let team = try test.app().teamNumber
        let checks = test.inner.store.checks
        #expect(
            try checks.label(decision: id, team: team, .fraudulent, now: Self.now + 9_000_000).get()
                .label == .fraudulent)
        let line = try test.inner.store.audit.entries().first
        #expect(
            line?.action == "decision.label" && line?.subject == "decision:\(id)"
                && line?.detail == "fraudulent")
        #expect(
            try checks.label(decision: id, team: team, .fraudulent, now: Self.now + 9_000_001).get()
                .labelledAt == Self.now
                + 9_000_000)
        #expect(
            try checks.label(decision: id, team: team, .legitimate, now: Self.now + 9_000_002).get()
                .label == .legitimate)
        #expect(throws: OutcomeRefusal.notFound) {
            try checks.label(decision: id, team: team + 1, .fraudulent, now: Self.now).get()
        }
    }

    @Test(arguments: Engine.all) func idempotencyKey_sameBody_returnsSameAnswer(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let keys = test.inner.store.idempotency
        let team = try test.app().teamNumber
        func claim(
            _ body: [UInt8] = [9], endpoint: String = "decisions", at now: Int64 = Self.now
        ) throws -> IdempotencyClaim {
            try keys.claim(team: team, endpoint: endpoint, key: [1], body: body, now: now)
        }
        #expect(try claim() == .new)
        #expect(try claim() == .inFlight)
        #expect(try claim([8]) == .otherBody)
        #expect(try claim(endpoint: "outcome") == .new)
        try keys.finish(
            team: team, endpoint: "decisions", key: [1], begunAt: Self.now, answer: "{}")
        #expect(try claim() == .answered("{}"))
        #expect(try claim([8]) == .otherBody)
        #expect(try claim(at: Self.now + 86_399) == .answered("{}"))
        #expect(try claim([8], at: Self.now + 86_400) == .new, "kept for a day")
        // A process that died during a request must not keep its key for a day.
        #expect(try claim(endpoint: "outcome", at: Self.now + 59) == .inFlight)
        #expect(try claim(endpoint: "outcome", at: Self.now + 60) == .new)
        try keys.abandon(team: team, endpoint: "outcome", key: [1], begunAt: Self.now + 60)
        #expect(try claim(endpoint: "outcome", at: Self.now + 61) == .new)
        #expect(try keys.deleteExpired(now: Self.now + 200_000) == 2)
    }

    @Test(arguments: Engine.all) func upgrade_completed_bindsAppAccountForGood(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let store = test.inner.store
        try store.decisions.insert([
            try test.record("rd_up", challenges: ["email_code"], event: "upgrade", mark: [7])
        ])
        _ = try test.report("rd_up", .initiated, "email_code", at: Self.now)
        _ = try test.report("rd_up", .passed, "email_code", at: Self.now)
        func complete(_ user: String, decision: String = "rd_up") throws -> DecisionWriteResult {
            var decisionWrite = try test.decisionWrite(.own(sub: test.sub(user)), isVerified: true)
            decisionWrite.binding = AppAccountBinding(mark: [7], decisionID: decision)
            return try store.decisionWrites.apply(decisionWrite)
        }
        let team = try test.app().teamNumber
        #expect(try !store.checks.isUpgraded(team: team, appAccount: [7]))
        guard case .written(.some(let grant)) = try complete("u1") else {
            return #expect(Bool(false), "bound")
        }
        #expect(try complete("u1") == .written(grant: grant), "again is the same")
        try test.inner.user("u2")
        #expect(try complete("u2") == .boundAlready)
        #expect(try complete("u1", decision: "rd_other") == .boundAlready)
        #expect(try store.decisions.decision("rd_up")?.record.grantNumber == grant)
        #expect(
            try test.history(.own(sub: test.sub("u1")))?.passedChecks90d == 1,
            "what was proved belongs to the grant now")
        #expect(try test.history(.own(sub: test.sub("u1")))?.grant?.signUpCheck == .passed)
        try store.users.remove("u1", TestStore.change)
        #expect(
            try store.checks.isUpgraded(team: team, appAccount: [7]),
            "a deleted grant does not free the account")
        #expect(try complete("u2") == .boundAlready)
        #expect(
            try store.decisions.decision("rd_up")?.record.grantNumber == nil,
            "the log lets go of who was deleted")
    }

    @Test(arguments: Engine.all) func decisionLogBuffer_storeAway_keepsAndCountsDropped(
        _ engine: Engine
    ) throws {
        let test = try TestDecisions(engine)
        let flaky = SwitchedDatabase(test.inner.database)
        let store = Store(database: flaky, keys: TestStore.keys(), relayDomains: ["relay.example"])
        let buffer = DecisionLogBuffer(store.decisions, store.decisionWrites, capacity: 3)
        let sub = try test.sub("u1")
        let grant = try #require(try test.history(.own(sub: sub))?.grant?.number)
        flaky.isAway = true
        buffer.add(try test.record("rd_1", grant: grant), seen: (grant, Self.now + 5))
        var decisionWrite = try test.decisionWrite(
            .own(sub: sub), isVerified: true, record: test.record("rd_2"))
        decisionWrite.realUserStatus = 1
        buffer.add(decisionWrite)
        buffer.add(try test.record("rd_3"))
        buffer.add(try test.record("rd_4"))
        #expect(buffer.dropped == 1)
        #expect(buffer.count == 3)
        #expect(throws: StoreFailure.temporary(.unreachable)) { try buffer.flush() }
        #expect(buffer.pending("rd_1") != nil)
        #expect(buffer.pending("rd_2") != nil)
        flaky.isAway = false
        try buffer.flush()
        #expect(buffer.count == 0)
        #expect(
            try store.decisions.newest(DecisionFilter(), limit: 9).map(\.record.id).sorted() == [
                "rd_1", "rd_2", "rd_3",
            ])
        #expect(try test.history(.own(sub: sub))?.grant?.realUserStatus == 1)
        #expect(try test.history(.own(sub: sub))?.grant?.lastSeenAt == Self.now + 5)
    }

    /// If the log falls behind, waiting callers must not wait until all of it is written, which
    /// would take hundreds of milliseconds.
    @Test(arguments: Engine.all) func decisionLogBuffer_waitForRoom_losesNothing(
        _ engine: Engine
    ) async throws {
        let test = try TestDecisions(engine)
        let flaky = SwitchedDatabase(test.inner.database)
        let store = Store(database: flaky, keys: TestStore.keys(), relayDomains: ["relay.example"])
        let buffer = DecisionLogBuffer(store.decisions, store.decisionWrites, capacity: 1_000)
        await buffer.waitForRoom(InlineExecutor())
        for number in 0..<900 { buffer.add(try test.record("rd_\(number)")) }
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<700 { tasks.addTask { await buffer.waitForRoom(InlineExecutor()) } }
        }
        try buffer.flush()
        #expect(buffer.count == 0)
        #expect(try store.decisions.count(DecisionFilter()) == 900)
        // If the store is unavailable, callers do not wait for it, and nothing is lost.
        flaky.isAway = true
        for number in 900..<1_500 { buffer.add(try test.record("rd_\(number)")) }
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<20 { tasks.addTask { await buffer.waitForRoom(InlineExecutor()) } }
        }
        #expect(buffer.count == 600)
        #expect(buffer.pending("rd_1400") != nil)
        flaky.isAway = false
        try buffer.flush()
        #expect(try store.decisions.count(DecisionFilter()) == 1_500)
    }

    @Test(arguments: Engine.all) func groupCommit_someFail_commitsTheOthers(
        _ engine: Engine
    ) async throws {
        let test = try TestDecisions(engine)
        let group = GroupCommit(test.inner.database)
        defer { group.close() }
        let record = try test.record("rd_g")
        let store = test.inner.store
        let results = await withTaskGroup(of: (Int, Bool).self) { tasks in
            for number in 0..<200 {
                tasks.addTask {
                    do {
                        return (
                            number,
                            try await group.run { connection throws(StoreFailure) in
                                if number % 50 == 7 { throw StoreFailure.refused(.invalid, "no") }
                                return try connection.rows(
                                    "INSERT INTO settings (name, value) VALUES (?1, ?2) RETURNING name",
                                    [.text("g\(number)"), .text("v")]
                                ).count == 1
                            }
                        )
                    } catch {
                        return (number, false)
                    }
                }
            }
            return await tasks.reduce(into: [Int: Bool]()) { $0[$1.0] = $1.1 }
        }
        #expect(results.filter { !$0.value }.keys.sorted() == [7, 57, 107, 157])
        let written = try test.inner.database.read {
            try $0.value("SELECT COUNT(*) FROM settings WHERE name LIKE 'g%'", Int64.self)
        }
        #expect(written == 196)
        group.close()
        await #expect(throws: StoreFailure.temporary(.resources)) {
            _ = try await group.run { _ in 1 }
        }
        _ = (record, store)
    }

    /// From memory, and as if each read had waited for a disk.
    @Test(arguments: Engine.all, [0, 100]) func groupRead_someFail_answersTheOthers(
        _ engine: Engine, blocks: Int
    ) async throws {
        let test = try TestDecisions(engine)
        let asked = Mutex(0)
        let group = GroupRead(test.inner.database) {
            asked.withLock { asked in
                asked += blocks
                return asked
            }
        }
        defer { group.close() }
        let results = await withTaskGroup(of: (Int, Int64?).self) { tasks in
            for number in 0..<200 {
                tasks.addTask {
                    let value = try? await group.run { connection throws(StoreFailure) in
                        // Wrong SQL, and our own refusal.
                        if number % 50 == 7 {
                            _ = try connection.rows("SELECT nothing FROM nowhere")
                        }
                        if number % 50 == 8 { throw StoreFailure.refused(.invalid, "no") }
                        return try connection.value(
                            "SELECT CAST(\(number) AS BIGINT) + 1", Int64.self)
                    }
                    return (number, value)
                }
            }
            return await tasks.reduce(into: [Int: Int64?]()) { $0[$1.0] = $1.1 }
        }
        #expect(results.count == 200)
        for (number, value) in results {
            #expect(value == ([7, 8].contains(number % 50) ? nil : Int64(number) + 1), "\(number)")
        }
        group.close()
        await #expect(throws: StoreFailure.temporary(.resources)) {
            _ = try await group.run { _ in 1 }
        }
    }

    @Test func velocityIndex_userRemoved_isKeptTwoDays() throws {
        // Rows kept for two days are under a separate key, and belong to no account.
        let test = try TestDecisions(Engine.all[0])
        try test.settle(.own(sub: try test.sub("u1")), isVerified: true, isSignUp: true)
        let before = try test.inner.database.read {
            try $0.rows("SELECT canonical_index, address_index, velocity_index FROM inboxes")[0]
        }
        let velocity: [UInt8] = try before["velocity_index"]
        #expect(try before["canonical_index"] != velocity)
        #expect(try before["address_index"] != velocity)
        try test.inner.store.users.remove("u1", TestStore.change)
        #expect(
            try test.inner.database.values("SELECT velocity_index FROM verified_signups") == [
                velocity
            ])
        while try test.inner.store.appRates.deleteExpired(now: TestStore.now + 2 * 86_400) == 1000 {
        }
        #expect(
            try test.inner.database.read {
                try $0.rows("SELECT velocity_index FROM verified_signups")
            }.isEmpty)
    }
}

/// A database that can be made unavailable.
final class SwitchedDatabase: Database {
    private let inner: any Database
    private let away = Mutex(false)

    init(_ inner: any Database) { self.inner = inner }

    var isAway: Bool {
        get { away.withLock { $0 } }
        set { away.withLock { $0 = newValue } }
    }

    var dialect: Dialect { inner.dialect }

    func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try check()
        return try inner.read(body)
    }

    func write<T>(_ durability: Durability, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try check()
        return try inner.write(durability, body)
    }

    func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? { try inner.lock(name) }

    func close() throws(StoreFailure) { try inner.close() }

    private func check() throws(StoreFailure) {
        if isAway { throw StoreFailure.temporary(.unreachable, "away") }
    }
}
