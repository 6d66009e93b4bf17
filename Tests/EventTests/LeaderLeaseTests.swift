// The lease with a clock of the test: the process that has it, and one that wrongly assumes so.

import Accounts
import Database
import Events
import Foundation
import PosternSQLite
import StoreTesting
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct LeaderLeaseTests {
    private final class Clock: Sendable {
        private let time = Mutex(ContinuousClock.now)
        var now: ContinuousClock.Instant { time.withLock { $0 } }
        func advance(_ duration: Duration) { time.withLock { $0 += duration } }
    }

    private func withLeases(_ body: (LeaseRepository, Clock) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-lease-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = try MigratedStore.sqlite(
            at: folder.appendingPathComponent("postern.db").path)
        defer { try? database.close() }
        let keys = try #require(KeyRing(random: (0..<96).map { UInt8($0) }))
        try body(
            Store(database: database, keys: keys, relayDomains: ["relay.example"]).leases, Clock())
    }

    private func lease(_ leases: LeaseRepository, _ clock: Clock) -> LeaderLease {
        LeaderLease(leases, name: "events", now: { clock.now })
    }

    @Test func lease_renewed_isKept() throws {
        try withLeases { leases, clock in
            let (first, second) = (lease(leases, clock), lease(leases, clock))
            let held = try #require(first.acquire())
            for _ in 0..<20 {
                #expect(second.acquire() == nil)
                clock.advance(.seconds(1))
                #expect(first.acquire() == held)
                #expect(first.current == held)
            }
        }
    }

    @Test func lease_holderPaused_isLostBeforeOthersTakeIt() throws {
        try withLeases { leases, clock in
            let (first, second) = (lease(leases, clock), lease(leases, clock))
            let held = try #require(first.acquire())
            #expect(second.acquire() == nil)
            clock.advance(LeaderLease.duration)
            #expect(first.current == nil)
            #expect(second.acquire() == nil)
            clock.advance(LeaderLease.takeOver - LeaderLease.duration)
            let taken = try #require(second.acquire())
            #expect(taken.fence > held.fence)
            #expect(first.acquire() == nil && first.current == nil)
            #expect(second.acquire() == taken)
        }
    }

    /// Work that it began before may have failed because it was stopped, so that work is void, even
    /// without another holder.
    @Test func lease_holderPausedAlone_getsNewFence() throws {
        try withLeases { leases, clock in
            let only = lease(leases, clock)
            let held = try #require(only.acquire())
            clock.advance(LeaderLease.duration)
            let again = try #require(only.acquire())
            #expect(again.fence > held.fence)
        }
    }

    /// An observer that was stopped itself has seen no change for long, and must not conclude that
    /// the holder is silent.
    @Test func lease_observerPaused_isNotTaken() throws {
        try withLeases { leases, clock in
            let (first, second) = (lease(leases, clock), lease(leases, clock))
            let held = try #require(first.acquire())
            #expect(second.acquire() == nil)
            clock.advance(.seconds(4))
            #expect(first.acquire() == held)
            clock.advance(.seconds(4))
            #expect(second.acquire() == nil)
            #expect(first.acquire() == held)
        }
    }

    @Test func lease_released_isFreeAtOnce() throws {
        try withLeases { leases, clock in
            let (first, second) = (lease(leases, clock), lease(leases, clock))
            _ = try #require(first.acquire())
            #expect(second.acquire() == nil)
            first.release()
            first.release()
            #expect(first.current == nil)
            #expect(second.acquire() != nil)
            #expect(first.acquire() == nil)
        }
    }
}
