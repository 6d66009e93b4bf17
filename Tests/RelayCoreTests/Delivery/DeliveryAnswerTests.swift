// Providers' answers have the class that a person would give them.

import Foundation
import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite struct DeliveryAnswerTests {
    private static let file =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Vectors/delivery/answers.txt")

    @Test func answer_ofEachProvider_hasItsClass() throws {
        let lines = try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
        #expect(lines.count > 60)
        for line in lines {
            let parts = line.split(separator: "|", maxSplits: 2).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            try #require(parts.count == 3, "\(line)")
            let expected = try #require(DeliveryOutcome(rawValue: parts[0]), "\(line)")
            let action = try #require(DeliveryAction(rawValue: parts[1]), "\(line)")
            let answer = DeliveryAnswer(status: nil, action: action, text: parts[2])
            #expect(answer.outcome == expected, "\(line)")
        }
    }

    @Test func answer_delivered_isNotReadFurther() {
        let answer = DeliveryAnswer(
            status: nil, action: .delivered, text: "250 2.0.0 OK, spam score 3, blacklisted")
        #expect(answer.outcome == .delivered)
    }

    @Test func answer_withoutWords_hasTheClassOfItsStatus() {
        func outcome(_ level: Int, _ subject: Int, _ detail: Int) -> DeliveryOutcome {
            DeliveryAnswer(
                status: EnhancedStatus(level, subject, detail),
                action: level == 4 ? .delayed : .failed, text: ""
            ).outcome
        }
        #expect(outcome(5, 1, 1) == .noSuchUser)
        #expect(outcome(4, 7, 28) == .reputation)
        #expect(outcome(5, 7, 26) == .policy)
        #expect(outcome(4, 2, 2) == .full)
        #expect(outcome(4, 4, 1) == .deferred)
        #expect(outcome(5, 0, 0) == .other)
    }

    /// Public reports of many mail systems: most failures must have a class.
    @Test(
        .enabled(
            if: Corpus.isThere, "../shared/conformance is not there"))
    func publicReports_failures_areClassified() throws {
        let folder = Corpus.root.appending(path: "bounces")
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var counts: [DeliveryOutcome: Int] = [:]
        var unclear: [String] = []
        for case let file as URL in files
        where ["eml", "raw", "txt"].contains(file.pathExtension)
            && !file.path.contains("LICENSE")
        {
            let message = Message.parse(Corpus.crlf([UInt8](try Data(contentsOf: file))))
            let report = ReportReader.read(header: message.header, body: Array(message.body))
            guard report.kind == .delivery, let recipient = report.decisive,
                recipient.action == .failed || recipient.action == .delayed
            else { continue }
            let outcome = recipient.answer.outcome
            counts[outcome, default: 0] += 1
            if outcome == .other { unclear.append(file.lastPathComponent) }
        }
        let all = counts.values.reduce(0, +)
        print(
            "public reports: \(all), without a class: \(counts[.other, default: 0]) (\(unclear.sorted().joined(separator: " "))), \(counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))"
        )
        #expect(all > 50)
        #expect(counts[.other, default: 0] * 6 <= all)
    }

    @Test func provider_ofAHost_isItsFamily() {
        let hosts: [(String, ProviderFamily)] = [
            ("gmail-smtp-in.l.google.com", .google), ("ASPMX.L.GOOGLE.COM.", .google),
            ("app-example.mail.protection.outlook.com", .microsoft),
            ("mta7.am0.yahoodns.net", .yahoo), ("mx01.mail.icloud.com", .apple),
            ("mx00.gmx.net", .unitedInternet), ("mx-ha02.web.de", .unitedInternet),
            ("smtp-in.orange.fr", .orange), ("mx3.qq.com", .tencent), ("mxs.mail.ru", .mailru),
            ("mxa-001.gslb.pphosted.com", .proofpoint),
            ("eu-smtp-inbound-1.mimecast.com", .mimecast), ("notgoogle.com", .other),
            ("google.com.attacker.example", .other), ("", .other), ("[192.0.2.1]", .other),
        ]
        for (host, family) in hosts { #expect(ProviderFamily(host: host) == family, "\(host)") }
        #expect(ProviderFamily(domain: "GMAIL.com") == .google)
        #expect(ProviderFamily(domain: "home.example") == .other)
    }
}
