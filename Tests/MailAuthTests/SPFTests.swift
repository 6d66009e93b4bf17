// SPF in addition to the public suites: reasons, nesting, limits, macros, addresses, and hostile
// records.

import Support
import TestSupport
import Testing

@testable import MailAuth

private func txt(_ records: String...) -> ZoneResolver.Node {
    .init(records: [.txt: records.map { .txt(Array($0.utf8)) }])
}

private func addresses(_ list: String...) -> ZoneResolver.Node {
    let octets = list.compactMap { IPAddress($0)?.octets }
    return .init(records: [
        .a: octets.filter { $0.count == 4 }.map { .address($0) },
        .aaaa: octets.filter { $0.count == 16 }.map { .address($0) },
    ])
}

@Suite(.blocking) struct SPFTests {
    private func check(
        _ nodes: [String: ZoneResolver.Node], ip: String? = "192.0.2.1",
        mailFrom: String = "user@a.example",
        helo: String = "mx.a.example"
    ) -> SPFFinding {
        SPF.check(
            client: .init(address: ip, helo: helo, mailFrom: mailFrom),
            resolver: ZoneResolver(nodes))
    }

    private func result(
        _ record: String, ip: String = "192.0.2.1", _ nodes: [String: ZoneResolver.Node] = [:]
    ) -> SPFResult {
        check(nodes.merging(["a.example": txt(record)]) { $1 }, ip: ip).result
    }

