// The parts of the DNS client alone: cache, budget, message parser, addresses, zone files.

import Foundation
import MailAuth
import Synchronization
import TestSupport
import Testing

@testable import DNSClient

@Suite(.blocking) struct DNSCacheTests {
    private func question(_ number: Int) -> DNSQuestion {
        DNSQuestion(name: "n\(number).example", type: .a)
    }

    @Test func cache_entryLimitReached_evictsLeastRecentlyUsed() {
        var cache = DNSCache(limits: DNSCacheLimits(entries: 100, bytes: 1 << 30))
        for number in 0..<100 { cache.store(.nxDomain, for: question(number), ttl: 60, now: 0) }
        // Recently used answers stay.
        #expect(cache.answer(question(0), now: 1) == .nxDomain)
        for number in 100..<199 { cache.store(.nxDomain, for: question(number), ttl: 60, now: 0) }
        #expect(cache.count == 100)
        #expect(cache.answer(question(0), now: 1) == .nxDomain)
        #expect(
            cache.answer(question(1), now: 1) == nil && cache.answer(question(99), now: 1) == nil)
    }

    @Test func cache_octetLimitReached_evictsEntries() {
        var cache = DNSCache(limits: DNSCacheLimits(entries: 1 << 20, bytes: 200_000))
        let big = DNSAnswer.records([.txt(Array(repeating: 65, count: 5_000))])
        for number in 0..<10_000 {
            cache.store(number % 3 == 0 ? big : .noData, for: question(number), ttl: 60, now: 0)
            #expect(cache.bytes <= 200_000)
        }
        #expect(cache.count > 20 && cache.count < 200)
        cache.store(
            .records([.txt(Array(repeating: 65, count: 300_000))]), for: question(-1), ttl: 60,
            now: 0)
        #expect(cache.answer(question(-1), now: 0) == nil && cache.count > 20)
        for number in 0..<10_000 { #expect(cache.answer(question(number), now: 61) == nil) }
        #expect(cache.bytes == 0 && cache.count == 0)
    }

    @Test func cache_temporaryFailure_isNotStored() {
        var cache = DNSCache(limits: DNSCacheLimits())
        cache.store(.nxDomain, for: question(1), ttl: 60, now: 0)
        cache.store(.temporaryFailure("x"), for: question(1), ttl: 60, now: 0)
        #expect(cache.answer(question(1), now: 0) == .nxDomain)
        cache.store(.noData, for: question(1), ttl: .max, now: .max - 1)
        #expect(cache.answer(question(1), now: .max - 1) == .noData)
        #expect(cache.count == 1)
    }

    /// Random use gives the same answers as a plain dictionary, if the cache still has the query.
    @Test func cache_randomOperations_matchDictionary() {
        var cache = DNSCache(limits: DNSCacheLimits(entries: 30, bytes: 8_000, minimumTTL: 0))
        var model: [DNSQuestion: (DNSAnswer, Int64)] = [:]
        var generator = SystemRandomNumberGenerator()
        var hits = 0
        for step in 0..<50_000 {
            let key = question(.random(in: 0..<60, using: &generator))
            let now = Int64(step / 10)
            if Bool.random(using: &generator) {
                let answer = DNSAnswer.records([
                    .txt(Array(repeating: 1, count: .random(in: 0..<400, using: &generator)))
                ])
                let ttl = Int64.random(in: 1..<50, using: &generator)
                cache.store(answer, for: key, ttl: ttl, now: now)
                model[key] = (answer, now + ttl)
            } else if let answer = cache.answer(key, now: now) {
                hits += 1
                #expect(model[key]?.0 == answer && (model[key]?.1 ?? 0) > now)
            }
        }
        #expect(hits > 1_000 && cache.count <= 30 && cache.bytes <= 8_000)
    }
}

@Suite(.blocking) struct BudgetedResolverTests {
    private final class Slow: TimedDNSResolver {
        let asked = Mutex<[Int64]>([])
        func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer { .noData }
        func query(_ name: String, _ type: DNSRecordType, within milliseconds: Int64) -> DNSAnswer {
            asked.withLock { $0.append(milliseconds) }
            return .noData
        }
    }

    @Test func budget_questionLimitExceeded_isTemporaryFailure() {
        let budget = BudgetedResolver(
            ZoneResolver(["a.example": .init()]), limits: .init(questions: 3))
        for _ in 0..<3 { #expect(budget.query("a.example", .a) == .noData) }
        #expect(
            budget.query("a.example", .a)
                == .temporaryFailure("more than 3 DNS queries for one message"))
        #expect(budget.questions == 4)
    }

