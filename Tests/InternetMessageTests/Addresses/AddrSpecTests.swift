// Addresses of the envelope, their wire form, and the public is_email cases.
import InternetMessage
import TestSupport
import Testing

struct AddrSpecTests {
    @Test(arguments: [
        ("<>", ReversePath.null), ("", .null),
        ("<a@b.example>", .address(AddrSpec(localPart: "a", domain: "b.example"))),
        ("a@b.example", .address(AddrSpec(localPart: "a", domain: "b.example"))),
        ("<@x.example,@y:a@b>", .address(AddrSpec(localPart: "a", domain: "b"))),
        ("<\"a b\"@c>", .address(AddrSpec(localPart: "a b", domain: "c"))),
        ("<\"a\\\"@x\"@c>", .address(AddrSpec(localPart: "a\"@x", domain: "c"))),
        ("<a@[192.0.2.1]>", .address(AddrSpec(localPart: "a", domain: "[192.0.2.1]"))),
        (
            "<a@[IPv6:2001:db8::1]>",
            .address(AddrSpec(localPart: "a", domain: "[IPv6:2001:db8::1]"))
        ),
        (
            "<jürgen@münchen.example>",
            .address(AddrSpec(localPart: "jürgen", domain: "münchen.example"))
        ),
        (
            "<a@under_score.example>",
            .address(AddrSpec(localPart: "a", domain: "under_score.example"))
        ),
    ])
    func reversePath_validForm_isRead(_ text: String, _ expected: ReversePath) {
        #expect(AddrSpec.parseReversePath(text) == expected)
    }

    @Test(arguments: [
        "<a@b", "a@b>", "<a>", "a", "<@x>", "<@x:>", "<@x,y:a@b>", "< a@b>", "<a@b >", "<a b@c>",
        "<a@b,c@d>", "<a@b><c@d>",
        "<a..b@c>", "<.a@b>",
        "<a.@b>", "<a@b.>", "<a@-b>", "<a@b->", "<a@b..c>", "<\"a@b>", "<\"a\"b@c>", "<a@[1.2.3]>",
        "<a@[1.2.3.4>", "<a(x)@b>",
        "<a@b\r\n>", "<a\0@b>",
        "<\"a\r\nb\"@c>", "<<a@b>>", "<a@b!c>",
    ])
    func reversePath_malformed_returnsNil(_ text: String) {
        #expect(AddrSpec.parseReversePath(text) == nil)
    }

    @Test func addrSpec_notUTF8OrTooLong_returnsNil() {
        #expect(AddrSpec(envelope: [0x61, 0xFF, 0x40, 0x62]) == nil)
        #expect(AddrSpec(envelope: [UInt8](repeating: 0x61, count: 5_000_000) + "@b".utf8) == nil)
    }

    @Test func addrSpec_wireForm_quotesOnlyWhereNeeded() {
        #expect(AddrSpec(localPart: "a.b+c", domain: "d").wireForm == "a.b+c@d")
        #expect(AddrSpec(localPart: "a b", domain: "d").wireForm == "\"a b\"@d")
        #expect(AddrSpec(localPart: "a\"\\", domain: "d").wireForm == "\"a\\\"\\\\\"@d")
        #expect(AddrSpec(localPart: "", domain: "d").wireForm == "\"\"@d")
        #expect(AddrSpec(localPart: "a.", domain: "d").wireForm == "\"a.\"@d")
        #expect(AddrSpec(localPart: "é", domain: "d").wireForm == "é@d")
        #expect(AddrSpec(localPart: "a\r\nBcc: x", domain: "d\r\n").wireForm == "\"aBcc: x\"@d")
    }

    @Test func addrSpec_wireFormOfRandomLocalPart_isReadBack() {
        var random = SeededGenerator(seed: 7)
        let alphabet = Array("ab.@\"\\ ()<>,;:[]é=?\t")
        for _ in 0..<2000 {
            let local = String(
                (0..<Int.random(in: 0...8, using: &random)).map { _ in
                    alphabet[Int.random(in: 0..<(alphabet.count - 1), using: &random)]
                })
            let address = AddrSpec(localPart: local, domain: "x.example")
            #expect(AddrSpec(envelope: address.wireForm) == address)
            #expect(AddressList.parse(address.wireForm).mailboxes.map(\.addrSpec) == [address])
        }
    }

