// The public DKIM cases and canonicalization pairs.

import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import MailAuth

private struct Case: Decodable {
    enum Answer: Decodable {
        case text(String)
        case several([String])
        case error(String)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let several = try? container.decode([String].self) {
                self = .several(several)
            } else {
                self = .error(try container.decode([String: String].self)["error"] ?? "")
            }
        }

        var dnsAnswer: DNSAnswer {
            switch self {
            case .text(let text): .records([.txt(Array(text.utf8))])
            case .several(let texts): .records(texts.map { .txt(Array($0.utf8)) })
            case .error("NXDOMAIN"): .nxDomain
            case .error(let reason): .temporaryFailure(reason)
            }
        }
    }
    let name: String
    let suite: String
    let message_file: String
    let dns: [String: Answer]
    let verdict: String
    let usable: Bool
    let now: Int64?
}

@Suite(
    .blocking,
    .enabled(
        if: DKIMConformance.isPresent, "skipped: no conformance folder (set POSTERN_CONFORMANCE)"))
struct DKIMConformanceTests {
    @Test func verification_publicCases_givesExpectedVerdict() throws {
        let folder = DKIMConformance.folder.appendingPathComponent("dkim")
        let cases = try JSONDecoder().decode(
            [Case].self, from: Data(contentsOf: folder.appendingPathComponent("cases.json"))
        )
        .filter(\.usable)
        #expect(!cases.isEmpty)
        var right = 0
        for test in cases {
            let message = DKIMTestMessage(
                try [UInt8](Data(contentsOf: folder.appendingPathComponent(test.message_file))))
            let dns = DKIMTestDNS(test.dns.mapValues(\.dnsAnswer))
            let now = test.now ?? Self.present
            let findings = message.verify(dns, now: now)
            let results = findings.map(\.result)
            let verdict =
                results.isEmpty
                ? "none"
                : results.contains(.pass)
                    ? "pass" : results.contains(.temperror) ? "temperror" : "notpass"
            #expect(verdict == test.verdict, "\(test.suite) \(test.name): \(findings)")
            right += verdict == test.verdict ? 1 : 0
            for chunk in [1, 7] { #expect(message.verify(dns, now: now, chunk: chunk) == findings) }
        }
        print("dkim: \(right) of \(cases.count) cases")
    }

    /// The clock for cases without one: the time at which they were recorded, years after the last
    /// was signed.
    private static let present: Int64 = 1_795_000_000

    @Test func canonicalization_publicPairs_givesExpectedOctets() throws {
        let folder = DKIMConformance.folder.appendingPathComponent("dkim/canonicalization")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasPrefix("email.")
        }.sorted()
        #expect(!names.isEmpty)
        var pairs = 0
        for name in names {
            let number = name.dropFirst("email.".count)
            // The messages have bare LF, and one has bare CRs that belong to its text.
            let source = try [UInt8](Data(contentsOf: folder.appendingPathComponent(name))).flatMap
            {
                $0 == 10 ? [13, 10] : [$0]
            }
            let message = DKIMTestMessage(source)
            var good = true
            for (kind, word) in [(DKIMCanonicalization.simple, "simple"), (.relaxed, "relaxed")] {
                let expected = try [UInt8](
                    Data(contentsOf: folder.appendingPathComponent("\(word).expected.\(number)")))
                for chunk in [1, 2, 3, 16, 17, 64, 65536] {
                    var output = [UInt8]()
                    for field in message.header.fields {
                        kind.append(field, to: &output)
                        output += [13, 10]
                    }
                    output += [13, 10] + canonicalBody(kind, message.body, chunk: chunk)
                    #expect(output == expected, "\(name) \(word), chunks of \(chunk)")
                    good = good && output == expected
                }
            }
            pairs += good ? 1 : 0
        }
        print("dkim canonicalization: \(pairs) of \(names.count) pairs")
    }
}