    @Test func budget_timeLimit_runsFromFirstQuestion() {
        let clock = Mutex<Int64>(0)
        let slow = Slow()
        let budget = BudgetedResolver(
            slow, limits: .init(milliseconds: 100), now: { clock.withLock { $0 } })
        clock.withLock { $0 = 5_000 }
        #expect(budget.query("a.example", .a) == .noData)
        clock.withLock { $0 = 5_070 }
        #expect(budget.query("a.example", .a) == .noData)
        clock.withLock { $0 = 5_100 }
        #expect(
            budget.query("a.example", .a)
                == .temporaryFailure("more than 100 ms of DNS for one message"))
        #expect(slow.asked.withLock { $0 } == [100, 30])
    }
}

@Suite(.blocking) struct DNSMessageTests {
    private func reply(
        _ bytes: [UInt8], _ name: String = "a.example", _ type: DNSRecordType = .txt
    ) -> DNSMessage.Reply {
        bytes.withUnsafeBufferPointer { DNSMessage.reply($0, to: name, type) }
    }

    private func message(
        code: UInt8 = 0, answers: UInt8 = 0, authority: UInt8 = 0, _ rest: [UInt8]
    ) -> [UInt8] {
        [0, 1, 0x81, 0x80 | code, 0, 1, 0, answers, 0, authority, 0, 0, 1, 97, 7]
            + Array("example".utf8) + [0, 0, 16, 0, 1]
            + rest
    }

    private static let owner: [UInt8] = [0xC0, 12]
    private static func record(
        _ owner: [UInt8], _ type: UInt8, ttl: UInt8, _ data: [UInt8]
    ) -> [UInt8] {
        owner + [0, type, 0, 1, 0, 0, 0, ttl, 0, UInt8(data.count)] + data
    }