    /// RFC 7208 section 5.2, the table of results of the included record.
    @Test func spf_includeOrRedirect_isEvaluatedAsInRFC7208() {
        for (inner, expected) in [
            ("v=spf1 +all", SPFResult.pass), ("v=spf1 -all", .neutral), ("v=spf1 ~all", .neutral),
            ("v=spf1 ?all", .neutral),
            ("v=spf1", .neutral), ("v=spf1 nonsense", .permerror), ("no record", .permerror),
        ] {
            #expect(
                result("v=spf1 include:b.example", ["b.example": txt(inner)]) == expected,
                "\(inner)")
            #expect(
                result("v=spf1 -include:b.example ?all", ["b.example": txt(inner)])
                    == (expected == .pass ? .fail : expected))
        }
        #expect(
            result("v=spf1 include:b.example", ["b.example": .init(failure: .timeout)])
                == .temperror)
        #expect(result("v=spf1 include:absent.example") == .permerror)
        #expect(result("v=spf1 redirect=absent.example") == .permerror)
        #expect(result("v=spf1 redirect=%{i}") == .permerror)
        #expect(result("v=spf1 redirect=b.example", ["b.example": txt("v=spf1 ~all")]) == .softfail)
        #expect(result("v=spf1 ?all redirect=absent.example") == .neutral)
        #expect(result("v=spf1 redirect=absent.example ip4:192.0.2.1") == .pass)
    }

    @Test func spf_mailFromOrHelo_givesIdentityAndDomain() {
        let zone = [
            "a.example": txt("v=spf1 -all"), "mx.a.example": txt("v=spf1 ip4:192.0.2.1 -all"),
        ]
        #expect(check(zone).domain == "a.example" && check(zone).identity == .mailFrom)
        let null = check(zone, mailFrom: "")
        #expect(null.result == .pass && null.identity == .helo && null.domain == "mx.a.example")
        #expect(check(zone, mailFrom: "x@A.Example.").domain == "a.example")
        #expect(check(zone, mailFrom: "\"a@b\"@a.example").result == .fail)
        for mailFrom in [
            "user", "user@", "user@localhost", "user@[192.0.2.1]", "user@a..example",
            "user@a.exa mple", "user@caf\u{e9}.example",
        ] {
            let finding = check(zone, mailFrom: mailFrom)
            #expect(finding.result == .none && finding.domain.isEmpty, "\(mailFrom)")
            #expect(!finding.reason.contains("user"))
        }
        #expect(check(zone, ip: nil).result == .none && check(zone, ip: "unknown").result == .none)
        #expect(check(zone, ip: "::ffff:192.0.2.1", mailFrom: "").result == .pass)
    }

    @Test func spf_reason_namesTermWithoutLocalPart() {
        #expect(
            check([
                "a.example": txt("v=spf1 a:b.example -all"), "b.example": addresses("192.0.2.1"),
            ]).reason
                == "a:b.example matched, in the record of a.example")
        #expect(
            check(["a.example": txt("v=spf1 ip4:1.2.3.4/33 -all")]).reason
                == "ip4:1.2.3.4/33 is a syntax error, in the record of a.example")
        #expect(
            check(["a.example": txt("v=spf1 mx -all"), "b.example": .init()]).reason
                == "-all matched, in the record of a.example"
        )
        #expect(
            check([
                "a.example": txt("v=spf1 a:b.example -all"), "b.example": .init(failure: .servFail),
            ]).reason
                == "a:b.example A look-up: SERVFAIL, in the record of a.example")
        #expect(
            check(["a.example": txt("v=spf1 -all", "v=SPF1")]).reason
                == "2 SPF records at a.example")
        let hostile = check([
            "a.example": txt(
                "v=spf1 bad\u{1b}[31m\r\nX: y\u{e9}" + String(repeating: "z", count: 500))
        ]).reason
        #expect(hostile.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && hostile.utf8.count < 200)
        // The expansion of the local part by a macro is never shown.
        let local = check(
            ["a.example": txt("v=spf1 exists:%{l}.b.example -all")], mailFrom: "secret@a.example")
        #expect(local.result == .fail && !local.reason.contains("secret"))
    }

    @Test(arguments: [
        "v=spf1 a:", "v=spf1 a/", "v=spf1 a//", "v=spf1 a/33", "v=spf1 a//129", "v=spf1 a/08",
        "v=spf1 a/24/64", "v=spf1 a/-1",
        "v=spf1 a/+1",
        "v=spf1 a:b", "v=spf1 a:b.1", "v=spf1 a:b.c-", "v=spf1 a:b.-c", "v=spf1 a:.",
        "v=spf1 mx:b.example/", "v=spf1 ip4",
        "v=spf1 ip4:",
        "v=spf1 ip4:1.2.3", "v=spf1 ip4:1.2.3.4/", "v=spf1 ip4:1.2.3.4//8", "v=spf1 ip4:01.2.3.4",
        "v=spf1 ip4:1.2.3.256",
        "v=spf1 ip4:::1",
        "v=spf1 ip6:1.2.3.4", "v=spf1 ip6:::1/129", "v=spf1 ip6:1::2::3", "v=spf1 ip6:12345::",
        "v=spf1 ip6:1:2:3:4:5:6:7:8:9",
        "v=spf1 ip6:::1%eth0",
        "v=spf1 all:", "v=spf1 all/8", "v=spf1 allx", "v=spf1 ++all", "v=spf1 include",
        "v=spf1 include:",
        "v=spf1 include:b.example/8",
        "v=spf1 exists", "v=spf1 exists:%{d", "v=spf1 exists:%{d0}.b.example",
        "v=spf1 exists:%{dx}.b.example",
        "v=spf1 exists:%{}.b.example",
        "v=spf1 exists:%{d.r}.b.example", "v=spf1 exists:%{c}.b.example",
        "v=spf1 exists:%.b.example", "v=spf1 exists:b.%{d}x",
        "v=spf1 ptr:",
        "v=spf1 ptr/8", "v=spf1 redirect=", "v=spf1 redirect=b", "v=spf1 exp=", "v=spf1 x=%",
        "v=spf1 x=%{r}", "v=spf1 1x=y",
        "v=spf1 =", "v=spf1 :",
        "v=spf1 a\tmx", "v=spf1 a\u{7f}", "v=spf1 redirect=b.example redirect=c.example",
        "v=spf1 exp=b.example EXP=c.example",
        "v=spf1 -redirect=b.example",
    ])
    func spf_syntaxError_isPermerror(_ record: String) {
        // An error at any place counts, even after a term that would have matched.
        #expect(result(record) == .permerror)
        #expect(result("v=spf1 +all " + record.dropFirst(7)) == .permerror)
    }

    @Test(arguments: [
        "V=SPF1 +All", "v=spf1 A:B.example", "v=spf1 ip4:192.0.2.0/24", "v=spf1 ip4:0.0.0.0/0",
        "v=spf1 a:b.example/32//128",
        "v=spf1 a:b.example//0",
        "v=spf1 mx:b.example/31", "v=spf1 x=%{l}%%%_%- ip4:192.0.2.1", "v=spf1   ip4:192.0.2.1   ",
        "v=spf1 a.b-c_d= ip4:192.0.2.1", "v=spf1 a= ip4:192.0.2.1",
        "v=spf1 a:b.example. -all", "v=spf1 a:%{d1R}.%{d2} a:b.%{d1} -all",
        "v=spf1 exists:%{ir}.%{v}._s.%{D2}",
        "v=spf1 ptr:a.example", "v=spf1 ptr",
        "v=spf1 a:foo:x/y.a.example a:b.example -all",
    ])
    func spf_wellFormedRecord_passes(_ record: String) {
        var mx = addresses("192.0.2.1")
        mx.records[.mx] = [
            .mx(preference: 0, exchange: ""), .mx(preference: 9, exchange: "b.example"),
        ]
        let zone: [String: ZoneResolver.Node] = [
            "b.example": mx, "b.example.a.example": addresses("192.0.2.1"),
            "1.2.0.192.in-addr._s.a.example": addresses("127.0.0.2"),
            "1.2.0.192.in-addr.arpa": .init(records: [.ptr: [.ptr("mail.a.example")]]),
            "mail.a.example": addresses("192.0.2.1"),
        ]
        #expect(result(record, zone) == .pass)
    }

    @Test func spf_recordLookup_doesNotEvaluate() {
        let resolver = RecordingResolver(
            ZoneResolver([
                "a.example": txt("other", "v=spf1 include:b.example -all"),
                "two.example": txt("v=spf1", "V=SPF1 -all"),
                "bad.example": txt("v=spf1 ip4:x -all"), "slow.example": .init(failure: .timeout),
                "other.example": txt("v=spf10 -all"),
            ]))
        #expect(
            SPF.record(at: "A.example", resolver: resolver)
                == .record("v=spf1 include:b.example -all"))
        #expect(SPF.record(at: "two.example", resolver: resolver) == .several(2))
        #expect(SPF.record(at: "bad.example", resolver: resolver) == .syntaxError("ip4:x"))
        #expect(SPF.record(at: "slow.example", resolver: resolver) == .temporaryFailure("time-out"))
        #expect(
            SPF.record(at: "other.example", resolver: resolver) == .none
                && SPF.record(at: "no.example", resolver: resolver) == .none)
        #expect(SPF.record(at: "com", resolver: resolver) == .none)
        #expect(resolver.questions.count == 6)
    }

    @Test func spf_lookupLimitExceeded_isPermerror() {
        let terms = { (count: Int) in (0..<count).map { "a:h\($0).example" }.joined(separator: " ")
        }
        var zone: [String: ZoneResolver.Node] = [:]
        for number in 0..<20 { zone["h\(number).example"] = addresses("198.51.100.1") }
        #expect(result("v=spf1 \(terms(10)) +all", zone) == .pass)
        #expect(result("v=spf1 \(terms(11)) +all", zone) == .permerror)
        #expect(result("v=spf1 ip4:192.0.2.1 \(terms(15))", zone) == .pass)
        zone["b.example"] = txt("v=spf1 \(terms(5)) -all")
        #expect(
            result(
                "v=spf1 include:b.example \(terms(4)) redirect=c.example",
                zone.merging(["c.example": txt("v=spf1 +all")]) { $1 })
                == .permerror)
        #expect(
            result(
                "v=spf1 include:b.example \(terms(3)) redirect=c.example",
                zone.merging(["c.example": txt("v=spf1 +all")]) { $1 })
                == .pass)
        // Two terms may find nothing. Each counts once, for any number of look-ups.
        #expect(result("v=spf1 a:x.example exists:y.example +all") == .pass)
        #expect(result("v=spf1 a:x.example exists:y.example mx:z.example +all") == .permerror)
        let exchanges = ZoneResolver.Node(records: [
            .mx: (0..<10).map { .mx(preference: $0, exchange: "gone\($0).example") }
        ])
        #expect(result("v=spf1 mx:x.example +all", ["x.example": exchanges]) == .pass)
        let eleven = ZoneResolver.Node(records: [
            .mx: (0..<11).map { .mx(preference: $0, exchange: "b.example") }
        ])
        #expect(
            result(
                "v=spf1 mx:x.example +all",
                ["x.example": eleven, "b.example": addresses("192.0.2.1")]) == .permerror)
        let loop = RecordingResolver(ZoneResolver(["a.example": txt("v=spf1 include:a.example")]))
        #expect(
            SPF.check(
                client: .init(address: "192.0.2.1", helo: "", mailFrom: "u@a.example"),
                resolver: loop
            ).result == .permerror
        )
        #expect(loop.questions.count == 11)
    }

    @Test func spf_ptrMechanism_requiresNameThatLeadsBack() {
        var names = (0..<20).map { DNSRecord.ptr("h\($0).other.example") }
        names[3] = .ptr("mail.A.example.")
        var zone: [String: ZoneResolver.Node] = [
            "mail.a.example": addresses("192.0.2.1"), "a.example": txt("v=spf1 ptr -all"),
        ]
        zone["1.2.0.192.in-addr.arpa"] = .init(records: [.ptr: names])
        #expect(check(zone).result == .pass)
        let resolver = RecordingResolver(ZoneResolver(zone))
        _ = SPF.check(
            client: .init(address: "192.0.2.1", helo: "", mailFrom: "u@a.example"),
            resolver: resolver)
        #expect(
            resolver.questions == [
                "a.example TXT", "1.2.0.192.in-addr.arpa PTR", "mail.a.example A",
            ])
        // A name that does not resolve to the client, and one beyond the tenth, prove nothing.
        zone["mail.a.example"] = addresses("192.0.2.2")
        #expect(check(zone).result == .fail)
        zone["mail.a.example"] = .init(failure: .timeout)
        #expect(check(zone).result == .fail)
        zone["1.2.0.192.in-addr.arpa"] = .init(failure: .timeout)
        #expect(check(zone).result == .fail)
        zone["mail.a.example"] = addresses("192.0.2.1")
        zone["1.2.0.192.in-addr.arpa"] = .init(records: [
            .ptr: (0..<10).map { .ptr("h\($0).other.example") } + [.ptr("mail.a.example")]
        ])
        #expect(check(zone).result == .fail)
    }

    @Test func spf_explanation_isFetchedOnlyOnRequest() {
        let zone = [
            "a.example": txt("v=spf1 -all exp=why.a.example"),
            "why.a.example": txt("%{c} %{r} %{t} %{l} %{S} %%%_%-"),
        ]
        let client = SMTPClientIdentity(
            address: "2001:DB8::1", helo: "h.example", mailFrom: "a/b@a.example")
        let resolver = RecordingResolver(ZoneResolver(zone))
        #expect(
            SPF.check(client: client, identity: .mailFrom, resolver: resolver).explanation == nil)
        #expect(resolver.questions == ["a.example TXT"])
        let outcome = SPF.check(
            client: client, identity: .mailFrom, resolver: resolver,
            explaining: .init(hostName: "mx.example", time: 42))
        #expect(outcome.explanation == "2001:db8::1 mx.example 42 a/b a%2Fb%40a.example % %20")
        let bomb = [
            "a.example": txt("v=spf1 -all exp=why.a.example"),
            "why.a.example": txt(String(repeating: "%{s}", count: 10_000)),
        ]
        let bombed = SPF.check(
            client: client, identity: .mailFrom, resolver: ZoneResolver(bomb),
            explaining: .init(hostName: "mx", time: 0))
        #expect(bombed.finding.result == .fail && bombed.explanation == nil)
    }

    @Test func spf_longMacroExpansion_isBounded() {
        let macro = String(repeating: "%{s100r.-+,/_=}", count: 4_000)
        let long = String(repeating: "l.", count: 2_000) + "x"
        let zone = [
            "a.example": txt("v=spf1 exists:\(macro).b.example include:\(macro).b.example -all")
        ]
        #expect(check(zone, mailFrom: long + "@a.example").result == .permerror)
        let string = SPFMacroString(Array(macro.utf8)[...], in: .term)
        var values = 0
        let expanded = string?.expand(limit: 506) { _ in
            values += 1
            return Array(repeating: 97, count: 300)
        }
        #expect(values == 2 && expanded?.count == 600)
        // A truncated name keeps complete labels from the right.
        let cut = RecordingResolver(
            ZoneResolver(["a.example": txt("v=spf1 exists:%{l}.%{l}.b.example -all")]))
        let local = (0..<60).map { "l\($0)" }.joined(separator: ".")
        _ = SPF.check(
            client: .init(address: "192.0.2.1", helo: "", mailFrom: local + "@a.example"),
            resolver: cut)
        let labels = "\(local).\(local).b.example".split(separator: ".")
        let kept = labels.indices.map { labels[$0...].joined(separator: ".") }.first {
            $0.utf8.count <= 253
        }
        #expect(cut.questions.dropFirst() == ["\(kept ?? "") A"])
    }

    @Test func spf_localPartNotASCII_matchesNothing() {
        let resolver = RecordingResolver(
            ZoneResolver(["a.example": txt("v=spf1 exists:%{l}.b.example -all")]))
        let client = SMTPClientIdentity(
            address: "192.0.2.1", helo: "", mailFrom: "j\u{f6}rg@a.example")
        #expect(SPF.check(client: client, resolver: resolver).result == .fail)
        #expect(resolver.questions == ["a.example TXT"])
    }

    @Test func spf_randomRecord_doesNotTrap() {
        let pieces = [
            "a", "mx", "ptr", "include:", "exists:", "redirect=", "exp=", "ip4:", "ip6:",
            "192.0.2.1", "2001:db8::", "/24",
            "//64", "%{", "}", "%", "l", "r", "2", ".", "-", "a.example", " ", "+all", "~all", "=",
            "\u{e9}", "\0",
        ]
        var generator = SystemRandomNumberGenerator()
        var seen: Set<SPFResult> = []
        for _ in 0..<20_000 {
            var record = Array("v=spf1 ".utf8)
            for _ in 0..<Int.random(in: 0..<14, using: &generator) {
                record +=
                    Int.random(in: 0..<15, using: &generator) == 0
                    ? [.random(in: 0...255, using: &generator)]
                    : Array(pieces.randomElement(using: &generator)!.utf8)
            }
            let zone = [
                "a.example": ZoneResolver.Node(records: [
                    .txt: [.txt(record)], .a: [.address([192, 0, 2, 1])],
                ])
            ]
            seen.insert(
                check(zone, ip: Bool.random(using: &generator) ? "192.0.2.1" : "2001:db8::1").result
            )
        }
        #expect(seen.isSuperset(of: [.permerror, .neutral, .pass, .softfail]))
    }
}

