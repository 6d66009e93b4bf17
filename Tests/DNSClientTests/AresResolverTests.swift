// The resolver with a real name server on loopback that answers, fails, or stays silent.

import DNSTesting
import Foundation
import MailAuth
import Synchronization
import TestSupport
import Testing

@testable import DNSClient

private func resolver(
    _ servers: TestDNSServer..., clock: ManualClock = ManualClock(),
    cache: DNSCacheLimits = DNSCacheLimits(),
    tryMilliseconds: Int32 = 20_000, inFlight: Int = 4_096
) throws -> AresResolver {
    // Generous limits, which a busy machine keeps: tests check answers and counts, not time. Tries
    // are short only if no usable answer will come.
    let settings = DNSClientSettings(
        servers: servers.map(\.address), tryMilliseconds: tryMilliseconds, tries: 2,
        questionMilliseconds: 120_000,
        maximumInFlight: inFlight, cache: cache)
    return try AresResolver(settings: settings, now: { clock.now })
}

private func isTemporary(_ answer: DNSAnswer) -> Bool {
    if case .temporaryFailure = answer { true } else { false }
}

private func text(_ string: String) -> ZoneResolver.Node {
    .init(records: [.txt: [.txt(Array(string.utf8))]])
}

/// Waits until a condition is true, and yields the processor; false after half a minute.
private func eventually(_ condition: () -> Bool) -> Bool {
    let end = MonotonicClock.milliseconds() + 30_000
    while !condition() {
        guard MonotonicClock.milliseconds() < end else { return false }
        sched_yield()
    }
    return true
}