    @Test func addrSpec_equality_comparesOctets() {
        #expect(
            AddrSpec(localPart: "é", domain: "b") != AddrSpec(localPart: "e\u{301}", domain: "b"))
        #expect(
            AddrSpec(localPart: "a", domain: "B.Example")
                == AddrSpec(localPart: "a", domain: "b.eXample"))
        #expect(AddrSpec(localPart: "A", domain: "b") != AddrSpec(localPart: "a", domain: "b"))
        #expect(
            Set([AddrSpec(localPart: "a", domain: "B"), AddrSpec(localPart: "a", domain: "b")])
                .count == 1)
    }

    @Test func addrSpec_localPartOver64Octets_exceedsSMTPLimits() {
        let domain = "d.example"
        #expect(
            AddrSpec(localPart: String(repeating: "a", count: 64), domain: domain).fitsSMTPLimits)
        #expect(
            !AddrSpec(localPart: String(repeating: "a", count: 65), domain: domain).fitsSMTPLimits)
        #expect(AddrSpec(envelope: String(repeating: "a", count: 65) + "@" + domain) != nil)
    }

    struct IsEmailCase: Decodable {
        var set: String
        var id: String
        var address: String
        var category: String
        var diagnosis: String
    }

    /// Cases in which our result differs on purpose.
    private func reason(_ test: IsEmailCase) -> String? {
        switch test.diagnosis {
        case "ISEMAIL_RFC5322_LOCAL_TOOLONG", "ISEMAIL_RFC5322_TOOLONG":
            "over-long local parts are in use and are read; fitsSMTPLimits tells"
        case "ISEMAIL_RFC5322_LABEL_TOOLONG", "ISEMAIL_RFC5322_DOMAIN_TOOLONG":
            "no DNS name: told as invalidDomain in headers too"
        case "ISEMAIL_DEPREC_QP":
            "quoted NUL, CR and LF are told as invalid, though obs-qp has them"
        case "ISEMAIL_ERR_EXPECTING_QPAIR": "RFC 6532 lets UTF-8 stand in a quoted pair"
        default: nil
        }
    }

    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func addrSpec_isEmailCases_agreeWithRFCs() throws {
        let cases = try TestData.json("address/isemail.json", as: [IsEmailCase].self)
        try #require(!cases.isEmpty)
        var envelopeAgreed = 0
        var headerAgreed = 0
        var differing = [String]()
        for test in cases {
            let isSMTP =
                ["ISEMAIL_VALID_CATEGORY", "ISEMAIL_DNSWARN", "ISEMAIL_RFC5321"].contains(
                    test.category)
                || test.diagnosis == "ISEMAIL_RFC5321_IPV6DEPRECATED"
            let read = AddrSpec(envelope: test.address) != nil
            if read == isSMTP {
                envelopeAgreed += 1
            } else {
                let why = reason(test) ?? "?"
                differing.append(
                    "5321 \(test.set) \(test.id) \(test.address.debugDescription) \(test.diagnosis): \(why)"
                )
                #expect(
                    reason(test) != nil,
                    "5321 \(test.set) \(test.id) \(test.address.debugDescription) \(test.diagnosis): read \(read)"
                )
            }
            let list = AddressList.parse(test.address)
            let isLegal = list.isLegal && list.mailboxes.count == 1
            if isLegal == (test.category != "ISEMAIL_ERR") {
                headerAgreed += 1
            } else {
                differing.append(
                    "5322 \(test.set) \(test.id) \(test.address.debugDescription) \(test.diagnosis): \(reason(test) ?? "?")"
                )
                #expect(
                    reason(test) != nil,
                    "5322 \(test.set) \(test.id) \(test.address.debugDescription) \(test.diagnosis): \(list.defects)"
                )
            }
        }
        print(
            "isemail: RFC 5321 \(envelopeAgreed) of \(cases.count), RFC 5322 \(headerAgreed) of \(cases.count)"
        )
        for line in differing { print("isemail differs:", line) }
    }
}
