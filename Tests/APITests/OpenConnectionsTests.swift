// The number of connections of a network, and the ones that close at the limit.

import Database
import NIOCore
import PostfixHarness
import Synchronization
import TestSupport
import Testing

@testable import HTTP

@Suite(.blocking) struct OpenConnectionsTests {
    /// The connections that were closed.
    private final class Ended: Sendable {
        private let names = Mutex<[String]>([])
        func add(_ name: String) { names.withLock { $0.append(name) } }
        func take() -> [String] {
            names.withLock { names in
                defer { names = [] }
                return names
            }
        }
    }

    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private static func at(_ milliseconds: Int64) -> NIODeadline {
        start + .milliseconds(milliseconds)
    }

    private static func open(
        _ connections: OpenConnections, _ text: String, at time: Int64 = 0, _ ended: Ended = Ended()
    ) throws -> UInt64? {
        connections.open(try SocketAddress(ipAddress: text, port: 1), now: at(time)) {
            ended.add(text)
        }
    }

    @Test func openConnections_networkLimitReached_refusesMore() throws {
        let log = LogRecorder()
        let proxies = try #require(TrustedProxies(["198.51.100.0/24"]))
        let counts = OpenConnections(
            limit: 1000, perClient: 3, proxies: proxies, logger: log.logger)
        func open(_ text: String) throws -> UInt64? { try Self.open(counts, text) }
        let first = try (0..<3).map { _ in try #require(try open("192.0.2.1")) }
        #expect(try open("192.0.2.1") == nil)
        #expect(try open("::ffff:192.0.2.1") == nil)
        #expect(try open("192.0.2.2") != nil)
        #expect(log.lines.count == 1 && log.lines[0].contains("192.0.2.1"), "one line a minute")
        counts.close(first[0])
        counts.close(first[0])
        #expect(try open("192.0.2.1") != nil)
        // A /48 has four times as many, a /56 twice, and a /24 of IPv4 four times.
        #expect(try (0..<20).count { try open("2001:db8:1:\($0)00::1") != nil } == 12)
        #expect(try (0..<20).count { try open("2001:db8:2:\($0)::1") != nil } == 6)
        #expect(try (0..<20).count { try open("203.0.113.\($0)") != nil } == 12)
        #expect(try open("203.0.112.1") != nil)
        // Proxies are not counted.
        for proxy in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "198.51.100.9"] {
            for _ in 0..<50 { #expect(try open(proxy) != nil) }
        }
    }

    @Test func openConnections_closed_areForgotten() throws {
        let counts = OpenConnections(
            limit: 1000, perClient: 1, proxies: TrustedProxies(), logger: LogRecorder().logger)
        for number in 0..<1000 {
            let id = try #require(try Self.open(counts, "2001:db8:\(number)::1"))
            for phase in [OpenConnections.Phase.working, .idle, .arriving] {
                counts.enter(phase, id)
            }
            counts.close(id)
            // An unknown connection changes nothing.
            counts.enter(.idle, id)
        }
        #expect(counts.held.networks == 0)
        #expect(counts.held.places <= 40)
    }

    @Test func openConnections_full_closesLongestSilent() throws {
        let (log, ended) = (LogRecorder(), Ended())
        let counts = OpenConnections(
            limit: 6, perClient: 100, proxies: TrustedProxies(), logger: log.logger)
        func open(_ name: String, at time: Int64) throws -> UInt64 {
            try #require(try Self.open(counts, name, at: time, ended))
        }
        let working = try open("192.0.2.1", at: 0)
        counts.enter(.working, working, now: Self.at(0))
        _ = try open("192.0.2.2", at: 1)
        let idle = try open("192.0.2.3", at: 2)
        counts.enter(.working, idle, now: Self.at(3))
        counts.enter(.idle, idle, now: Self.at(4))
        let late = try open("192.0.2.4", at: 5)
        _ = try open("192.0.2.5", at: 6)
        #expect(ended.take() == [])
        // No connection has kept a request waiting for a second yet: one without a request closes.
        _ = try open("192.0.2.6", at: 900)
        #expect(ended.take() == ["192.0.2.3"])
        _ = try open("192.0.2.7", at: 901)
        #expect(ended.take() == ["192.0.2.2"])
        // A request after a silence starts the time again.
        counts.enter(.working, late, now: Self.at(902))
        counts.enter(.idle, late, now: Self.at(903))
        counts.enter(.arriving, late, now: Self.at(904))
        _ = try open("192.0.2.8", at: 1500)
        #expect(ended.take() == ["192.0.2.5"])
        _ = try open("192.0.2.9", at: 1900)
        #expect(ended.take() == ["192.0.2.6"])
        #expect(
            log.lines.count == 1 && log.lines[0].contains("silent"),
            "one line a minute: \(log.lines)")
    }

