// DMARC aggregate reports: read if they are proved, in any form, and without a cost for other mail.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AggregateReportTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../Vectors/dmarc").standardizedFileURL

    private static func message(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    private static func play(
        _ message: String, evidence: AuthenticationEvidence = .signed("big.example"),
        replyMemory: Int = 1 << 28
    ) -> (Fixture, Fixture.Response) {
        let fixture = Fixture(evidence: evidence, replyMemory: replyMemory)
        return (
            fixture,
            fixture.play(from: "bounces@big.example", to: ["abuse@relay.example"], message: message)
        )
    }

    private static func reasons(_ answer: Fixture.Response) -> [String] {
        answer.decision.reasons.map(\.text)
    }

    @Test(arguments: ["xml-gz.eml", "zip.eml", "xml.eml"]) func aggregateReport_everyForm_isRead(
        _ name: String
    ) throws {
        let (fixture, answer) = Self.play(try Self.message(name))
        #expect(answer.decision.outcome == .relay)
        #expect(answer.decision.modifications.last == .addRecipient("<ops@operator.example>"))
        #expect(Self.reasons(answer) == ["operator-mail", "dmarc-report: of big.example"])
        let (reporter, report) = try #require(fixture.directory.reports.first)
        #expect(
            reporter == "big.example" && report.domain == "relay.example"
                && report.identifier == "1234567890")
        #expect(report.beginsAt == 1_763_510_400 && report.endsAt == 1_763_596_799)
        #expect(report.passed == 42 && report.failed == 7)
        func source(
            _ address: String, _ dkim: Bool, _ spf: Bool, _ disposition: String
        ) throws -> AggregateReport.Source {
            AggregateReport.Source(
                address: try #require(IPAddress(address)), passesDKIM: dkim, passesSPF: spf,
                disposition: disposition)
        }
        #expect(
            try report.messages == [
                source("192.0.2.1", true, true, "none"): 40,
                source("2001:db8::1", true, false, "none"): 2,
                source("198.51.100.9", false, false, "reject"): 7,
            ])
        #expect(fixture.engine.operatorMemory.inUse == 0)
    }

    @Test func aggregateReport_repeated_countsOnce() throws {
        let fixture = Fixture(evidence: .signed("big.example"))
        let message = try Self.message("zip.eml")
        for reason in ["of big.example", "known already, or too many"] {
            let answer = fixture.play(
                from: "bounces@big.example", to: ["abuse@relay.example"], message: message)
            #expect(Self.reasons(answer).last == "dmarc-report: " + reason)
        }
        #expect(fixture.directory.reports.count == 1)
    }

    @Test func aggregateReport_notProved_isIgnored() throws {
        for evidence in [AuthenticationEvidence(), .signed("other.example")] {
            let (fixture, answer) = Self.play(try Self.message("zip.eml"), evidence: evidence)
            #expect(answer.decision.outcome == .relay && fixture.directory.reports.isEmpty)
            #expect(Self.reasons(answer) == ["operator-mail", "dmarc-report: not proved"])
        }
    }

    @Test func aggregateReport_unpacksToTooMuch_isNotRead() throws {
        let (fixture, answer) = Self.play(try Self.message("bomb-xml-gz.eml"))
        #expect(answer.decision.outcome == .relay && fixture.directory.reports.isEmpty)
        #expect(Self.reasons(answer).last == "dmarc-report: not readable")
    }

    @Test func operatorMail_mentioningReports_isNotHeld() throws {
        let message = try Self.message("zip.eml").replacing(
            "Report domain:", with: "About the domain")
        let (fixture, answer) = Self.play(message)
        #expect(Self.reasons(answer) == ["operator-mail"] && fixture.directory.reports.isEmpty)
    }

    @Test func aggregateReport_storeAway_reachesTheOperator() throws {
        let fixture = Fixture(evidence: .signed("big.example"))
        fixture.directory.goDown()
        let answer = fixture.play(
            from: "b@big.example", to: ["abuse@relay.example"], message: try Self.message("zip.eml")
        )
        #expect(
            answer.decision.outcome == .relay
                && Self.reasons(answer)[1].hasPrefix("dmarc-report: not written down"))
    }

    /// Documents that would take seconds, or hundreds of megabytes, for a message of a few
    /// kilobytes.
    @Test(arguments: ["<a>&</a>", "&<!---->", "<a/>", "<?x?>", "<![CDATA[&]]>"])
    func xmlReader_tooManyMarks_returnsFalse(
        _ mark: String
    ) {
        let text = "<feedback>" + String(repeating: mark, count: 400_001) + "</feedback>"
        var elements = 0
        #expect(!XMLReader.read(Array(text.utf8)) { _, _ in elements += 1 })
        #expect(elements <= 400_000)
        #expect(
            !XMLReader.read(Array("<\(String(repeating: ":", count: 1_000))>".utf8)) { _, _ in })
    }

    @Test func aggregateReport_noReplyMemory_isRead() throws {
        let (fixture, answer) = Self.play(try Self.message("zip.eml"), replyMemory: 1)
        #expect(answer.decision.outcome == .relay && fixture.directory.reports.count == 1)
        #expect(fixture.engine.operatorMemory.inUse == 0)
    }

    private static func report(
        domain: String = "relay.example", id: String = "1", begin: String = "1763510400",
        end: String = "1763596799",
        records: String = "", before: String = ""
    ) -> AggregateReport? {
        AggregateReport(
            xml: Array(
                """
                \(before)<feedback><report_metadata><report_id>\(id)</report_id><date_range><begin>\(begin)</begin><end>\(end)</end>\
                </date_range></report_metadata><policy_published><domain>\(domain)</domain></policy_published>\(records)</feedback>
                """.utf8), now: Fixture.now)
    }

    private static func record(_ address: String, _ count: String, dkim: String = "fail") -> String
    {
        """
        <record><row><source_ip>\(address)</source_ip><count>\(count)</count><policy_evaluated><dkim>\(dkim)</dkim>\
        <spf>fail</spf></policy_evaluated></row></record>
        """
    }

    @Test func aggregateReport_malformed_isNil() {
        #expect(
            Self.report() != nil
                && Self.report(before: "\u{FEFF}<?xml version='1.0'?><!-- a -->") != nil)
        #expect(Self.report(before: "<!DOCTYPE feedback [<!ENTITY a 'b'>]>") == nil)
        #expect(
            Self.report(id: "") == nil && Self.report(id: "a\u{0}b") == nil
                && Self.report(id: String(repeating: "a", count: 257)) == nil)
        #expect(Self.report(begin: "tomorrow") == nil && Self.report(begin: "-5") == nil)
        #expect(Self.report(begin: "1763596800") == nil, "the end is before the beginning")
        #expect(
            Self.report(begin: "1763700000", end: "1763999999") == nil, "it is about the future")
        #expect(Self.report(begin: "1", end: "1763596799") == nil, "it is about decades")
        #expect(Self.report(records: "<record>") == nil && Self.report(records: "</record>") == nil)
        #expect(
            Self.report(
                records: String(repeating: "<a>", count: 30) + String(repeating: "</a>", count: 30))
                == nil)
        for text in [
            "", "<", "<feedback", "<feedback>", "</feedback>", "<feedback/><feedback/>",
            "<![CDATA[", "<!--", "<?", "&",
        ] {
            #expect(AggregateReport(xml: Array(text.utf8), now: Fixture.now) == nil, "\(text)")
        }
    }

    @Test func aggregateReport_wrongOrManyRecords_isSummedUp() throws {
        let wrong = [
            ("nowhere", "1"), ("192.0.2.1", "0"), ("192.0.2.1", "-1"), ("192.0.2.1", "1e3"),
            ("192.0.2.1", "99999999999"),
        ]
        let records = wrong.map { Self.record($0.0, $0.1) }.joined()
        #expect(try #require(Self.report(records: records)).failed == 0)
        let many = (0..<500).map {
            Self.record("10.0.\($0 / 250).\($0 % 250)", "2", dkim: $0 < 100 ? "pass" : "fail")
        }.joined()
        let report = try #require(Self.report(records: many))
        #expect(report.passed == 200 && report.failed == 800 && report.messages.count == 50)
    }
}
