// The rules of RFC 6376, 8301 and 8463, one by one.

import InternetMessage
import MailCrypto
import Support
import Testing

@testable import MailAuth

struct DKIMVerificationTests {
    private let now: Int64 = 1_793_600_000

    private func verify(
        _ template: String, dns: DKIMTestDNS? = nil, length: Int? = nil, names: [String] = ["from"]
    ) throws
        -> DKIMFinding
    {
        let message = try DKIMForge.sign(DKIMForge.message, template, length: length, names: names)
        return try #require(message.verify(dns ?? DKIMForge.dns(), now: now).first)
    }

    @Test(arguments: [
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1;a=ed25519-sha256;d=app.example;s=s;h=from;bh={bh};b={b};",
        "v=1; b={b}; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}",
        "a=ed25519-sha256; b={b} ; d=APP.example; s=s; h=FROM; bh={bh}; v=1 ; ",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=\r\n\tfrom ; bh={bh};\r\n b=\r\n {b}\r\n\t",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; foo=bar; Z=; t2_x=a=b",
        "v=1; a=ed25519-sha256; c=simple; q=dns/txt; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; q=other/x : dns/txt; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=@app.example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=joe=40x=3B@mail.App.example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=1793600000; x=1793600000000; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=1793650400; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; x=1793600000; d=app.example; s=s; h=from; bh={bh}; b={b}",
    ])
    func signature_validForm_passes(template: String) throws {
        let finding = try verify(template)
        #expect(finding.result == .pass, "\(finding.reason)")
        #expect(
            finding.domain == "app.example" && finding.selector == "s" && finding.coversWholeBody)
        #expect(
            finding.identityDomain
                == (template.contains("mail.App") ? "mail.app.example" : "app.example"))
        #expect(finding.signaturePrefix.count == 8)
    }

    @Test(arguments: [
        // Each required tag missing in one of these.
        "a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}",
        // Invalid values.
        "v=2; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1.0; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha512; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; c=nofws; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; c=simple/; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; c=simple/simple/simple; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; q=http; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example.; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=to; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from::to; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from:; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh=*; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh=; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b=",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b=abc",
        // i= outside d=.
        "v=1; a=ed25519-sha256; i=@example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=@notapp.example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=app.example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; i=a=4@app.example; d=app.example; s=s; h=from; bh={bh}; b={b}",
        // Times and lengths.
        "v=1; a=ed25519-sha256; t=x; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=-1; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=1793600000; x=1793600000; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; x=1 2; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; l=; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; l=999; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; l=99999999999999999999999999999; d=app.example; s=s; h=from; bh={bh}; b={b}",
        // Faults of the list itself.
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; v=1",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; q=dns/txt; q=dns/txt",
        "v=1;; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "; v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; nonsense",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; 2=x",
        "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}; n=\u{1}",
        "V=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}", "", " ",
    ])
    func signature_malformed_isPermerror(template: String) throws {
        let finding = try verify(template)
        #expect(finding.result == .permerror, "\(finding)")
    }

    /// The log names the fault, and the claimed signer.
    @Test(arguments: [
        ("a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}", "the tag v= is missing"),
        (
            "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; q=dns; bh={bh}; b={b}",
            "q= names no known query method"
        ),
        (
            "v=1; a=ed25519-sha256; t=1793600000; x=1793500000; d=app.example; s=s; h=from; bh={bh}; b={b}",
            "x= is not after t="
        ),
    ])
    func malformed_readableDomain_namesDomainAndFault(template: String, fault: String) throws {
        let finding = try verify(template)
        #expect(finding.isMalformed && finding.result == .permerror && !finding.reason.isEmpty)
        #expect(finding.domain == "app.example" && finding.selector == "s")
        #expect(finding.reason == "the signature is malformed: \(fault)")
    }

    @Test(arguments: [
        "v=1; a=rsa-sha1; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; x=1793599999; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=1793650401; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=99999999999999999999999; d=app.example; s=s; h=from; bh={bh}; b={b}",
        "v=1; a=ed25519-sha256; t=999999999999; d=app.example; s=s; h=from; bh={bh}; b={b}",
    ])
    func signature_unacceptable_isPolicyWithoutDNSQuery(template: String) throws {
        let dns = try DKIMForge.dns()
        #expect(try verify(template, dns: dns).result == .policy)
        #expect(dns.questions.isEmpty)
    }

    @Test(arguments: [
        ("v=DKIM1; k=ed25519;", DKIMResult.pass), ("k=ed25519;", .pass),
        ("v=DKIM1; k=ed25519; h=sha1:sha256; s=email; t=s:x; n=a b; z=;", .pass),
        ("v=DKIM1; k=ed25519; s=other : *;", .pass), ("v=DKIM1; k=ed25519; n=ä;", .pass),
        ("v=DKIM1; k=ed25519; t=y;", .policy),
        ("v=DKIM1; k=ed25519; t=s:y;", .policy), ("v=DKIM2; k=ed25519;", .permerror),
        ("k=ed25519; v=DKIM1;", .permerror),
        ("v=dkim1; k=ed25519;", .permerror),
        ("v=DKIM1; k=dsa;", .permerror), ("v=DKIM1;", .permerror),
        ("v=DKIM1; k=ed25519; h=sha1;", .permerror),
        ("v=DKIM1; k=ed25519; h=;", .permerror),
        ("v=DKIM1; k=ed25519; s=other;", .permerror), ("v=DKIM1; k=ed25519; p=;", .permerror),
        ("v=DKIM1; k=ed25519; k=ed25519;", .permerror), ("nonsense;", .permerror),
    ])
    func keyRecord_eachTag_givesExpectedResult(tags: String, result: DKIMResult) throws {
        let finding = try verify(
            "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
            dns: DKIMForge.dns(tags))
        #expect(finding.result == result, "\(finding)")
        #expect(finding.isTesting == (result == .policy))
    }

    @Test func keyRecord_missingOrUnusable_isError() throws {
        let template = "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}"
        for (answer, result) in [
            (DNSAnswer.nxDomain, DKIMResult.permerror), (.noData, .permerror),
            (.temporaryFailure("SERVFAIL"), .temperror),
            (.records([]), .permerror),
            (.records([.txt(Array("v=DKIM1; k=ed25519; p=".utf8))]), .permerror),
            (.records([.txt(Array("v=DKIM1; k=ed25519; p= \t".utf8))]), .permerror),
            (.records([.txt([])]), .permerror),
            (.records([.txt(Array("v=DKIM1; k=ed25519; p=AAAA".utf8))]), .permerror),
            (.records([.address([1, 2, 3, 4])]), .permerror),
        ] {
            #expect(
                try verify(template, dns: DKIMTestDNS([DKIMForge.keyName: answer])).result
                    == result, "\(answer)")
        }
        #expect(
            try verify(
                template,
                dns: DKIMTestDNS([DKIMForge.keyName: .records([.txt(Array("v=DKIM1; p=".utf8))])])
            ).reason
                .contains("revoked"))
    }

    @Test func keyRecord_several_usesAnyOfFirstThree() throws {
        let good = DNSRecord.txt(Array("v=DKIM1; k=ed25519; p=\(try DKIMForge.publicKey())".utf8))
        let otherKey = try Ed25519PrivateKey.generate().rawPublicKey()
        let other = DNSRecord.txt(
            Array(
                "v=DKIM1; k=ed25519; p=\(String(decoding: Base64.encodeUnbroken(otherKey), as: UTF8.self))"
                    .utf8))
        let testing = DNSRecord.txt(
            Array("v=DKIM1; k=ed25519; t=y; p=\(try DKIMForge.publicKey())".utf8))
        let noise = DNSRecord.txt(Array("v=spf1 -all".utf8))
        let template = "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}"
        for (records, result) in [
            ([noise, other, good], DKIMResult.pass), ([good, other], .pass),
            ([testing, good], .pass),
            ([other, testing], .policy), ([other, noise], .fail),
            ([noise, noise, noise, noise, good], .pass), ([other, other, other, good], .fail),
        ] {
            #expect(
                try verify(template, dns: DKIMTestDNS([DKIMForge.keyName: .records(records)]))
                    .result == result)
        }
    }

    @Test func keyRecord_sameDomainFlag_refusesSubdomain() throws {
        let template =
            "v=1; a=ed25519-sha256; i=@mail.app.example; d=app.example; s=s; h=from; bh={bh}; b={b}"
        #expect(
            try verify(template, dns: DKIMForge.dns("v=DKIM1; k=ed25519; t=s;")).result
                == .permerror)
        #expect(try verify(template).result == .pass)
    }

    @Test func keyRecord_otherTypeThanSignature_isPermerror() throws {
        let rsaTemplate = "v=1; a=rsa-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}"
        #expect(
            try verify(rsaTemplate, dns: DKIMForge.dns("v=DKIM1;", algorithm: "rsa")).result
                == .pass)
        #expect(try verify(rsaTemplate, dns: DKIMForge.dns()).result == .permerror)
        let edTemplate = "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}"
        #expect(
            try verify(edTemplate, dns: DKIMForge.dns("v=DKIM1; k=rsa;", algorithm: "rsa")).result
                == .permerror)
        #expect(
            try verify(edTemplate, dns: DKIMForge.dns("v=DKIM1; k=ed25519;", algorithm: "rsa"))
                .result == .permerror)
    }

    @Test func keyRecord_rsaLengthOutsideLimits_isPolicy() throws {
        let message = try DKIMForge.sign(
            DKIMForge.message, "v=1; a=rsa-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}")
        var limits = DKIMLimits()
        for (range, result) in [
            (1024...4096, DKIMResult.pass), (1025...4096, .policy), (512...1023, .policy),
        ] {
            limits.rsaBits = range
            #expect(
                message.verify(
                    try DKIMForge.dns("v=DKIM1;", algorithm: "rsa"), now: now, limits: limits
                ).map(\.result) == [
                    result
                ])
        }
        #expect(DKIMLimits().rsaBits == 1024...4096)
    }

    @Test func signature_bodyLengthTag_coversOnlyThatPart() throws {
        let template = "v=1; a=ed25519-sha256; l={l}; d=app.example; s=s; h=from; bh={bh}; b={b}"
        for (length, whole) in [(0, false), (5, false), (19, false), (20, true)] {
            let finding = try verify(template.replacing("{l}", with: "\(length)"), length: length)
            #expect(
                finding.result == .pass && finding.coversWholeBody == whole, "\(length): \(finding)"
            )
        }
        // Text appended after the signed part does not break the signature, and is not covered.
        var message = try DKIMForge.sign(
            DKIMForge.message, template.replacing("{l}", with: "20"), length: 20)
        message.body += Array("appended\r\n".utf8)
        let finding = try #require(message.verify(try DKIMForge.dns(), now: now).first)
        #expect(finding.result == .pass && !finding.coversWholeBody)
        message.body[3] ^= 1
        #expect(message.verify(try DKIMForge.dns(), now: now).map(\.result) == [.fail])
    }

    @Test func signature_wrongBodyHash_failsWithoutDNSQuery() throws {
        var message = try DKIMForge.sign()
        message.body[0] ^= 1
        let dns = try DKIMForge.dns()
        let finding = try #require(message.verify(dns, now: now).first)
        #expect(finding.result == .fail && finding.reason.contains("body") && dns.questions.isEmpty)
    }

    @Test func signature_manyOnOneMessage_keepsLimits() throws {
        var message = DKIMForge.message
        let template = "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}"
        let signature = try #require(try DKIMForge.sign(message, template).header.fields.first)
        message.header.fields.insert(contentsOf: Array(repeating: signature, count: 25), at: 0)
        let dns = try DKIMForge.dns()
        let findings = message.verify(dns, now: now)
        #expect(
            findings.map(\.result) == Array(repeating: .pass, count: 10)
                + Array(repeating: .policy, count: 15))
        #expect(dns.questions == [DKIMForge.keyName], "asked once for all")
        var limits = DKIMLimits()
        limits.lookups = 0
        let limited = message.verify(dns, now: now, limits: limits)
        #expect(
            limited.count == 25
                && limited.allSatisfy { $0.result == .permerror || $0.result == .policy })
        // Malformed signatures do not displace a valid one.
        var other = DKIMForge.message
        other.header.fields.insert(
            contentsOf: Array(repeating: HeaderField("DKIM-Signature", "v=1"), count: 50) + [
                signature
            ], at: 0)
        #expect(other.verify(dns, now: now).last?.result == .pass)
    }

    @Test func signature_none_givesNoFinding() {
        #expect(DKIMForge.message.verify(DKIMTestDNS([:])).isEmpty)
    }

    /// Repeated names in h= count from the bottom up. One more name than there are fields
    /// signs that the message has no further field of this name.
    @Test func signature_repeatedNames_countFromBottom() throws {
        var message = DKIMForge.message
        message.header.fields.insert(HeaderField("X", "top"), at: 0)
        message.header.fields.append(HeaderField("x", "bottom"))
        let dns = try DKIMForge.dns()
        func results(
            _ names: [String], _ change: (inout HeaderSection) -> Void
        ) throws -> [DKIMResult] {
            let template =
                "v=1; a=ed25519-sha256; d=app.example; s=s; h=\(names.joined(separator: ":")); bh={bh}; b={b}"
            var signed = try DKIMForge.sign(message, template, names: names)
            change(&signed.header)
            return signed.verify(dns, now: now).map(\.result)
        }
        let changeTop: (inout HeaderSection) -> Void = {
            $0.fields[1] = HeaderField("X", "changed")
        }
        let addTop: (inout HeaderSection) -> Void = {
            $0.fields.insert(HeaderField("X", "new"), at: 0)
        }
        #expect(try results(["from", "x"], changeTop) == [.pass])
        #expect(try results(["from", "x", "x"], changeTop) == [.fail])
        #expect(try results(["from", "x", "x"], addTop) == [.pass])
        #expect(try results(["from", "x", "x", "x"], addTop) == [.fail])
        #expect(try results(["from", "x", "x", "x"], { _ in }) == [.pass])
        #expect(try results(["from", "x"], { $0.fields.removeLast() }) == [.fail])
    }

    @Test func signature_secondFromField_isPolicy() throws {
        for bottom in [false, true] {
            var message = try DKIMForge.sign()
            message.header.fields.insert(
                HeaderField("From", "evil@example.net"),
                at: bottom ? message.header.fields.count : 0)
            #expect(message.verify(try DKIMForge.dns(), now: now).map(\.result) == [.policy])
        }
    }

    /// A signature may cover other signatures, never itself.
    @Test func signature_overOtherSignature_passes() throws {
        let inner = try DKIMForge.sign()
        let template =
            "v=1; a=ed25519-sha256; d=app.example; s=s; h=from:dkim-signature; bh={bh}; b={b}"
        var outer = try DKIMForge.sign(inner, template, names: ["from", "dkim-signature"])
        let dns = try DKIMForge.dns()
        #expect(outer.verify(dns, now: now).map(\.result) == [.pass, .pass])
        // A signature that covers another one may be below it.
        outer.header.fields.swapAt(0, 1)
        #expect(outer.verify(dns, now: now).map(\.result) == [.pass, .pass])
        outer.header.fields.remove(at: 0)
        #expect(outer.verify(dns, now: now).map(\.result) == [.fail])
    }

    /// Several canonicalizations and lengths at the same time, each with its own hash.
    @Test func signature_severalCanonicalizations_passAtOnce() throws {
        var message = DKIMTestMessage(
            header: DKIMForge.message.header, body: Array("a  b \r\n\tc\r\n\r\n \r\n\r\n".utf8))
        let plain = message
        let dns = try DKIMForge.dns()
        for (header, body, length): (DKIMCanonicalization, DKIMCanonicalization, Int?) in [
            (.simple, .simple, nil), (.relaxed, .simple, 4), (.simple, .relaxed, nil),
            (.relaxed, .relaxed, 3),
            (.relaxed, .relaxed, 0),
        ] {
            let c = "\(header)/\(body)\(length.map { "; l=\($0)" } ?? "")"
            let signed = try DKIMForge.sign(
                plain, "v=1; a=ed25519-sha256; c=\(c); d=app.example; s=s; h=from; bh={bh}; b={b}",
                header: header, body: body,
                length: length)
            message.header.fields.insert(signed.header.fields[0], at: 0)
        }
        for chunk in [1, 2, 3, 100] {
            let findings = message.verify(dns, now: now, chunk: chunk)
            #expect(findings.map(\.result) == Array(repeating: .pass, count: 5))
            #expect(findings.map(\.coversWholeBody) == [false, false, true, false, true])
        }
    }

    /// Reasons go to the log, so they must not contain free text of a signature.
    @Test func finding_freeTextInSignature_isNotQuoted() throws {
        for tag in [
            "i=joe.inbox@gmail.example", "z=From:joe.inbox@gmail.example",
            "joe.inbox@gmail.example", "q=joe.inbox@gmail.example",
        ] {
            let finding = try verify(
                "v=1; a=ed25519-sha256; \(tag); d=app.example; s=s; h=from; bh={bh}; b={b}")
            #expect(!"\(finding)".contains("joe.inbox"))
        }
    }
}