@Suite(.blocking) struct IPAddressTests {
    @Test func ipAddress_anyText_isParsedOrReturnsNil() {
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("::", "::"), ("::1", "::1"),
            ("1::", "1::"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::192.0.2.1", "::c000:201"), ("1:2:3:4:5:6:192.0.2.1", "1:2:3:4:5:6:c000:201"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("fe80::0001", "fe80::1"),
        ] {
            #expect(IPAddress(text)?.description == shown, "\(text)")
        }
        for text in [
            "", ":", ":::", "1", "1.2.3", "1.2.3.4.5", "1.2.3.04", "1..2.3", "1.2.3.4 ", "::1::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.4:5", "12345::",
            "::g", "[::1]", "::1%1", "1:",
            ":1", "1:2:3:4:5:6:7:8:",
        ] {
            #expect(IPAddress(text) == nil, "\(text)")
        }
    }

    @Test func ipAddress_prefixAndReverseName_areComputed() throws {
        let address = try #require(IPAddress("192.0.2.130"))
        #expect(
            address.matches([192, 0, 2, 128], prefix: 25)
                && !address.matches([192, 0, 2, 127], prefix: 25))
        #expect(
            address.matches([0, 0, 0, 0], prefix: 0)
                && address.matches([192, 0, 2, 130], prefix: 32)
                && !address.matches([192, 0, 2, 131], prefix: 32))
        #expect(!address.matches(Array(repeating: 0, count: 16), prefix: 0))
        #expect(address.reverseName == "130.2.0.192.in-addr.arpa")
        #expect(
            IPAddress("2001:db8::1")?.reverseName == "1" + String(repeating: ".0", count: 23)
                + ".8.b.d.0.1.0.0.2.ip6.arpa")
    }

    @Test func domainName_syntaxAndHierarchy_areChecked() {
        #expect(
            DomainName.queryable("A.b.") == "a.b" && DomainName.queryable(".") == nil
                && DomainName.queryable("a..") == nil)
        #expect(
            DomainName.mailDomain("_x.a-b.1") == "_x.a-b.1" && DomainName.mailDomain("com") == nil
                && DomainName.mailDomain("a'.b") == nil)
        #expect(
            DomainName.isEqualOrBelow("a.b", "b") && DomainName.isEqualOrBelow("b", "b")
                && !DomainName.isEqualOrBelow("ab", "b"))
        #expect(
            !DomainName.isEqualOrBelow("b", "a.b") && !DomainName.isEqualOrBelow("a.b", "")
                && !DomainName.isEqualOrBelow("c.b", "a.b"))
        let long = String(repeating: "a.", count: 126) + "b"
        #expect(DomainName.queryable(long) == long && DomainName.queryable("a." + long) == nil)
    }
}
