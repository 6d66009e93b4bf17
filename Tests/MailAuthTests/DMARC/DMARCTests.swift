// DMARC: records, the tree walk, policy selection and alignment (RFC 9989), from Vectors/dmarc.

import TestSupport
import Testing

@testable import MailAuth

@Suite(.blocking) struct DMARCTests {
    private struct Vector: Decodable {
        let name: String
        let dns: VectorZone
        let from: String
        /// `domain=result` for MAIL FROM, or `helo:domain=result`.
        var spf: [String]?
        /// `domain=result`.
        var dkim: [String]?
        /// `result domain policy organizational-domain`, `-` for nothing.
        let expect: String
        /// `dkim`, `spf` or both, if the record requires strict alignment.
        var strict: [String]?
        /// The queries in order, for cases that test them.
        var questions: [String]?
    }

    private func spfFinding(_ text: String) throws -> SPFFinding {
        let isHelo = text.hasPrefix("helo:")
        let parts = text.dropFirst(isHelo ? 5 : 0).split(separator: "=")
        return SPFFinding(
            result: try #require(SPFResult(rawValue: String(parts[1]))),
            identity: isHelo ? .helo : .mailFrom,
            domain: String(parts[0]),
            reason: "")
    }

    private func dkimFinding(_ text: String) throws -> DKIMFinding {
        let parts = text.split(separator: "=")
        return DKIMFinding(
            result: try #require(DKIMResult(rawValue: String(parts[1]))), domain: String(parts[0]),
            selector: "s",
            algorithm: "rsa-sha256", coversWholeBody: true, reason: "")
    }

    @Test func dmarc_vectors_giveExpectedFinding() throws {
        let all = try vectors("dmarc", as: Vector.self)
        for vector in all {
            let resolver = RecordingResolver(vector.dns.resolver)
            let finding = DMARC.evaluate(
                fromDomain: vector.from, spf: try (vector.spf ?? []).map(spfFinding),
                dkim: try (vector.dkim ?? []).map(dkimFinding),
                resolver: resolver)
            let words = [
                finding.result.rawValue, finding.domain, finding.policy,
                finding.organizationalDomain ?? "",
            ].map { $0.isEmpty ? "-" : $0 }.joined(separator: " ")
            #expect(words == vector.expect, "\(vector.name)")
            let strict =
                (finding.isStrictDKIM ? ["dkim"] : []) + (finding.isStrictSPF ? ["spf"] : [])
            #expect(strict == vector.strict ?? [], "\(vector.name)")
            if let questions = vector.questions {
                #expect(resolver.questions == questions, "\(vector.name)")
            }
        }
        print("dmarc: \(all.count) vectors")
        #expect(all.count >= 30)
    }

