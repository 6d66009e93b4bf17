// Hosts that are killed and started again, with clocks that a test sets, and threads that put load
// on them.

import Foundation
import PostfixHarness
import Synchronization
import Testing

/// The hosts mx1, mx2 …. The process of each may change.
final class ServingHosts: Sendable {
    private struct Host {
        let process: ManagedProcess
        let port: UInt16
        let clock: HostClock
    }

    let count: Int
    private let hosts: EventHosts
    private let settings: [String: String]
    private let running = Watched<[Host]>([])
    private let killed = Watched(0)

    init(_ hosts: EventHosts, count: Int, settings: [String: String] = [:]) {
        self.hosts = hosts
        self.count = count
        self.settings = settings
    }

    func start() throws {
        for number in 0..<count {
            let host = try serve(number, ahead: 0)
            running.with { $0.append(host) }
        }
    }

    private func name(_ number: Int) -> String { "mx\(number + 1)" }

    private func serve(_ number: Int, ahead: Int) throws -> Host {
        let clock = try hosts.settableClock(ahead: ahead)
        let process = try hosts.serve(
            name(number), settings: settings, environment: clock.environment)
        let line = try process.waitForLine(containing: "listening for HTTP")
        let port = line.split(separator: " ").first { $0.hasPrefix("address=") }?.split(
            separator: ":"
        ).last.flatMap {
            UInt16($0)
        }
        return Host(process: process, port: try #require(port), clock: clock)
    }

    /// The ports of their HTTP APIs.
    var ports: [UInt16] { running.with { $0.map(\.port) } }
    /// The sockets of their milters.
    var sockets: [String] { (0..<count).map { hosts.socket(name($0)) } }
    /// The number of kills so far.
    var kills: Int { killed.with { $0 } }

    func process(_ host: Int) -> ManagedProcess { running.with { $0[host].process } }
    func signal(_ host: Int, _ number: Int32) { process(host).signal(number) }
    func setClock(_ host: Int, ahead seconds: Int) throws {
        try running.with { $0[host].clock }.set(ahead: seconds)
    }

    /// Kills a host, and starts it with another clock.
    func kill(_ host: Int, ahead: Int = 0) throws {
        let process = process(host)
        killed.with { $0 += 1 }
        process.signal(SIGKILL)
        _ = try process.waitForExit()
        let other = try serve(host, ahead: ahead)
        running.with { $0[host] = other }
    }

    /// The status of a host's `/readyz`; nil if it does not answer.
    func readiness(_ host: Int) -> Int? {
        try? HTTPClient.get(port: ports[host], path: "/readyz", timeout: 10).status
    }

    /// Waits until `/readyz` of every host has this status.
    func wait(until status: Int) throws {
        let end = Date(timeIntervalSinceNow: standardTimeout)
        while !(0..<count).allSatisfy({ readiness($0) == status }) {
            guard Date() < end else { throw HarnessError("/readyz does not become \(status)") }
            usleep(20_000)
        }
    }
}

/// Threads that repeat an action.
final class Load: Sendable {
    private let isOver = Atomic(false)
    private let group = DispatchGroup()

    func begin(_ body: @escaping @Sendable (_ round: Int) -> Void) {
        group.enter()
        Thread.detachNewThread { [self] in
            var round = 0
            while !isOver.load(ordering: .relaxed) {
                body(round)
                round += 1
            }
            group.leave()
        }
    }

    /// Waits for the last round of each.
    func end() {
        isOver.store(true, ordering: .relaxed)
        group.wait()
    }
}
