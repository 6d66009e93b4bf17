// Every case of the RFC 7208 and RFC 4408 test suites (conformance/spf).

import Foundation
import Testing

@testable import MailAuth

/// Where the public test data stands: POSTERN_CONFORMANCE, else beside the package.
private let conformanceFolder: URL = {
    if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] { return URL(fileURLWithPath: path) }
    return URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
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
                    throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "unknown entry \(word)"))
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
            self = .record(type: type, strings: values.compactMap(\.text), preference: values.compactMap(\.number).first ?? 0)
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
                // YAML escapes stand for octets: each character is one octet.
                let octets = strings.joined().unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
                node.records[.txt, default: []].append(.txt(octets))
            case "A": node.records[.a, default: []].append(.address(try #require(IPAddress.ipv4(Array(strings[0].utf8)[...]))))
            case "AAAA": node.records[.aaaa, default: []].append(.address(try #require(IPAddress.ipv6(Array(strings[0].utf8)[...]))))
            case "MX":
                node.records[.mx, default: []].append(.mx(preference: UInt16(preference), exchange: strings.first ?? ""))
            case "PTR": node.records[.ptr, default: []].append(.ptr(strings[0]))
            case "CNAME": node.alias = strings[0]
            // Type 99 is not asked for any more (RFC 7208 section 3.1).
            case "SPF": continue
            default: Issue.record("unknown type \(type) at \(name)")
            }
        }
        if entries.contains(where: { if case .timeout = $0 { true } else { false } }) { node.failure = .timeout }
        nodes[name] = node
    }
    return ZoneResolver(nodes)
}

/// Cases of the RFC 4408 suite that RFC 7208 decides otherwise.
private let changedByRFC7208: [String: (result: String, reason: String)] = [:]

@Suite struct SPFConformanceTests {
    @Test(.enabled(if: FileManager.default.fileExists(atPath: conformanceFolder.path), "the conformance folder is absent"))
    func everyCase() throws {
        let data = try Data(contentsOf: conformanceFolder.appendingPathComponent("spf/spf-cases.json"))
        let file = try JSONDecoder().decode(SuiteFile.self, from: data)
        var passed = 0
        var changed: Set<String> = []
        for test in file.cases {
            let zone = try resolver(#require(file.zones[test.zone]))
            let client = SMTPClientIdentity(address: test.ip, helo: test.helo, mailFrom: test.mailfrom)
            let outcome = SPF.check(
                client: client, identity: test.mailfrom.isEmpty ? .helo : .mailFrom, resolver: zone,
                explaining: .init(hostName: "mx.example.net", time: 1_700_000_000))
            var expected = test.expected
            if test.suite.hasPrefix("rfc4408"), let change = changedByRFC7208[test.name] {
                #expect(!expected.contains(change.result), "\(test.name) needs no exception")
                expected = [change.result]
                changed.insert(test.name)
            }
            var explanation = test.explanation
            if explanation == "DEFAULT" { explanation = nil }
            let agrees =
                expected.contains(outcome.finding.result.rawValue)
                && (test.explanation == nil || explanation == outcome.explanation)
            #expect(
                agrees,
                "\(test.suite) \(test.name): \(outcome.finding.result) (\(outcome.finding.reason)), expected \(expected); explanation \(outcome.explanation ?? "none"), expected \(test.explanation ?? "any")")
            if agrees { passed += 1 }
        }
        print("spf: \(passed) of \(file.cases.count) cases, \(changed.count) of them with the result of RFC 7208 instead of RFC 4408")
        #expect(file.cases.count >= 394)
        #expect(changed == Set(changedByRFC7208.keys))
    }
}