    @Test func reply_validMessage_returnsAnswerAndLowestTTL() {
        let one = Self.record(Self.owner, 16, ttl: 9, [2, 104, 105, 0, 1, 33])
        #expect(
            reply(message(answers: 1, one)) == .answer(.records([.txt(Array("hi!".utf8))]), ttl: 9))
        let two = one + Self.record(Self.owner, 16, ttl: 4, [0])
        #expect(
            reply(message(answers: 2, two))
                == .answer(.records([.txt(Array("hi!".utf8)), .txt([])]), ttl: 4))
        // A CNAME limits the TTL of its target, and records of other owners do not count.
        let chain =
            Self.record(Self.owner, 5, ttl: 3, [1, 98, 0xC0, 14])
            + Self.record([1, 66, 0xC0, 14], 16, ttl: 9, [1, 66])
            + Self.record([1, 99, 0xC0, 14], 16, ttl: 1, [1, 67])
        #expect(reply(message(answers: 3, chain)) == .answer(.records([.txt([66])]), ttl: 3))
        let soa = Self.record([0], 6, ttl: 50, [0, 0] + Array(repeating: 0, count: 19) + [20])
        #expect(reply(message(authority: 1, soa)) == .answer(.noData, ttl: 20))
        #expect(reply(message(code: 3, authority: 1, soa)) == .answer(.nxDomain, ttl: 20))
        #expect(reply(message(code: 3, [])) == .answer(.nxDomain, ttl: nil))
        let loop = Self.record(Self.owner, 5, ttl: 3, Self.owner)
        #expect(reply(message(answers: 1, loop)) == .unusable("CNAME loop"))
        // A TTL with its highest bit set is zero (RFC 2181 section 8).
        var old = one
        old[6] = 0x80
        #expect(
            reply(message(answers: 1, old)) == .answer(.records([.txt(Array("hi!".utf8))]), ttl: 0))
    }

    @Test func reply_chainOfAliases_isFollowedForSixteenSteps() {
        func name(_ number: Int) -> [UInt8] {
            number == 0 ? Self.owner : [2, 98, UInt8(97 + number), 0xC0, 14]
        }
        for length in [1, 16, 17, 20] {
            let chain = (0..<length).flatMap { Self.record(name($0), 5, ttl: 9, name($0 + 1)) }
            let message = message(
                answers: UInt8(length + 1), chain + Self.record(name(length), 16, ttl: 9, [1, 66]))
            #expect(
                reply(message)
                    == (length <= 16
                        ? .answer(.records([.txt([66])]), ttl: 9)
                        : .unusable("CNAME chain too long")),
                "\(length)")
        }
    }

    @Test func reply_damagedMessage_isUnusable() {
        let good = message(answers: 1, Self.record(Self.owner, 16, ttl: 9, [2, 104, 105]))
        #expect(reply(good) == .answer(.records([.txt(Array("hi".utf8))]), ttl: 9))
        for count in 0..<good.count {
            guard case .unusable = reply(Array(good[..<count])) else {
                Issue.record("a message cut at \(count) was taken")
                continue
            }
        }
        func changed(_ index: Int, _ value: UInt8) -> DNSMessage.Reply {
            var copy = good
            copy[index] = value
            return reply(copy)
        }
        #expect(changed(2, 0x01) == .unusable("garbage"))
        #expect(changed(2, 0x83) == .unusable("truncated answer"))
        #expect(
            changed(3, 0x82) == .unusable("SERVFAIL") && changed(3, 0x85) == .unusable("REFUSED"))
        #expect(changed(3, 0x81) == .formatError)
        #expect(changed(5, 2) != reply(good) && changed(5, 0) == .unusable("garbage"))
        #expect(changed(13, 98) == .unusable("a response to another query"))
        #expect(reply(good, "a.example", .a) == .unusable("a response to another query"))
        // Pointers forward, to themselves, and in loops.
        for pointer in [
            [0xC0, 27], [0xC0, 29], [0xFF, 0xFF], [1, 97, 0xC0, 27], [0x40], [0x80, 1],
        ] as [[UInt8]] {
            #expect(
                reply(message(answers: 1, Self.record(pointer, 16, ttl: 1, [0])))
                    == .unusable("garbage"), "\(pointer)")
        }
    }

    @Test func reply_nameWithoutTextForm_dropsRecord() {
        func mx(_ name: [UInt8]) -> DNSMessage.Reply {
            var bytes = message(
                answers: 2,
                Self.record(Self.owner, 15, ttl: 9, [0, 5] + name)
                    + Self.record(Self.owner, 15, ttl: 9, [0, 6, 1, 98, 0]))
            bytes[24] = 15
            return reply(bytes, "a.example", .mx)
        }
        #expect(
            mx([1, 97, 0])
                == .answer(
                    .records([.mx(preference: 5, exchange: "a"), .mx(preference: 6, exchange: "b")]
                    ), ttl: 9))
        for name in [[3, 97, 46, 98, 0], [1, 0, 0], [1, 32, 0], [1, 200, 0]] as [[UInt8]] {
            #expect(
                mx(name) == .answer(.records([.mx(preference: 6, exchange: "b")]), ttl: 9),
                "\(name)")
        }
        #expect(mx([1, 97, 0, 0]) == .unusable("garbage"))
    }

    @Test func reply_randomOrMutatedOctets_doesNotTrap() {
        var generator = SystemRandomNumberGenerator()
        let soa = Self.record([0], 6, ttl: 50, [0, 0] + Array(repeating: 0, count: 19) + [20])
        let seed = message(
            answers: 3, authority: 1,
            Self.record(Self.owner, 5, ttl: 3, [1, 98, 0xC0, 14])
                + Self.record([1, 98, 0xC0, 14], 16, ttl: 9, [1, 66])
                + Self.record(Self.owner, 15, ttl: 1, [0, 1, 0xC0, 14]) + soa)
        var usable = 0
        for round in 0..<20_000 {
            var bytes = seed
            if round % 3 == 0 {
                bytes = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
                    .random(in: 0...255, using: &generator)
                }
            } else {
                for _ in 0..<Int.random(in: 1..<4, using: &generator) {
                    bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(
                        in: 0...255, using: &generator)
                }
                if round % 5 == 0 {
                    bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
                }
            }
            for type in DNSRecordType.allCases {
                if case .answer = reply(bytes, "a.example", type) { usable += 1 }
            }
        }
        #expect(usable > 1_000)
    }

    /// A pointer may lead to a pointer, but not through a message full of them.
    @Test func reply_chainOfPointers_isFollowedUpToLimit() {
        func chained(_ count: Int) -> DNSMessage.Reply {
            var bytes = message(answers: 2, [])
            // The first record's data is the chain: each pointer leads to the one before it, the
            // first to the query's name.
            let data = bytes.count + 11
            let pointers: [UInt8] = (0..<count).flatMap { index -> [UInt8] in
                let target = index == 0 ? 12 : data + (index - 1) * 2
                return [0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)]
            }
            bytes += [
                0, 0, 99, 0, 1, 0, 0, 0, 9, UInt8(pointers.count >> 8),
                UInt8(pointers.count & 0xFF),
            ]
            let last = bytes.count + (count - 1) * 2
            bytes += pointers
            return reply(
                bytes
                    + Self.record(
                        [0xC0 | UInt8(last >> 8), UInt8(last & 0xFF)], 16, ttl: 9, [1, 66]))
        }
        #expect(chained(126) == .answer(.records([.txt([66])]), ttl: 9))
        #expect(chained(127) == .unusable("garbage"))
    }

    @Test func question_nameAndType_isWrittenWithOPT() throws {
        let bytes = try #require(
            DNSMessage.question(id: 0x1234, name: "A.Example.", type: 16, udpPayload: 1232))
        #expect(
            bytes == [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 97, 7] + Array("example".utf8)
                + [
                    0, 0, 16, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0,
                ])
        #expect(DNSMessage.question(id: 0, name: "a..b", type: 1, udpPayload: 512) == nil)
        #expect(DNSMessage.wireName("") == [0])
    }
}

