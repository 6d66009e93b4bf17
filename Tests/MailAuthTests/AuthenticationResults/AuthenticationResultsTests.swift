// Authentication-Results: the grammar of RFC 8601, the resulting proof, and our own field.

import InternetMessage
import TestSupport
import Testing

@testable import MailAuth

@Suite(.blocking) struct AuthenticationResultsTests {
    private func parse(_ value: String) -> AuthenticationResults? {
        AuthenticationResults.parse(Array(value.utf8))
    }

    /// The examples of RFC 8601 appendix B, and forms of real filters.
    @Test func authenticationResults_wellFormed_isParsed() throws {
        let none = try #require(parse(" example.org 1; none"))
        #expect(none.authservID == "example.org" && none.version == 1 && none.results.isEmpty)

        let one = try #require(
            parse(" example.com;\r\n          spf=pass smtp.mailfrom=example.net"))
        #expect(
            one.results == [
                .init(
                    method: "spf", result: "pass",
                    properties: [.init(ptype: "smtp", property: "mailfrom", value: "example.net")])
            ])

        let several = try #require(
            parse(
                " example.com;\r\n\tauth=pass (cram-md5) smtp.auth=sender@example.net;\r\n\tspf=pass smtp.mailfrom=example.net"
            )
        )
        #expect(several.results.map(\.method) == ["auth", "spf"])
        #expect(several.results[0].value("smtp", "auth") == "sender@example.net")

        let commented = try #require(
            parse(
                " foo.example.net (foobar) 1 (baz);\r\n dkim (Because I like it) / 1 (One yay) = (wait for it) fail\r\n"
                    + "   policy (A dot can go here) . (like that) expired\r\n"
                    + "   (this surprised me) = (as I wasn't expecting it) 1362471462"
            ))
        #expect(
            commented.results == [
                .init(
                    method: "dkim", result: "fail",
                    properties: [.init(ptype: "policy", property: "expired", value: "1362471462")]
                )
            ])

        let reasoned = try #require(
            parse(
                "mx; dkim=fail reason=\"bad \\\"key\\\"\" header.d=newyork.example.com header.b=\"a/b+=\";"
                    + " dmarc=pass (p=none dis=none) header.from=Example.com"
            ))
        #expect(reasoned.results[0].reason == "bad \"key\"")
        #expect(reasoned.results[0].value("header", "b") == "a/b+=")
        #expect(reasoned.results[1].value("header", "from") == "Example.com")
        #expect(parse("\"a b\";\n\tdkim=pass header.i=@x.example")?.authservID == "a b")
        #expect(
            parse("mx; spf=pass smtp.mailfrom=a=b/c+d@x.example")?.results[0].value(
                "smtp", "mailfrom") == "a=b/c+d@x.example")
        #expect(
            parse("mx; spf=pass smtp.mailfrom=\"a@good\"@x.example")?.results[0].value(
                "smtp", "mailfrom") == "a@good@x.example")
    }

    @Test(arguments: [
        "", " ", "mx", "mx;", "mx; ", ";none", "mx none", "mx; none; spf=pass", "mx; spf",
        "mx; spf=", "mx; =pass",
        "mx; spf=pass;",
        "mx; spf=pass smtp.mailfrom", "mx; spf=pass smtp.mailfrom=", "mx; spf=pass smtp=a",
        "mx; spf=pass action=none",
        "mx; spf=pass smtp.mailfrom=a b", "mx; spf=pass (", "mx; spf=pass )", "mx; spf=pass (a\\",
        "mx; spf=pass smtp.mailfrom=\"a",
        "mx; spf=pass smtp.mailfrom=a;b", "mx x; none", "mx1 1 1; none", "mx/1; none",
        "mx; spf=pass\r\nx.y=z",
        "mx; spf=pass\rsmtp.helo=a",
        "mx; spf/x=pass", "mx; spf/1234567890=pass", "mx; spf-=pass",
        "mx; spf=pass smtp.mailfrom=a@",
        "mx; spf=pass smtp.mailfrom=a@b..c",
        "mx; spf=pass smtp.mailfrom=.a@b", "mx; spf=pass smtp.mailfrom=a@[192.0.2.1]",
        "mx; spf=pass smtp.helo=2001:db8::1",
        "mx; spf=pass header.d=a reason=late", "mx; spf=pass reason=a reason=b",
        "mx; spf=pass smtp.helo=\"a\"smtp.mailfrom=b",
        "mx; spf=pass smtp.helo=a\0", "mx; dkim=pass header.d=a,b", "mx;; spf=pass",
        "mx (a; spf=pass", "mx; spf pass",
    ])
    func authenticationResults_malformed_returnsNil(_ value: String) {
        #expect(parse(value) == nil)
    }

    @Test func evidence_untrustedAuthservID_isIgnored() {
        let header = HeaderSection([
            HeaderField(
                "Authentication-Results",
                "MX.Relay.example; spf=pass smtp.mailfrom=bounce@Mail.App.example smtp.helo=h.example"
            ),
            HeaderField("Authentication-Results", "evil.example; dkim=pass header.d=evil.example"),
            HeaderField(
                "authentication-results",
                "mx.relay.example; dkim=pass header.d=App.example header.s=s1 header.a=rsa-sha256 header.i=@x.app.example;"
                    + " dkim=fail header.d=b.example"
            ),
            HeaderField(
                "Authentication-Results",
                "mx.relay.example; dmarc=pass header.from=app.example policy.dmarc=Reject"),
            HeaderField(
                "Authentication-Results", "mx.relay.example 2; dkim=pass header.d=version.example"),
            HeaderField(
                "Authentication-Results", "mx.relay.example; dkim=pass header.d=cut.example;"),
            HeaderField(
                "Authentication-Results", "mx.relay.example; dkim/2=pass header.d=method.example"),
        ])
        let evidence = AuthenticationResults.evidence(
            from: header, trusting: ["other", "mx.relay.example"])
        #expect(
            evidence.spf.map { "\($0.result) \($0.identity) \($0.domain)" } == [
                "pass mailFrom mail.app.example"
            ])
        #expect(
            evidence.dkim.map {
                "\($0.result) \($0.domain) \($0.selector) \($0.algorithm) \($0.coversWholeBody)"
            }
                == ["pass app.example s1 rsa-sha256 true", "fail b.example   true"])
        #expect(
            evidence.dmarc
                == DMARCFinding(
                    result: .pass, domain: "app.example", policy: "reject",
                    organizationalDomain: nil))
        #expect(
            AuthenticationResults.evidence(from: header, trusting: []) == AuthenticationEvidence())
        let client = SMTPClientIdentity(address: nil, helo: "", mailFrom: "")
        let session = UpstreamResultsAuthenticator(trustedIDs: ["mx.relay.example"]).begin(
            client: client, header: header, now: 0)
        #expect(session.finish() == evidence)
    }

    @Test(arguments: [
        "dkim=pass", "dkim=pass header.d=a.example header.d=b.example",
        "dkim=pass header.d=a.example header.i=@b.example",
        "dkim=pass header.d=a.example header.i=@nota.example",
        "dkim=pass header.i=@a.example header.i=@b.example",
        "dkim=pass header.d=a.example header.d=a.example header.i=@a.example",
        "dkim=passed header.d=a.example", "spf=pass",
        "spf=pass smtp.mailfrom=a.example smtp.mailfrom=b.example", "spf=pass smtp.mailfrom=\"\"",
        "dmarc=ok header.from=a.example",
    ])
    func evidence_ambiguousResult_isIgnored(_ result: String) {
        let header = HeaderSection([HeaderField("Authentication-Results", "mx; \(result)")])
        #expect(
            AuthenticationResults.evidence(from: header, trusting: ["mx"])
                == AuthenticationEvidence())
    }

    @Test func evidence_onlyHeloOrHeaderI_isRead() {
        let header = HeaderSection([
            HeaderField(
                "Authentication-Results",
                "mx; spf=hardfail smtp.helo=h.example; dkim=pass header.i=u@a.example")
        ])
        let evidence = AuthenticationResults.evidence(from: header, trusting: ["mx"])
        #expect(evidence.spf.first?.identity == .helo && evidence.spf.first?.result == .fail)
        #expect(evidence.dkim.first?.domain == "a.example")
    }

    @Test func evidence_bodyLengthTag_isNotWholeBody() {
        let results = HeaderField(
            "Authentication-Results",
            "mx; dkim=pass header.d=a.example; dkim=pass header.d=b.example")
        let cut = HeaderField("DKIM-Signature", "v=1; d=\r\n A.example; h=from:l=; l = 10; b=x")
        let whole = HeaderField("DKIM-Signature", "v=1; d=b.example; b=l=")
        let evidence = AuthenticationResults.evidence(
            from: HeaderSection([results, cut, whole]), trusting: ["mx"])
        #expect(evidence.dkim.map(\.coversWholeBody) == [false, true])
    }

    @Test func evidence_dkimResult_isMatchedWithSignature() {
        func finding(_ result: String, _ signatures: String...) -> DKIMFinding? {
            let fields = [
                HeaderField("Authentication-Results", "mx; dkim=pass header.d=a.example\(result)")
            ]
            let header = HeaderSection(
                fields + signatures.map { HeaderField("DKIM-Signature", $0) })
            return AuthenticationResults.evidence(from: header, trusting: ["mx"]).dkim.first
        }
        #expect(
            finding(
                " header.s=two", "d=a.example; s=one; l=5; a=rsa-sha1",
                "d=a.example; s=two; a=rsa-sha256"
            )
            .map { $0.coversWholeBody && $0.result == .pass && $0.algorithm == "rsa-sha256" }
                == true)
        #expect(
            finding("", "d=a.example; s=one; l=5", "d=a.example; s=two")?.coversWholeBody == false)
        #expect(finding(" header.a=rsa-sha1")?.result == .policy)
        #expect(
            finding(" header.a=RSA-SHA256")?.result == .pass
                && finding(" header.a=ed25519-sha256")?.result == .pass)
        #expect(finding("", "a=rsa-sha1; d=a.example")?.result == .policy)
        #expect(finding("")?.result == .pass)
    }

    @Test func evidence_dmarcResultsDisagree_isFail() {
        let header = HeaderSection([
            HeaderField("Authentication-Results", "mx; dmarc=fail header.from=a.example"),
            HeaderField("Authentication-Results", "mx; dmarc=pass header.from=a.example"),
        ])
        #expect(
            AuthenticationResults.evidence(from: header, trusting: ["mx"]).dmarc?.result == .fail)
    }

    @Test func fieldsClaiming_ownAuthservID_returnsTheirIndices() {
        let header = HeaderSection([
            HeaderField("Subject", "mx.example; none"),
            HeaderField("Authentication-Results", "other.example; none"),
            HeaderField("Authentication-Results", "(c) MX.example; spf=pass garbage"),
            HeaderField("Authentication-Results", "\"mx.example\"/1; none"),
            HeaderField("Authentication-Results", "(unfinished mx.example"),
            HeaderField("Authentication-Results", "sub.mx.example; none"),
            HeaderField("AUTHENTICATION-RESULTS", "mx.example@x"),
        ])
        #expect(
            AuthenticationResults.fieldsClaiming(ids: ["mx.example"], in: header) == [2, 3, 4, 6])
    }

    @Test func field_ownEvidence_isWrittenAndParsedAgain() throws {
        let evidence = AuthenticationEvidence(
            spf: [
                SPFFinding(
                    result: .pass, identity: .mailFrom, domain: "app.example",
                    reason: "secret@inbox.example"),
                SPFFinding(result: .none, identity: .helo, domain: "h.example", reason: ""),
            ],
            dkim: [
                DKIMFinding(
                    result: .pass, domain: "app.example", selector: "s\r\nX: y",
                    algorithm: "rsa-sha256", coversWholeBody: true,
                    reason: "r")
            ],
            dmarc: DMARCFinding(
                result: .pass, domain: "app.example", policy: "reject",
                organizationalDomain: "app.example"))
        let field = AuthenticationResults.field(
            authservID: "mx.relay.example", evidence: evidence, fromDomain: "app.example")
        let text = String(decoding: field.bytes, as: UTF8.self)
        #expect(
            text == """
                Authentication-Results: mx.relay.example;\r
                \tspf=pass smtp.mailfrom=app.example;\r
                \tspf=none smtp.helo=h.example;\r
                \tdkim=pass header.d=app.example header.s="s??X: y" header.a=rsa-sha256;\r
                \tdmarc=pass header.from=app.example policy.dmarc=reject
                """)
        let read = try #require(AuthenticationResults.parse(field.rawValue))
        #expect(read.results.count == 4)
        let asked = AuthenticationResults.field(
            authservID: "mx", evidence: evidence, mailFrom: "a\"b@app.example")
        #expect(
            AuthenticationResults.parse(asked.rawValue)?.results[0].value("smtp", "mailfrom")
                == "a\"b@app.example")
        #expect(
            String(
                decoding: AuthenticationResults.field(authservID: "mx x", evidence: .init()).bytes,
                as: UTF8.self)
                == "Authentication-Results: \"mx x\"; none")
    }

    /// Random mixtures of the grammar's own pieces: never a trap, and each parsed field is written
    /// and read back unchanged.
    @Test func authenticationResults_randomField_isReadBack() {
        let pieces = [
            "mx", ";", " ", "(", ")", "\"", "\\", "=", ".", "@", "/", "1", "spf", "pass", "none",
            "smtp", "mailfrom", "reason",
            "\r\n ", "\0", "\u{e9}", "a.example",
        ]
        var generator = SystemRandomNumberGenerator()
        var parsed = 0
        for _ in 0..<20_000 {
            var value: [UInt8] = Array(
                Bool.random(using: &generator) ? "mx;spf=pass ".utf8 : "".utf8)
            for _ in 0..<Int.random(in: 0..<12, using: &generator) {
                if Int.random(in: 0..<20, using: &generator) == 0 {
                    value.append(.random(in: 0...255, using: &generator))
                } else {
                    value += Array(pieces.randomElement(using: &generator)!.utf8)
                }
            }
            let header = HeaderSection([
                HeaderField(name: "Authentication-Results", rawValue: value)
            ])
            _ = AuthenticationResults.fieldsClaiming(ids: ["mx"], in: header)
            _ = AuthenticationResults.evidence(from: header, trusting: ["mx"])
            guard let first = AuthenticationResults.parse(value) else { continue }
            parsed += 1
            guard value.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { continue }
            #expect(AuthenticationResults.parse(first.field().rawValue) == first)
        }
        #expect(parsed > 100)
        #expect(parse("mx;" + String(repeating: "(", count: 16_000)) == nil)
        #expect(parse("mx; none" + String(repeating: " ", count: 17_000)) == nil)
    }
}
