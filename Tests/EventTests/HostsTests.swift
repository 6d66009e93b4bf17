// Two hosts deliver events as one: with a leader that hangs or continues later, and with different
// clocks.

import Accounts
import Events
import Foundation
import PostfixHarness
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
struct HostsTests {
    /// Runs a test on hosts.
    private func withHosts(users: Int, _ body: (EventHosts) throws -> Void) async throws {
        let server = try #require(PostgresServer.shared)
        let hosts = try await EventHosts(server, users: users)
        do { try body(hosts) } catch {
            await hosts.stop()
            throw error
        }
        await hosts.stop()
    }

    /// A host that hangs keeps its connection, so a lock would not end, and nothing would be
    /// delivered. When it continues, it must not deliver beside its successor, nor pause a working
    /// endpoint because of its own failures.
    @Test(.timeLimit(.minutes(20))) func leader_hung_isReplacedAndStopsDelivering() async throws {
        try await withHosts(users: 20) { hosts in
            let receiver = hosts.receiver
            let leader = try hosts.serve("mx1")
            try hosts.toggleAll(rounds: 1)
            try hosts.waitUntilTaken()
            _ = try hosts.serve("mx2")
            // It hangs with requests in progress, and with further events of the same accounts
            // waiting.
            let before = receiver.requests.count
            receiver.rule { _, _ in .hang }
            try hosts.toggleAll(rounds: 6, from: 1)
            try wait("requests are under way", atMost: standardTimeout) {
                receiver.requests.count > before
            }
            leader.signal(SIGSTOP)
            let hung = receiver.requests.count - before
            receiver.rule { _, _ in .status(200) }
            try hosts.waitUntilTaken()
            let lines = leader.lines.count
            leader.signal(SIGCONT)
            try leader.waitForLine(containing: "another process delivers events", from: lines)
            try hosts.toggleAll(rounds: 2, from: 7)
            try hosts.waitUntilTaken()
            try hosts.checkOrder()
            let repeated = receiver.requests.count - before - hung - 8 * 20
            #expect(repeated <= EventDelivery.concurrency, "\(repeated) events arrived twice")
            let endpoint = try hosts.store.endpoints.endpoint(team: "juice", app: nil)
            #expect(endpoint.failures == 0 && endpoint.lastError == nil)
            #expect(try hosts.store.outbox.events(limit: 1000).allSatisfy { $0.lastError == nil })
        }
    }

    /// An event must not be due only when the clock of the host that wrote it says so.
    @Test(.enabled(if: EventHosts.hasCompiler, "there is no C compiler"), .timeLimit(.minutes(20)))
    func event_writtenByHostWithClockAhead_isNotDelayed() async throws {
        try await withHosts(users: 1) { hosts in
            _ = try hosts.serve("mx1")
            let address = try #require(hosts.addresses.first)
            let command = [
                "address", "off", "\(address.localPart)@\(address.domain)", "--config", hosts.data,
            ]
            let made = try ManagedProcess.run(
                hosts.program, command, environment: hosts.clock(ahead: 3600))
            try #require(made.status == 0, "\(made.output)")
            try hosts.waitUntilTaken()
            let (event, taken) = (
                try #require(try hosts.store.outbox.events().first),
                try #require(hosts.receiver.taken.first)
            )
            #expect(event.createdAt > taken.issuedAt, "the clock was not ahead")
        }
    }

    @Test(.enabled(if: EventHosts.hasCompiler, "there is no C compiler"), .timeLimit(.minutes(20)))
    func statusCommand_hostClocksDiffer_namesThem() async throws {
        try await withHosts(users: 1) { hosts in
            func said(_ arguments: [String]) throws -> String {
                try ManagedProcess.run(hosts.program, arguments + ["--config", hosts.data]).output
            }
            _ = try hosts.serve("mx1")
            try wait("the first says how it is", atMost: standardTimeout) {
                (try? said(["status"]))?.contains("mx1.relay.example") == true
            }
            #expect(try !said(["status"]).contains("clocks differ"))
            _ = try hosts.serve("mx2", environment: hosts.clock(ahead: 20))
            _ = try hosts.serve("mx3", environment: hosts.clock(ahead: -30))
            try wait("they are named", atMost: standardTimeout) {
                let status = (try? said(["status"])) ?? ""
                return status.contains("mx2.relay.example is 20.")
                    && status.contains("mx3.relay.example is 30.")
            }
            let status = try said(["status"])
            #expect(!status.contains("mx1.relay.example is"), "\(status)")
            // The host with the slow clock reports every two seconds all the same.
            #expect(!status.contains("has not reported"), "\(status)")
            let doctor = try said(["doctor"])
            #expect(
                doctor.contains("mx2.relay.example is 20.")
                    && doctor.contains("mx3.relay.example is 30."), "\(doctor)")
        }
    }
}