@Suite(.blocking) struct DNSFormsTests {
    @Test func serverAddress_anyText_isReadOrReturnsNil() {
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1:53"), ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:DB8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"), ("[::1]:1053", "[::1]:1053"), ("::", "[::]:53"),
        ] {
            #expect(DNSServerAddress(text)?.description == shown, "\(text)")
        }
        for text in [
            "", "localhost", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:+1",
            "[192.0.2.1]:53", "[::1", "[::1]53",
            "[::1]:", "1.2.3", "::1:x", "192.0.2.1,192.0.2.2", "[", "[]",
        ] {
            #expect(DNSServerAddress(text) == nil, "\(text)")
        }
    }

    @Test func resolver_ipv6ServerUnreachable_isTemporaryFailure() throws {
        let address = try #require(DNSServerAddress("[::1]:1"))
        let resolver = try AresResolver(
            settings: .init(servers: [address], tryMilliseconds: 50, tries: 1))
        // There is no listener. The client must open and fail in order.
        guard case .temporaryFailure = resolver.query("a.example", .a) else {
            Issue.record("an answer from nowhere")
            return
        }
    }

    @Test func zoneFile_anyJSON_answersOrIsRefused() throws {
        let zone = try ZoneFile(
            json: Data(
                """
                {"A.example.": {"TXT": ["x", ""], "MX": [[5, "m.example."]], "AAAA": {"error": "SERVFAIL"}},
                 "t.example": {"error": "TIMEOUT"}, "n.example": {"error": "NXDOMAIN"}, "d.example": {"error": "NODATA"},
                 "c.example": {"CNAME": "a.example"}}
                """
                .utf8)
        ).resolver
        #expect(zone.query("a.EXAMPLE", .txt) == .records([.txt(Array("x".utf8)), .txt([])]))
        #expect(
            zone.query("c.example", .mx) == .records([.mx(preference: 5, exchange: "m.example")]))
        #expect(
            zone.query("a.example", .aaaa) == .temporaryFailure("SERVFAIL")
                && zone.query("a.example", .a) == .noData)
        #expect(
            zone.query("t.example", .a) == .temporaryFailure("time-out")
                && zone.query("n.example", .a) == .nxDomain)
        #expect(
            zone.query("d.example", .a) == .noData && zone.query("nowhere.example", .a) == .nxDomain
        )
        for bad in [
            "", "[]", #"{"a": []}"#, #"{"a": {"A": ["::1"]}}"#, #"{"a": {"A": "1.2.3.4"}}"#,
            #"{"a": {"AAAA": ["1.2.3.4"]}}"#, #"{"a": {"MX": ["x"]}}"#,
            #"{"a": {"MX": [[70000, "x"]]}}"#,
            #"{"a": {"error": "X"}}"#, #"{"a": {"TXT": {"error": "X"}}}"#, #"{"a": {"TXT": {}}}"#,
            #"{"a": {"CNAME": 1}}"#,
        ] {
            #expect(throws: DNSClientError.self, "\(bad)") { try ZoneFile(json: Data(bad.utf8)) }
        }
        // Record types that are never queried are ignored: real zones contain NS, SOA and SPF
        // records.
        let others = try ZoneFile(
            json: Data(#"{"a": {"NS": ["x"], "SPF": ["y"], "txt": ["z"]}}"#.utf8)
        ).resolver
        #expect(
            others.query("a", .txt) == .records([.txt(Array("z".utf8))])
                && others.query("a", .a) == .noData)
    }
}
