// Counts of policies on both engines: compared with a simple model, with their expiry, and beyond
// their capacity.

import Accounts
import Database
import Decisions
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct VelocityBufferTests {
    private static func counter(_ window: Int64, distinct: Bool) -> PolicyCounter {
        PolicyCounter(
            name: "c", key: .context("k"), window: window, events: [.signIn],
            distinct: distinct ? .account : nil)
    }

    private func tally(
        _ test: TestStore, _ counter: PolicyCounter, _ key: String, _ account: String, _ now: Int64
    ) -> VelocityTally {
        VelocityQuestion(
            counters: [counter], team: 1, account: account, device: nil, context: ["k": key],
            marks: test.store.decisionMarks,
            now: now
        ).tallies(.signIn, inbox: nil)[0]
    }

    /// Counts one, and returns the count after it.
    private func count(
        _ test: TestStore, _ buffer: VelocityBuffer, _ tally: VelocityTally
    ) throws -> Int64 {
        let stored = try test.store.velocity.stored([tally])
        return try #require(buffer.count([tally], .signIn, stored: stored, turn: buffer.turn))[0]
    }

    /// At least the number within the window, and at most the number within the window and one
    /// slice; written from time to time.
    @Test(arguments: Engine.all, [false, true]) func velocity_randomTimes_matchWindowWithinOneSlice(
        _ engine: Engine, _ isDistinct: Bool
    ) throws {
        let test = try TestStore(engine)
        let buffer = VelocityBuffer(test.store.velocity)
        let counter = Self.counter(320, distinct: isDistinct)
        var came: [(at: Int64, account: Int)] = []
        var (now, state) = (TestStore.now, UInt64(7))
        func random(_ bound: UInt64) -> Int64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64((state >> 33) % bound)
        }
        for step in 0..<600 {
            now += random(12)
            let account = Int(random(20))
            came.append((now, account))
            let counted = try count(test, buffer, tally(test, counter, "a", "\(account)", now))
            func within(_ seconds: Int64) -> Int64 {
                let recent = came.filter { $0.at >= now - seconds }
                return Int64(isDistinct ? Set(recent.map(\.account)).count : recent.count)
            }
            #expect(counted >= within(counter.window), "step \(step)")
            #expect(counted <= within(counter.window + counter.slice), "step \(step)")
            if random(10) == 0 { try buffer.flush() }
        }
        #expect(came.count == 600)
        try buffer.flush()
        while try test.store.velocity.deleteExpired(now: now + 400) == 1_000 {}
        let left: Int64? = try test.database.value("SELECT COUNT(*) FROM velocity")
        #expect(left == 0)
    }

    @Test(arguments: Engine.all) func velocity_distinctValues_areCountedToLimit(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let buffer = VelocityBuffer(test.store.velocity)
        let counter = Self.counter(3_600, distinct: true)
        var last: Int64 = 0
        for account in 0..<1_010 {
            last = try count(test, buffer, tally(test, counter, "a", "\(account)", TestStore.now))
            if account == 500 { try buffer.flush() }
        }
        #expect(last == VelocityLimits.distinct)
        try buffer.flush()
        #expect(
            try count(test, buffer, tally(test, counter, "a", "7", TestStore.now))
                == VelocityLimits.distinct)
    }

    @Test(arguments: Engine.all) func velocity_tableOverLimit_dropsEarliestEnding(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let buffer = VelocityBuffer(test.store.velocity)
        let (short, long) = (
            Self.counter(60, distinct: false), Self.counter(3_600, distinct: false)
        )
        for key in 0..<30 {
            _ = try count(test, buffer, tally(test, short, "\(key)", "x", TestStore.now))
            _ = try count(test, buffer, tally(test, long, "\(key)", "x", TestStore.now))
        }
        try buffer.flush()
        #expect(try test.store.velocity.excess(over: 60) == 0 && test.store.velocity.excess() == 0)
        #expect(try test.store.velocity.excess(over: 30) == 30)
        // In steps of at most this number each.
        #expect(try test.store.velocity.trim(20) == 20)
        #expect(try test.store.velocity.excess(over: 30) == 10)
        #expect(try test.store.velocity.trim(10) == 10)
        #expect(try count(test, buffer, tally(test, long, "3", "x", TestStore.now)) == 2)
        #expect(try count(test, buffer, tally(test, short, "3", "x", TestStore.now)) == 1)
    }

    @Test func velocityBuffer_overCapacity_dropsAndCounts() throws {
        let test = try TestStore(Engine.sqlite)
        let buffer = VelocityBuffer(test.store.velocity, capacity: 5)
        let counter = Self.counter(60, distinct: false)
        for key in 0..<9 {
            buffer.count([tally(test, counter, "\(key)", "x", TestStore.now)], .signIn)
        }
        #expect(buffer.dropped == 4)
        try buffer.flush()
        let kept: Int64? = try test.database.value("SELECT COUNT(*) FROM velocity")
        #expect(kept == 5)
    }
}
