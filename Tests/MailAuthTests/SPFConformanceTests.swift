// Every case of the RFC 7208 and RFC 4408 test suites (conformance/spf).

import Foundation
import TestSupport
import Testing

@testable import MailAuth

/// The folder of the public test data: POSTERN_CONFORMANCE, or otherwise next to the package.
private let conformanceFolder: URL = {
    if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] {
        return URL(fileURLWithPath: path)
    }
    return URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("shared/conformance")
}()

private struct SuiteFile: Decodable {
    struct Case: Decodable {
        let suite, name, zone, helo, ip, mailfrom: String
        let expected: [String]
        let explanation: String?
    }

    /// `"TIMEOUT"`, or a record.
    enum Entry: Decodable {
        case timeout
        case record(type: String, strings: [String], preference: Int)

        private enum Key: CodingKey { case type, value }
        private struct Mixed: Decodable {
            let text: String?
            let number: Int?
            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                number = try? container.decode(Int.self)
                text = number == nil ? try container.decode(String.self) : nil
            }
        }

        init(from decoder: any Decoder) throws {
            if let word = try? decoder.singleValueContainer().decode(String.self) {
                guard word == "TIMEOUT" else {
                    throw DecodingError.dataCorrupted(
                        .init(
                            codingPath: decoder.codingPath,
                            debugDescription: "unknown entry \(word)"))
                }
                self = .timeout
                return
            }
            let container = try decoder.container(keyedBy: Key.self)
            let type = try container.decode(String.self, forKey: .type)
            let values: [Mixed]
            if let text = try? container.decode(String.self, forKey: .value) {
                self = .record(type: type, strings: [text], preference: 0)
                return
            }
            values = try container.decode([Mixed].self, forKey: .value)
            self = .record(
                type: type, strings: values.compactMap(\.text),
                preference: values.compactMap(\.number).first ?? 0)
        }
    }

    let zones: [String: [String: [Entry]]]
    let cases: [Case]
}

private func resolver(_ zone: [String: [SuiteFile.Entry]]) throws -> ZoneResolver {
    var nodes: [String: ZoneResolver.Node] = [:]
    for (name, entries) in zone {
        var node = ZoneResolver.Node()
        for case .record(let type, let strings, let preference) in entries {
            switch type {
            case "TXT":
                // YAML escapes represent octets: each character is one octet.
                let octets = strings.joined().unicodeScalars.map {
                    UInt8(truncatingIfNeeded: $0.value)
                }
                node.records[.txt, default: []].append(.txt(octets))
            case "A":
                node.records[.a, default: []].append(
                    .address(try #require(IPAddress.ipv4(Array(strings[0].utf8)[...]))))
            case "AAAA":
                node.records[.aaaa, default: []].append(
                    .address(try #require(IPAddress.ipv6(Array(strings[0].utf8)[...]))))
            case "MX":
                node.records[.mx, default: []].append(
                    .mx(preference: UInt16(preference), exchange: strings.first ?? ""))
            case "PTR": node.records[.ptr, default: []].append(.ptr(strings[0]))
            case "CNAME": node.alias = strings[0]
            // Type 99 is not queried (RFC 7208 section 3.1).
            case "SPF": continue
            default: Issue.record("unknown type \(type) at \(name)")
            }
        }
        if entries.contains(where: { if case .timeout = $0 { true } else { false } }) {
            node.failure = .timeout
        }
        nodes[name] = node
    }
    return ZoneResolver(nodes)
}

/// Cases of the RFC 4408 suite that allow several results, or use type 99 records, with the result
/// of RFC 7208. No case of that suite requires a result that RFC 7208 forbids. Such a case would be
/// listed here too, and its own expectation would not count.
private let decidedByRFC7208: [String: (result: String, reason: String)] = [
    "txtonly": ("fail", "section 3.1: only TXT records are published and asked for"),
    "spfonly": ("none", "section 3.1: type 99 is not asked for"),
    "spftimeout": ("fail", "section 3.1: type 99 is not asked for, so its time-out is not seen"),
    "txttimeout": ("temperror", "section 4.4: the TXT look-up failed, and there is no other"),
    "nospftxttimeout": ("temperror", "section 4.4: the TXT look-up failed, and there is no other"),
    "spfoverride": ("fail", "section 3.1: the type 99 record does not override the TXT record"),
    "multitxt1": (
        "permerror", "section 4.5: two TXT records begin with v=spf1; type 99 does not help"
    ),
    "multispf1": ("permerror", "section 4.5: two TXT records begin with v=spf1"),
    "multispf2": (
        "pass", "section 4.5: one TXT record; how many there are of type 99 does not matter"
    ),
    "exists-dnserr": ("temperror", "section 5: a failing look-up of a mechanism is a temperror"),
    "cidr6-0-ip4": ("neutral", "section 5.6: ip6 never matches an IPv4 client"),
    "cidr6-ip4": ("neutral", "section 5: an IPv4-mapped address is an IPv4 address"),
    "mx-limit": ("permerror", "section 4.6.4: more than ten exchanges are an error"),
    "invalid-domain-empty-label": (
        "fail", "section 4.8 leaves it open: here a name that cannot be asked for matches nothing"
    ),
    "invalid-domain-long": (
        "fail", "section 4.8 leaves it open: here a name that cannot be asked for matches nothing"
    ),
    "invalid-domain-long-via-macro": (
        "fail", "section 4.8 leaves it open: here a name that cannot be asked for matches nothing"
    ),
    "p-macro-multiple": ("pass", "section 7.3: a validated name below the domain is preferred"),
    "ptr-limit": ("neutral", "section 4.6.4: PTR names after the tenth are ignored"),
]

@Suite(.blocking) struct SPFConformanceTests {
    @Test(
        .enabled(
            if: FileManager.default.fileExists(atPath: conformanceFolder.path),
            "the conformance folder is absent"))
    func spf_publicCases_giveExpectedResult() throws {
        let data = try Data(
            contentsOf: conformanceFolder.appendingPathComponent("spf/spf-cases.json"))
        let file = try JSONDecoder().decode(SuiteFile.self, from: data)
        var passed = 0
        var narrowed: Set<String> = []
        for test in file.cases {
            let zone = try resolver(#require(file.zones[test.zone]))
            let client = SMTPClientIdentity(
                address: test.ip, helo: test.helo, mailFrom: test.mailfrom)
            let outcome = SPF.check(
                client: client, identity: test.mailfrom.isEmpty ? .helo : .mailFrom, resolver: zone,
                explaining: .init(hostName: "mx.example.net", time: 1_700_000_000))
            var expected = test.expected
            if test.suite.hasPrefix("rfc4408"), let decided = decidedByRFC7208[test.name] {
                expected = [decided.result]
                narrowed.insert(test.name)
            }
            var explanation = test.explanation
            if explanation == "DEFAULT" { explanation = nil }
            let agrees =
                expected.contains(outcome.finding.result.rawValue)
                && (test.explanation == nil || explanation == outcome.explanation)
            #expect(
                agrees,
                """
                \(test.suite) \(test.name): \(outcome.finding.result) (\(outcome.finding.reason)), expected \(expected);
                explanation \(outcome.explanation ?? "none"), expected \(test.explanation ?? "any")
                """
            )
            if agrees { passed += 1 }
        }
        print(
            "spf: \(passed) of \(file.cases.count) cases; in \(narrowed.count) of RFC 4408 what RFC 7208 decides"
        )
        #expect(file.cases.count >= 394)
        #expect(narrowed == Set(decidedByRFC7208.keys))
    }
}