    @Test func dmarcRecord_anyText_isParsedOrReturnsNil() throws {
        func record(_ text: String) -> DMARCRecord? { DMARCRecord(parsing: Array(text.utf8)) }
        for text in [
            "", "v=DMARC1x", "v=dmarc1;p=none", " v=DMARC1", "p=none;v=DMARC1", "v=DMARC2",
            "v=DMARC1 p=none", "x", "v",
            "=DMARC1",
        ] {
            #expect(record(text) == nil, "\(text)")
        }
        let full = try #require(
            record(
                "V = DMARC1 ; p=Reject;sp=QUARANTINE; np = none ;adkim=S; aspf=s;psd=n;t=y;fo=1:d;"
                    + "rua=mailto:a@x.example!10m, https://x.example/r ,bad;ruf=mailto:b@x.example;pct=5;;unknown=1;"
            ))
        #expect(
            full.policy == .reject && full.subdomainPolicy == .quarantine
                && full.nonexistentPolicy == DMARCRecord.Policy.none)
        #expect(
            full.strictDKIM && full.strictSPF && full.publicSuffix == .no && full.isTesting
                && full.hasUsablePolicy)
        #expect(
            full.aggregateReports == ["mailto:a@x.example!10m", "https://x.example/r"]
                && full.failureReports == ["mailto:b@x.example"])
        #expect(full.failureOptions == "1:d")
        let errors = try #require(
            record("v=DMARC1;p=reject;adkim=x;aspf=;psd=maybe;t=yes;fo=9;=;novalue"))
        #expect(
            !errors.strictDKIM && !errors.strictSPF && errors.publicSuffix == .unknown
                && !errors.isTesting
                && errors.failureOptions == "0")
        #expect(errors.policy == .reject && errors.hasUsablePolicy)
        // An invalid policy means p=none if there is an address for reports, and no DMARC
        // otherwise.
        for text in [
            "", ";p=", ";p=block", ";p=none;p=reject", ";p=reject;sp=x", ";p=reject;np=",
            ";p=re\u{1}ject",
        ] {
            let bare = try #require(record("v=DMARC1" + text))
            #expect(!bare.hasUsablePolicy && bare.policy == .none, "\(text)")
            let reporting = try #require(record("v=DMARC1" + text + ";rua=mailto:a@b.example"))
            #expect(
                reporting.hasUsablePolicy && reporting.policy == .none
                    && reporting.subdomainPolicy == nil, "\(text)")
        }
    }

    @Test func organizationalDomain_treeWalk_returnsDomainOrFailure() {
        let record = [DNSRecordType.txt: [DNSRecord.txt(Array("v=DMARC1; p=none".utf8))]]
        let zone = ZoneResolver([
            "_dmarc.example.com": .init(records: record),
            "_dmarc.slow.example": .init(failure: .timeout),
        ])
        #expect(
            DMARC.organizationalDomain(of: "A.b.Example.com.", resolver: zone)
                == .found("example.com"))
        #expect(DMARC.organizationalDomain(of: "example.net", resolver: zone) == .none)
        #expect(
            DMARC.organizationalDomain(of: "a.slow.example", resolver: zone)
                == .temporaryFailure("time-out"))
        #expect(DMARC.organizationalDomain(of: "a..example.com", resolver: zone) == .none)
    }

    @Test func dmarc_manySignatures_limitsQueries() throws {
        let record = [DNSRecordType.txt: [DNSRecord.txt(Array("v=DMARC1; p=none".utf8))]]
        let resolver = RecordingResolver(
            ZoneResolver(["_dmarc.example.com": .init(records: record)]))
        var dkim: [DKIMFinding] = []
        for number in 0..<500 { dkim.append(try dkimFinding("d\(number).other.example=pass")) }
        #expect(
            DMARC.evaluate(fromDomain: "example.com", spf: [], dkim: dkim, resolver: resolver)
                .result == .fail)
        #expect(resolver.questions.count == 2)
        // Each domain within the organization needs a walk, and the number of walks is limited.
        var inside: [DKIMFinding] = []
        for number in 0..<500 {
            inside.append(try dkimFinding("a.b.c.d.e.f.g.h.d\(number).example.com=temperror"))
        }
        _ = DMARC.evaluate(fromDomain: "example.com", spf: [], dkim: inside, resolver: resolver)
        #expect(
            resolver.questions.count <= 4 + DMARC.maximumAlignmentWalks
                * DMARCTreeWalk.maximumQueries)
    }

    @Test func dmarcRecord_randomText_doesNotTrap() {
        let pieces = [
            "v=DMARC1", ";", "p", "=", "reject", "sp", "np=none", "rua=mailto:", ",", "psd=y", " ",
            "\t", "\0", "\u{e9}", "t=y",
            ":",
        ]
        var generator = SystemRandomNumberGenerator()
        var parsed = 0
        for _ in 0..<20_000 {
            var text: [UInt8] = Bool.random(using: &generator) ? Array("v=DMARC1;".utf8) : []
            for _ in 0..<Int.random(in: 0..<15, using: &generator) {
                text +=
                    Bool.random(using: &generator)
                    ? Array(pieces.randomElement(using: &generator)!.utf8)
                    : [.random(in: 0...255, using: &generator)]
            }
            if DMARCRecord(parsing: text) != nil { parsed += 1 }
        }
        #expect(parsed > 1000)
    }

    @Test func envelopeAuthentication_noMailFromRecord_checksHelo() throws {
        let spf = [DNSRecordType.txt: [DNSRecord.txt(Array("v=spf1 ip4:192.0.2.1 -all".utf8))]]
        let record = [DNSRecordType.txt: [DNSRecord.txt(Array("v=DMARC1; p=reject".utf8))]]
        let zone = ZoneResolver([
            "mail.example.com": .init(records: spf), "_dmarc.example.com": .init(records: record),
        ])
        func evidence(
            _ mailFrom: String, address: String? = "192.0.2.1", from: String? = "example.com"
        ) -> AuthenticationEvidence {
            EnvelopeAuthentication.evaluate(
                client: .init(address: address, helo: "mail.example.com", mailFrom: mailFrom),
                fromDomain: from, dkim: [],
                resolver: zone)
        }
        let null = evidence("")
        #expect(
            null.spf.map(\.identity) == [.helo] && null.spf[0].result == .pass
                && null.dmarc?.result == .pass)
        let recordless = evidence("a@no.example")
        #expect(
            recordless.spf.map(\.result) == [.none, .pass] && recordless.dmarc?.result == .fail)
        #expect(evidence("a@mail.example.com").spf.map(\.identity) == [.mailFrom])
        #expect(evidence("a@mail.example.com", address: nil).spf.isEmpty)
        #expect(evidence("a@mail.example.com", from: nil).dmarc == nil)
    }
}