@Suite(.blocking) struct AresResolverTests {
    @Test func resolver_eachRecordType_answersRecordsNoDataOrNXDomain() throws {
        let zone = try ZoneFile(
            json: Data(
                """
                {"example.com": {"TXT": ["v=spf1 -all", "second"], "A": ["192.0.2.1", "192.0.2.2"], "AAAA": ["2001:db8::1"],
                                 "MX": [[10, "mx.example.com."], [0, "."]]},
                 "1.2.0.192.in-addr.arpa": {"PTR": ["Host.Example.com"]},
                 "alias.example.com": {"CNAME": "alias2.example.com"}, "alias2.example.com": {"CNAME": "Example.com."},
                 "dangling.example.com": {"CNAME": "nowhere.example.com"},
                 "loop.example.com": {"CNAME": "loop.example.com"},
                 "broken.example.com": {"error": "SERVFAIL"},
                 "half.example.com": {"A": ["192.0.2.9"], "TXT": {"error": "SERVFAIL"}}}
                """.utf8))
        let server = try TestDNSServer(zone: zone)
        defer { server.stop() }
        let resolver = try resolver(server)
        #expect(
            resolver.query("example.com", .txt)
                == .records([.txt(Array("v=spf1 -all".utf8)), .txt(Array("second".utf8))]))
        #expect(
            resolver.query("EXAMPLE.com.", .a)
                == .records([.address([192, 0, 2, 1]), .address([192, 0, 2, 2])]))
        #expect(
            resolver.query("example.com", .aaaa)
                == .records([.address([0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [1])])
        )
        #expect(
            resolver.query("example.com", .mx)
                == .records([
                    .mx(preference: 10, exchange: "mx.example.com"),
                    .mx(preference: 0, exchange: ""),
                ]))
        #expect(
            resolver.query("1.2.0.192.in-addr.arpa", .ptr) == .records([.ptr("host.example.com")]))
        #expect(resolver.query("example.com", .ptr) == .noData)
        #expect(resolver.query("no.example.com", .a) == .nxDomain)
        #expect(
            resolver.query("alias.example.com", .a)
                == .records([.address([192, 0, 2, 1]), .address([192, 0, 2, 2])]))
        #expect(resolver.query("alias.example.com", .ptr) == .noData)
        #expect(resolver.query("dangling.example.com", .txt) == .nxDomain)
        #expect(isTemporary(resolver.query("broken.example.com", .a)))
        #expect(isTemporary(resolver.query("half.example.com", .txt)))
        #expect(resolver.query("half.example.com", .a) == .records([.address([192, 0, 2, 9])]))
        // A text that cannot be a name is not queried; a name that only looks unusual is.
        let before = server.questions.count
        for name in [
            "", "a..b", String(repeating: "a", count: 64) + ".example", "caf\u{e9}.example",
        ] {
            #expect(resolver.query(name, .a) == .nxDomain, "\(name)")
        }
        #expect(server.questions.count == before)
        server.set("o'dd \\na@me.example", text("odd"))
        #expect(resolver.query("o'dd \\na@me.example", .txt) == .records([.txt(Array("odd".utf8))]))
    }

    @Test func resolver_txtTooLongForUDP_isReadWholeOverTCP() throws {
        let long = (0..<40).map { "part \($0) " + String(repeating: "x", count: 90) }.joined()
        let server = try TestDNSServer(nodes: ["long.example": text(long)])
        defer { server.stop() }
        // Longer than the requested UDP answer, so it comes by TCP.
        #expect(
            try resolver(server).query("long.example", .txt) == .records([.txt(Array(long.utf8))]))
        #expect(server.questions.map(\.transport) == [.udp, .tcp])
    }

    @Test(arguments: [
        (TestDNSServer.Quirk.silence, 2), (.responseCode(2), 2), (.responseCode(5), 2),
        (.responseCode(4), 2),
        (.responseCode(9), 1),
        (.wrongID, 2), (.wrongQuestion, 2), (.raw([]), 2), (.raw([1, 2, 3]), 2),
        (.raw(Array(repeating: 0xFF, count: 400)), 2),
        (.corruptAnswer([]), 1), (.corruptAnswer([0xC0, 0x0C, 0, 16, 0, 1]), 1),
        (.corruptAnswer([0xC0, 0x1E]), 1),
        (.corruptAnswer([0xC0, 0x0C, 0, 16, 0, 1, 0, 0, 0, 9, 0, 2, 9, 65]), 1),
        (.corruptAnswer([0, 0, 16, 0, 1, 0, 0, 0, 9, 0xFF, 0xFF]), 1),
    ])
    func resolver_unusableResponse_isUncachedTemporaryFailure(
        _ quirk: TestDNSServer.Quirk, _ questions: Int
    ) throws {
        let server = try TestDNSServer(nodes: ["x.example": text("fine")])
        defer { server.stop() }
        server.program("x.example", quirk)
        let isIgnored =
            switch quirk {
            case .silence, .wrongID, .wrongQuestion, .raw: true
            default: false
            }
        let resolver = try resolver(server, tryMilliseconds: isIgnored ? 40 : 20_000)
        let answer = resolver.query("x.example", .txt)
        #expect(isTemporary(answer), "\(answer)")
        #expect(server.count("x.example") == questions)
        // Nothing of it is cached: the next query is sent again.
        #expect(resolver.cached.entries == 0)
        #expect(isTemporary(resolver.query("x.example", .txt)))
        #expect(server.count("x.example") == 2 * questions)
    }

    @Test func resolver_onePacketLost_asksAgainAndAnswers() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("fine")])
        defer { server.stop() }
        server.program("x.example", .silence, .delay(0))
        #expect(
            try resolver(server, tryMilliseconds: 1_000).query("x.example", .txt)
                == .records([.txt(Array("fine".utf8))]))
        #expect(server.count("x.example") >= 2)
    }

    @Test func resolver_truncatedResponse_asksAgainOverTCP() throws {
        let server = try TestDNSServer(nodes: [
            "x.example": text("fine"), "y.example": text("never"),
        ])
        defer { server.stop() }
        server.program("x.example", .truncatesUDP)
        server.program("y.example", .truncatesUDPAndClosesTCP)
        let resolver = try resolver(server)
        #expect(resolver.query("x.example", .txt) == .records([.txt(Array("fine".utf8))]))
        #expect(server.questions.map(\.transport) == [.udp, .tcp])
        #expect(isTemporary(resolver.query("y.example", .txt)))
    }

    @Test func resolver_serverRefusesOPT_asksAgainWithoutIt() throws {
        let server = try TestDNSServer(nodes: [
            "x.example": text("x"), "y.example": text("y"), "z.example": text("z"),
        ])
        defer { server.stop() }
        let resolver = try resolver(server)
        for name in ["x", "y", "z"] {
            server.program("\(name).example", .refusesOPT)
            #expect(resolver.query("\(name).example", .txt) == .records([.txt(Array(name.utf8))]))
            #expect(server.questions.suffix(2).map(\.hasOPT) == [true, false])
        }
        #expect(server.questions.count == 6)
        server.program("z.example", .responseCode(1))
        #expect(isTemporary(resolver.query("z.example", .a)))
    }

    @Test func resolver_firstServerFails_asksSecondServer() throws {
        let bad = try TestDNSServer(nodes: ["x.example": text("wrong")])
        let good = try TestDNSServer(nodes: ["x.example": text("right")])
        defer {
            bad.stop()
            good.stop()
        }
        bad.program("x.example", .responseCode(2))
        #expect(
            try resolver(bad, good).query("x.example", .txt)
                == .records([.txt(Array("right".utf8))]))
        let gone = try TestDNSServer()
        gone.stop()
        #expect(
            try resolver(gone, good, tryMilliseconds: 1_000).query("x.example", .txt)
                == .records([.txt(Array("right".utf8))]))
        #expect(isTemporary(try resolver(gone, tryMilliseconds: 40).query("x.example", .txt)))
    }

    @Test func resolver_ttlExpired_asksServerAgain() throws {
        let server = try TestDNSServer(
            nodes: ["x.example": text("x"), "plain.example": .init()], ttl: 300, negativeTTL: 60)
        let rude = try TestDNSServer(nodes: [:], negativeTTL: nil)
        defer {
            server.stop()
            rude.stop()
        }
        let clock = ManualClock()
        let resolver = try resolver(server, clock: clock)
        func ask(_ name: String, _ type: DNSRecordType) -> Int {
            _ = resolver.query(name, type)
            return server.count(name)
        }
        #expect(ask("x.example", .txt) == 1)
        clock.advance(299)
        #expect(ask("X.example.", .txt) == 1)
        clock.advance(1)
        #expect(ask("x.example", .txt) == 2)
        for name in ["no.example", "plain.example"] {
            #expect(ask(name, .txt) == 1)
            clock.advance(59)
            #expect(ask(name, .txt) == 1)
            clock.advance(1)
            #expect(ask(name, .txt) == 2)
        }
        // Without a SOA record the time is unknown (RFC 2308 section 5).
        let other = try AresResolver(settings: .init(servers: [rude.address]), now: { clock.now })
        #expect(
            other.query("no.example", .a) == .nxDomain && other.query("no.example", .a) == .nxDomain
        )
        #expect(rude.count("no.example") == 2)
    }

    @Test func resolver_ttlOutsideCacheLimits_isClamped() throws {
        let clock = ManualClock()
        let server = try TestDNSServer(
            nodes: ["x.example": text("x")], ttl: 1_000_000, negativeTTL: 1_000_000)
        let hasty = try TestDNSServer(nodes: ["x.example": text("x")], ttl: 0)
        defer {
            server.stop()
            hasty.stop()
        }
        let limits = DNSCacheLimits(minimumTTL: 5, maximumTTL: 100, maximumNegativeTTL: 10)
        let long = try resolver(server, clock: clock, cache: limits)
        let short = try resolver(hasty, clock: clock, cache: limits)
        for _ in 0..<2 {
            _ = (
                long.query("x.example", .txt), long.query("no.example", .txt),
                short.query("x.example", .txt)
            )
        }
        #expect(
            server.count("x.example") == 1 && server.count("no.example") == 1
                && hasty.count("x.example") == 1)
        clock.advance(10)
        for _ in 0..<2 {
            _ = (
                long.query("x.example", .txt), long.query("no.example", .txt),
                short.query("x.example", .txt)
            )
        }
        #expect(
            server.count("x.example") == 1 && server.count("no.example") == 2
                && hasty.count("x.example") == 2)
        clock.advance(90)
        _ = long.query("x.example", .txt)
        #expect(server.count("x.example") == 2)
    }

    @Test func resolver_sameQuestionInFlight_isSentOnce() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("x")])
        defer { server.stop() }
        server.program("x.example", .held)
        let resolver = try resolver(server, tryMilliseconds: 60_000)
        let answers = Mutex<[DNSAnswer]>([])
        let group = DispatchGroup()
        for _ in 0..<12 {
            let thread = Thread {
                let answer = resolver.query("x.example", .txt)
                answers.withLock { $0.append(answer) }
                group.leave()
            }
            group.enter()
            thread.start()
        }
        #expect(eventually { resolver.counters.joined == 11 && server.questions.count == 1 })
        server.release("x.example")
        group.wait()
        #expect(
            answers.withLock { $0 }
                == Array(repeating: .records([.txt(Array("x".utf8))]), count: 12))
        #expect(server.questions.count == 1)
    }

    @Test func resolver_waitLimitElapsed_isTemporaryFailure() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("x")])
        defer { server.stop() }
        server.program("x.example", .held)
        let resolver = try resolver(server, tryMilliseconds: 60_000)
        #expect(
            resolver.query("x.example", .txt, within: 20) == .temporaryFailure("no answer in time"))
        #expect(
            resolver.query("x.example", .txt, within: 0) == .temporaryFailure("no answer in time"))
        // The query continues, and its answer is there for the next caller.
        server.release("x.example")
        #expect(resolver.query("x.example", .txt) == .records([.txt(Array("x".utf8))]))
        #expect(server.questions.count == 1)
    }

    @Test func resolver_closedWhileWaiting_isTemporaryFailure() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("x")])
        defer { server.stop() }
        server.program("x.example", .held)
        let resolver = try resolver(server, tryMilliseconds: 60_000)
        let answer = Mutex<DNSAnswer?>(nil)
        let group = DispatchGroup()
        group.enter()
        Thread {
            let result = resolver.query("x.example", .txt)
            answer.withLock { $0 = result }
            group.leave()
        }.start()
        #expect(eventually { server.questions.count == 1 })
        resolver.close()
        group.wait()
        #expect(answer.withLock { $0.map(isTemporary) } == true)
        #expect(isTemporary(resolver.query("y.example", .txt)))
        resolver.close()
    }

    @Test func resolver_manyThreads_sendsEachQuestionOnce() throws {
        var nodes: [String: ZoneResolver.Node] = [:]
        for number in 0..<400 { nodes["n\(number).example"] = text("\(number)") }
        let server = try TestDNSServer(nodes: nodes)
        defer { server.stop() }
        let resolver = try resolver(server)
        let wrong = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { worker in
            for step in 0..<400 {
                let number = (step * 7 + worker * 50) % 400
                let answer = resolver.query("n\(number).example", .txt)
                if answer != .records([.txt(Array("\(number)".utf8))]) {
                    wrong.withLock { $0.append("\(number): \(answer)") }
                }
            }
        }
        #expect(wrong.withLock { $0 } == [])
        #expect(server.questions.count == 400)
        let counters = resolver.counters
        #expect(
            counters.asked == 3200 && counters.sent == 400
                && counters.cached + counters.joined == 2800 && counters.failed == 0)
    }

    @Test func resolver_inFlightLimitReached_refusesQuery() throws {
        let server = try TestDNSServer()
        defer { server.stop() }
        server.program("a.example", .held)
        let resolver = try resolver(server, tryMilliseconds: 60_000, inFlight: 1)
        #expect(
            resolver.query("a.example", .a, within: 0) == .temporaryFailure("no answer in time"))
        #expect(resolver.query("b.example", .a) == .temporaryFailure("too many queries in flight"))
        server.release("a.example")
        #expect(resolver.query("a.example", .a) == .nxDomain)
        #expect(resolver.query("b.example", .a) == .nxDomain)
    }

    @Test func resolver_manyNames_keepsCacheWithinLimits() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("x")])
        defer { server.stop() }
        let resolver = try resolver(server, cache: DNSCacheLimits(entries: 200, bytes: 20_000))
        for number in 0..<3_000 { #expect(resolver.query("n\(number).example", .txt) == .nxDomain) }
        #expect(
            resolver.cached.entries <= 200 && resolver.cached.bytes <= 20_000
                && resolver.cached.entries > 50)
        #expect(resolver.waiting == 0)
        #expect(server.questions.count == 3_000)
    }

    @Test func resolver_unreferenced_isDeallocated() throws {
        let server = try TestDNSServer(nodes: ["x.example": text("x")])
        defer { server.stop() }
        weak var gone: AresResolver?
        for _ in 0..<20 {
            let resolver = try resolver(server)
            gone = resolver
            _ = resolver.query("x.example", .txt)
        }
        #expect(gone == nil)
        #expect(server.questions.count == 20)
    }
}
