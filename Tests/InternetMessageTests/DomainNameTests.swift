// Domain names: punycode, A-labels and U-labels against the public tables.
import InternetMessage
import Testing

@testable import Support

struct DomainNameTests {
    @Test(arguments: [
        ("Example.COM", "example.com"), ("example.com.", "example.com"),
        ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
        ("xn--MNCHEN-3ya.example", "xn--mnchen-3ya.example"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"), ("faß.de", "xn--fa-hia.de"),
        ("βόλος.com", "xn--nxasmm1c.com"),
        ("mu\u{308}nchen.de", "xn--mnchen-3ya.de"),
        ("a_b.example", "a_b.example"), ("☃.net", "xn--n3h.net"),
    ])
    func domainName_unicodeOrMixedCase_becomesASCII(_ name: String, _ expected: String) {
        #expect(DomainName.toASCII(name) == expected)
    }

    @Test(
        arguments: [
            "", ".", "a..b", ".a", "-a.b", "a-.b", "a b", "a@b", "[1.2.3.4]", "xn--a", "xn--",
            "xn--mnchen-3yaa-.de", "ａ.com",
            "a\u{200B}b.com", "a\u{AD}b.com", "\u{300}a.com",
            "ﬁ.com", "xn--fi-.com", "aa--ü.de", "a\u{202E}b.c", "a\0b.c", "ü\u{200D}.de",
        ] + [
            String(repeating: "a", count: 64), String(repeating: "a.", count: 200) + "b",
            String(repeating: "ü", count: 3000),
        ])
    func domainName_invalid_returnsNil(_ name: String) {
        #expect(DomainName.toASCII(name) == nil)
        #expect(DomainName.toUnicode(name) == nil)
    }

    @Test func domainName_aLabelOrULabel_isConvertedBothWays() {
        #expect(DomainName.toUnicode("xn--mnchen-3ya.Example") == "münchen.example")
        #expect(
            AddrSpec(localPart: "A", domain: "MÜNCHEN.de").normalized
                == AddrSpec(localPart: "A", domain: "xn--mnchen-3ya.de"))
        #expect(
            AddrSpec(localPart: "A", domain: "MÜNCHEN.de").asciiWireForm == "A@xn--mnchen-3ya.de")
        #expect(AddrSpec(localPart: "ä", domain: "b").asciiWireForm == nil)
    }

    struct PunycodeCase: Decodable {
        var decoded: String?
        var encoded: String?
    }

    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func punycode_publicCases_areEncodedAndDecoded() throws {
        let cases = try TestData.json("idna/tests/punycode_tests.json", as: [PunycodeCase].self)
        let bad = try TestData.json("idna/tests/bad_punycode_tests.json", as: [PunycodeCase].self)
        try #require(!cases.isEmpty && !bad.isEmpty)
        for test in cases {
            let decoded = Array(try #require(test.decoded).unicodeScalars)
            let encoded = Array(try #require(test.encoded).utf8)
            #expect(Punycode.encode(decoded) == encoded)
            #expect(Punycode.decode(encoded) == decoded)
        }
        for test in bad {
            if let decoded = test.decoded {
                #expect(Punycode.encode(Array(decoded.unicodeScalars)) == nil)
            }
            if let encoded = test.encoded {
                #expect(Punycode.decode(Array(encoded.utf8)) == nil, "\(encoded)")
            }
        }
        print("punycode: \(cases.count) cases, \(bad.count) bad ones")
    }

    /// UTS 46: each name that we return is the right one. We refuse more: see `DomainName`.
    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func domainName_uts46Cases_areRightOrRefused() throws {
        let root = try #require(TestData.conformance)
        let lines = try String(
            decoding: TestData.bytes(root.appending(path: "idna/tests/IdnaTestV2.txt")),
            as: UTF8.self
        )
        .split(separator: "\n").filter { !$0.hasPrefix("#") }
        try #require(!lines.isEmpty)
        var (right, refused, wrong, lax, total) = (0, 0, 0, 0, 0)
        for line in lines {
            let columns = (line.split(separator: "#", maxSplits: 1).first ?? "").split(
                separator: ";", omittingEmptySubsequences: false
            )
            .map { unescape(String($0)) }
            guard columns.count >= 5, !columns[0].isEmpty else { continue }
            total += 1
            let unicode = columns[1].isEmpty ? columns[0] : columns[1]
            let unicodeStatus = columns[2]
            let ascii = columns[3].isEmpty ? unicode : columns[3]
            let status = columns[4].isEmpty ? unicodeStatus : columns[4]
            let isError = !status.isEmpty && status != "[]"
            switch DomainName.toASCII(columns[0]) {
            case nil: if isError { right += 1 } else { refused += 1 }
            case let name?:
                if isError {
                    lax += 1
                } else if name == ascii || name + "." == ascii {
                    right += 1
                } else {
                    wrong += 1
                    print("idna wrong:", columns[0], name, ascii)
                }
            }
        }
        print(
            "idna: \(right) of \(total) as UTS 46 says, \(refused) refused that it maps, \(lax) taken that it refuses (Bidi and context rules), \(wrong) wrong"
        )
        #expect(wrong == 0)
        #expect(right * 100 >= total * 75)
    }

    private func unescape(_ text: String) -> String {
        var output = String.UnicodeScalarView()
        var rest = text.unicodeScalars.drop { $0 == " " }
        while rest.last == " " { rest.removeLast() }
        if rest.elementsEqual("\"\"".unicodeScalars) { return "" }
        while let scalar = rest.popFirst() {
            guard scalar == "\\", rest.first == "u" || rest.first == "x" else {
                output.append(scalar)
                continue
            }
            let isBraced = rest.popFirst() == "x"
            let digits = isBraced ? rest.dropFirst().prefix { $0 != "}" } : rest.prefix(4)
            rest = rest.dropFirst(digits.count + (isBraced ? 2 : 0))
            if let value = UInt32(String(String.UnicodeScalarView(digits)), radix: 16),
                let scalar = Unicode.Scalar(value)
            {
                output.append(scalar)
            }
        }
        return String(output)
    }
}