    /// Large answers that a client does not read must not keep all others out.
    @Test func openConnections_answersNotFetched_closesThose() throws {
        let (log, ended) = (LogRecorder(), Ended())
        let counts = OpenConnections(
            limit: 6, perClient: 100, proxies: TrustedProxies(), logger: log.logger)
        for number in 1...5 {
            let id = try #require(
                try Self.open(counts, "192.0.2.\(number)", at: Int64(number), ended))
            counts.enter(.working, id, now: Self.at(Int64(number)))
            if number > 1 { counts.enter(.fetching, id, now: Self.at(Int64(number))) }
        }
        // An answer takes some round trips.
        #expect(try Self.open(counts, "192.0.2.6", at: 500, ended) != nil)
        #expect(ended.take() == [])
        #expect(try Self.open(counts, "192.0.2.7", at: 1_100, ended) != nil)
        #expect(ended.take() == ["192.0.2.2", "192.0.2.3"], "one place is kept free")
        // A working connection stays, for any time.
        #expect(try Self.open(counts, "192.0.2.8", at: 1_200, ended) != nil)
        #expect(ended.take() == ["192.0.2.4"])
    }

    @Test func openConnections_allWorking_closesNextToGoIdle() throws {
        let ended = Ended()
        let counts = OpenConnections(
            limit: 3, perClient: 100, proxies: TrustedProxies(), logger: LogRecorder().logger)
        let ids = try (1...3).map {
            try #require(try Self.open(counts, "192.0.2.\($0)", at: Int64($0), ended))
        }
        #expect(ended.take() == ["192.0.2.1"])
        _ = ids
        let busy = OpenConnections(
            limit: 3, perClient: 100, proxies: TrustedProxies(), logger: LogRecorder().logger)
        let working = try (1...3).map { number in
            let id = try #require(try Self.open(busy, "192.0.2.\(number)", at: 0, ended))
            busy.enter(.working, id, now: Self.at(1))
            return id
        }
        #expect(ended.take() == [])
        busy.enter(.idle, working[1], now: Self.at(2))
        #expect(ended.take() == ["192.0.2.2"])
        busy.enter(.idle, working[2], now: Self.at(3))
        #expect(ended.take() == [], "one place is free")
    }

    @Test func openConnections_fullOfClients_keepsPlacesForProxies() throws {
        let (log, ended) = (LogRecorder(), Ended())
        let counts = OpenConnections(
            limit: 20, perClient: 100, proxies: TrustedProxies(), logger: log.logger)
        // Proxies are silent from the beginning; clients are at work.
        let silent = try #require(try Self.open(counts, "127.0.0.1", at: 0, ended))
        for number in 1...18 {
            counts.enter(
                .working, try #require(try Self.open(counts, "192.0.2.\(number)", at: 10, ended)),
                now: Self.at(11))
        }
        #expect(try Self.open(counts, "203.0.113.1", at: 5000, ended) == nil)
        #expect(log.lines.count == 1 && log.lines[0].contains("all connections are in use"))
        #expect(ended.take() == [])
        // Another connection of this machine is accepted, and only then its own longest silent one
        // closes.
        #expect(try Self.open(counts, "127.0.0.1", at: 5001, ended) != nil)
        #expect(ended.take() == ["127.0.0.1"])
        counts.close(silent)
        // Clients that send nothing close first.
        let mixed = OpenConnections(
            limit: 20, perClient: 100, proxies: TrustedProxies(), logger: log.logger)
        for _ in 0..<10 { _ = try Self.open(mixed, "127.0.0.1", at: 0, ended) }
        for number in 0..<9 { _ = try Self.open(mixed, "192.0.2.\(number)", at: 10, ended) }
        for _ in 0..<9 { _ = try Self.open(mixed, "127.0.0.1", at: 20, ended) }
        #expect(ended.take() == (0..<9).map { "192.0.2.\($0)" })
    }

    /// This test would not return if the listener waited for silent connections: none of them runs
    /// out of time.
    @Test(arguments: [false, true]) func listener_manySilentConnections_answersRequest(
        _ isEncrypted: Bool
    ) async throws {
        let fixture = try APIFixture { _ in [] }
        let certificate = try TestCertificate(
            in: fixture.folder.path, name: "http", commonName: "localhost")
        let certificates =
            isEncrypted
            ? try TLSCertificates(
                certificatePath: certificate.certificate, keyPath: certificate.key) : nil
        let listener = try await Listener(fixture, certificates: certificates, proxies: .none) {
            $0.handshake = .hours(1)
            $0.first = .hours(1)
            $0.head = .hours(1)
            $0.idle = .hours(1)
        }
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        let answer = try await pool.run { [port = listener.port] in
            // Four times the limit; some send nothing, some do not finish what they begin.
            let silent = try (0..<400).map { number in
                let wire = try Wire(port, from: "127.1.\(number % 40).\(1 + number % 5)")
                if number % 3 > 0 {
                    wire.send(isEncrypted ? "\u{16}\u{3}\u{1}" : "POST /echo HTTP/1.1\r\nHo")
                }
                if number % 3 > 1, !isEncrypted {
                    wire.send("st: a\r\nContent-Length: 5\r\n\r\nab")
                }
                return wire
            }
            return try withExtendedLifetime(silent) {
                let question =
                    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                guard isEncrypted else {
                    let wire = try Wire(port, from: "127.2.0.1")
                    wire.send(question)
                    return wire.rest()
                }
                let client = try ManagedProcess(
                    "/usr/bin/env", ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"])
                client.writeInput(question)
                _ = try client.waitForExit()
                return client.output
            }
        }
        #expect(answer.contains("HTTP/1.1 200"), "\(answer)")
        #expect(fixture.log.lines.contains { $0.contains("silent HTTP connections are closed") })
    }
}
