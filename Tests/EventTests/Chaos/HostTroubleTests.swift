// Two hosts and a daily limit; and a clock that jumps while a host serves.

import Accounts
import Foundation
import Monitoring
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: EventHosts.hasCompiler, "there is no C compiler"))
struct HostTroubleTests {
    private func with(_ hosts: EventHosts, _ body: (EventHosts) throws -> Void) async throws {
        do {
            try body(hosts)
        } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .timeLimit(.minutes(20)))
    func dailyLimit_twoHosts_isShared() async throws {
        try await with(EventHosts(PostgresServer.shared, users: 1)) { hosts in
            let serving = ServingHosts(
                hosts, count: 2, settings: ["limits.messages_per_day": "\(ChaosMail.low)"])
            try serving.start()
            let mail = try ChaosMail(hosts, serving, limit: ChaosMail.low)
            let (begun, load) = (Date(), Load())
            for _ in 0..<8 { load.begin { round in mail.send(round) } }
            let result = Result {
                try wait("two users reach their limits", atMost: 2 * standardTimeout) {
                    mail.full >= 2
                }
            }
            load.end()
            try result.get()
            #expect(mail.taken >= 4 * ChaosMail.low, "a limit was reached early")
            try mail.check(hosts: 2, from: begun, to: Date())
        }
    }

    /// The last report of a killed host may have a future time; a rotation must not wait for it.
    @Test(.timeLimit(.minutes(20))) func keyRotation_killedHostWithClockAhead_doesNotWait()
        async throws
    {
        try await with(EventHosts(nil, users: 1)) { hosts in
            let host = try hosts.serve("mx1", environment: hosts.clock(ahead: 3600))
            try wait("it says how it is", atMost: 2 * standardTimeout) {
                try !hosts.store.serviceStatus.all().isEmpty
            }
            host.signal(SIGKILL)
            _ = try host.waitForExit()
            let rotated = try hosts.run(["keys", "file", "rotate", "--wait", "30"])
            #expect(rotated.status == 0, "\(rotated.output)")
        }
    }

    /// A host with a slow clock must not count as ended, because it still uses the old keys.
    @Test(
        .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"),
        .timeLimit(.minutes(20)))
    func keyRotation_hostClockBehind_waitsForIt() async throws {
        try await with(EventHosts(PostgresServer.shared, users: 1)) { hosts in
            let host = try hosts.serve("mx1", environment: hosts.clock(ahead: -600))
            try wait("it says how it is", atMost: 2 * standardTimeout) {
                try !hosts.store.serviceStatus.all().isEmpty
            }
            host.signal(SIGSTOP)
            let rotated = try hosts.run(["keys", "file", "rotate", "--wait", "1"])
            host.signal(SIGCONT)
            #expect(
                rotated.status == 75 && rotated.output.contains("mx1.relay.example"), "\(rotated)")
        }
    }

    /// Times that were recorded an hour ahead must not count after the clock is right again.
    @Test(.timeLimit(.minutes(20))) func host_clockJumpsAnHour_keepsDelivering() async throws {
        try await with(EventHosts(nil, users: 4)) { hosts in
            let serving = ServingHosts(
                hosts, count: 1, settings: ["limits.messages_per_day": "1000000"])
            try serving.start()
            let mail = try ChaosMail(hosts, serving, limit: 1_000_000)
            let begun = Date()
            var rounds = 0
            for ahead in [3600, -3600] {
                try serving.setClock(0, ahead: ahead)
                // A failed delivery is tried again later, by a clock that has changed by then.
                hosts.receiver.rule { _, _ in .status(503) }
                let requests = hosts.receiver.requests.count
                try hosts.toggleAll(rounds: 1, from: rounds)
                rounds += 1
                try wait("a delivery fails", atMost: 2 * standardTimeout) {
                    hosts.receiver.requests.count > requests
                }
                for back in [false, true] {
                    if back { try serving.setClock(0, ahead: 0) }
                    let taken = mail.taken
                    for round in 0..<40 where mail.taken < taken + 5 { mail.send(round) }
                    #expect(mail.taken >= taken + 5, "\(mail.summary)")
                    #expect(serving.readiness(0) == 200)
                }
                hosts.receiver.rule { _, _ in .status(200) }
                try hosts.waitUntilTaken()
            }
            try hosts.checkOrder()
            try mail.check(hosts: 1, from: begun, to: Date())
            let status = try hosts.run(["status"]).output
            #expect(
                !status.contains("has said nothing") && !status.contains("clocks differ"),
                "\(status)")
        }
    }
}
