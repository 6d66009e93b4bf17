// The doctor's checks of MTA-STS, reports, block lists and increases of mail.

import Doctor
import Foundation
import MailAuth
import Testing

extension DoctorTests {
    /// A domain that announces neither is not checked; announced policies must work.
    @Test func mtaSTSAndTLSReports_announced_areJudged() throws {
        let runner = try CommandRunner.initialised()
        let zone = try healthyZone(runner)
        func with(_ records: [String: [String]]) throws -> [String: String] {
            try outside(runner, zone.merging(records.mapValues { ["TXT": $0] }) { $1 })
        }
        let (sts, tls) = ("_mta-sts.relay.example", "_smtp._tls.relay.example")
        let reports = "v=TLSRPTv1; rua=mailto:dmarc@relay.example"
        #expect(try with([tls: [reports]]).isEmpty)
        #expect(try with([sts: ["v=STSv1; id=20261124a;"], tls: [reports]]).isEmpty)
        #expect(try with([sts: ["v=STSv1; id=1"]]) == ["tls reports relay.example": "warning"])
        #expect(
            try with([sts: ["v=STSv1"], tls: [reports]]) == ["mta-sts relay.example": "broken"])
        #expect(
            try with([sts: ["v=STSv1; id=1", "v=STSv1; id=2"], tls: [reports]]) == [
                "mta-sts relay.example": "broken"
            ])
        #expect(try with([sts: ["v=spf1 -all"]]).isEmpty)
        #expect(try with([tls: ["v=TLSRPTv1"]]) == ["tls reports relay.example": "broken"])
        #expect(
            try with([tls: ["v=TLSRPTv1; rua=mailto:nobody@relay.example"]]) == [
                "tls reports relay.example": "broken"
            ])
        #expect(try with([tls: ["v=TLSRPTv1; rua=https://reports.example/tls"]]).isEmpty)
        #expect(
            try outside(runner, zone.merging([sts: ["error": "SERVFAIL"]]) { $1 }) == [
                "mta-sts relay.example": "warning"
            ])
    }

    @Test func mtaSTS_policyWithoutMailExchanger_isBroken() throws {
        func judged(_ text: String?, exchange: String? = "mx.relay.example") throws -> [String] {
            let zone = MailZone([
                "relay.example": exchange.map { [.mx(preference: 10, exchange: $0)] } ?? [],
                "_mta-sts.relay.example": [.txt(Array("v=STSv1; id=1".utf8))],
                "_smtp._tls.relay.example": [
                    .txt(Array("v=TLSRPTv1; rua=mailto:a@relay.example".utf8))
                ],
            ])
            let view = RelayDomainChecks(
                domain: "relay.example",
                host: RelayHost(heloName: "mx.relay.example", addresses: []), keys: [],
                localParts: ["a"], relayDomains: ["relay.example"], now: 0, resolver: zone)
            #expect(view.announcesTransportPolicy)
            return view.transport(
                text.map { .success($0) } ?? .failure(CheckInputError("no route"))
            ).map(\.verdict.rawValue)
        }
        func policy(_ mode: String, _ exchange: String, age: String = "604800") -> String {
            "version: STSv1\r\nmode: \(mode)\r\nmx: \(exchange)\r\nmax_age: \(age)\r\n"
        }
        #expect(try judged(policy("enforce", "mx.relay.example")) == ["ok", "ok"])
        #expect(try judged(policy("testing", "*.relay.example")) == ["ok", "ok"])
        #expect(
            try judged(policy("enforce", "mx.relay.example"), exchange: nil) == ["warning", "ok"])
        #expect(try judged(policy("enforce", "*.example")) == ["broken", "ok"])
        #expect(try judged(policy("testing", "other.example")) == ["broken", "ok"])
        #expect(try judged(policy("none", "other.example")) == ["ok", "ok"])
        #expect(
            try judged(policy("enforce", "mx.relay.example", age: "99999999999")) == [
                "broken", "ok",
            ])
        #expect(try judged("<html>") == ["broken", "ok"])
        #expect(try judged(nil) == ["broken", "ok"])
    }

    @Test func dmarc_obsoleteTags_areAWarning() throws {
        let runner = try CommandRunner.initialised()
        var zone = try healthyZone(runner)
        zone["_dmarc.relay.example"] = [
            "TXT": ["v=DMARC1; p=reject; pct=50; ri=3600; rua=mailto:dmarc@relay.example"]
        ]
        #expect(try outside(runner, zone) == ["dmarc tags relay.example": "warning"])
    }

    @Test func blockList_hostListed_isBroken() throws {
        let addresses = [
            try #require(IPAddress("198.51.100.7")), try #require(IPAddress("2001:db8::1")),
        ]
        func verdicts(_ zone: [String: [String]]) -> [String] {
            let zone = ["2.0.0.127.bl.example": ["127.0.0.2"]].merging(zone) { $1 }
            return ReputationChecks.blocked(addresses, lists: ["bl.example"], resolver: Zone(zone))
                .map(\.verdict.rawValue)
        }
        #expect(verdicts([:]) == ["ok"])
        #expect(verdicts(["7.100.51.198.bl.example": ["127.0.0.2"]]) == ["broken"])
        let six = "1" + String(repeating: ".0", count: 23) + ".8.b.d.0.1.0.0.2.bl.example"
        #expect(verdicts([six: ["127.0.0.4"]]) == ["broken"])
        // The answer of an unused domain, and the answer with which a list refuses a resolver.
        #expect(verdicts(["7.100.51.198.bl.example": ["203.0.113.80"]]) == ["warning"])
        #expect(
            verdicts(["7.100.51.198.bl.example": ["203.0.113.80"], six: ["127.0.0.4"]]) == [
                "broken"
            ])
        #expect(verdicts(["2.0.0.127.bl.example": []]) == ["warning"], "misspelt, or no more")
        #expect(verdicts(["2.0.0.127.bl.example": ["127.255.255.254"]]) == ["warning"])
        let runner = try CommandRunner.initialised()
        var zone = try healthyZone(runner)
        for name in ["7.100.51.198.bl.example", "2.0.0.127.bl.example"] {
            zone[name] = ["A": ["127.0.0.2"]]
        }
        #expect(
            try outside(runner, zone, "--set", "block_lists=bl.example") == [
                "block list bl.example": "broken"
            ])
    }

    @Test func warmUp_steepRiseToProvider_isAWarning() {
        func verdicts(_ days: [[String: Int]]) -> [String] {
            ReputationChecks.warmUp(days).map(\.verdict.rawValue)
        }
        #expect(verdicts([]).isEmpty && verdicts([[:], ["gmail.com": 5]]).isEmpty)
        #expect(verdicts([["gmail.com": 900]]) == ["ok"])
        #expect(verdicts([["gmail.com": 1_000]]) == ["warning"])
        #expect(verdicts([["gmail.com": 2_000], ["gmail.com": 1_000]]) == ["ok"])
        #expect(
            verdicts([["gmail.com": 2_001, "others": 1], ["gmail.com": 900], ["gmail.com": 1_000]])
                == ["warning"])
        #expect(
            ReputationChecks.byProvider(["gmail.com": 3, "jane-doe.example": 2, "acme.example": 1])
                == ["gmail.com": 3, "others": 3])
    }

    private struct MailZone: DNSResolver {
        let zone: [String: [DNSRecord]]
        init(_ zone: [String: [DNSRecord]]) { self.zone = zone }
        func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
            let found = (zone[name] ?? []).filter { record in
                switch record {
                case .mx: type == .mx
                case .txt: type == .txt
                default: false
                }
            }
            return found.isEmpty ? .nxDomain : .records(found)
        }
    }
}
