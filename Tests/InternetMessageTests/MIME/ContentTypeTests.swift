// Content-Type, Content-Disposition and parameters.
import InternetMessage
import TestSupport
import Testing

struct ContentTypeTests {
    @Test(
        arguments: [
            ("text/plain; charset=utf-8", "text/plain", "charset=utf-8", []),
            (" TEXT / Plain ; Charset = \"UTF-8\"", "text/plain", "charset=UTF-8", []),
            ("text/plain", "text/plain", "", []), ("text/plain;", "text/plain", "", []),
            ("text/plain;; a=b", "text/plain", "a=b", [.emptyParameter]),
            ("text/plain; a=b (c); d=e", "text/plain", "a=b d=e", [.comment]),
            ("a/b; x=\"a\\\"b;c\"; y=1", "a/b", "x=a\"b;c y=1", []),
            ("a/b; x=1; x=2", "a/b", "x=1", [.duplicate]),
            ("a/b; x*=utf-8''%C3%A9", "a/b", "x=é", []),
            ("a/b; x*0=ab; x*1=cd", "a/b", "x=abcd", []),
            ("a/b; x*1=cd; x*0=ab", "a/b", "x=abcd", []),
            ("a/b; x*0*=utf-8'en'%C3; x*1*=%A9; x*2=%41", "a/b", "x=é%41", []),
            ("a/b; x*0=a; x*2=c", "a/b", "x=ac", [.sectionGap]),
            ("a/b; x=plain; x*=utf-8''ext", "a/b", "x=ext", [.plainAndExtended]),
            ("a/b; x*=utf-8''%zz%", "a/b", "x=%zz%", [.invalidPercent]),
            ("a/b; x*=noquotes", "a/b", "x=noquotes", [.missingCharset]),
            ("a/b; x*=utf-8''%FF", "a/b", "x=\u{FFFD}", [.undecodable]),
            ("a/b; x*=nowhere''a", "a/b", "x=a", [.undecodable]),
            ("a/b; x=\"=?utf-8?q?=C3=A9?=\"", "a/b", "x=é", [.encodedWord]),
            ("a/b; x=\"open", "a/b", "x=open", [.unterminatedQuote]),
            ("a/b; x=a b c; y=d", "a/b", "x=a b c y=d", [.unquotedSpecials]),
            ("a/b; x=1 y=2", "a/b", "x=1 y=2", [.missingSemicolon]),
            ("a/b x=1", "a/b", "x=1", [.missingSemicolon]),
            ("a/b; junk; x=1", "a/b", "x=1", [.trailingText]),
            ("a/b; =1; x=1", "a/b", "x=1", [.malformed]),
            ("a/b; x=", "a/b", "x=", [.emptyValue]),
            ("a/b; x=(c", "a/b", "x=", [.comment, .unterminatedComment, .emptyValue]),
            ("a/b; x=\u{1}", "a/b", "x=\u{1}", [.controlCharacter, .unquotedSpecials]),
            ("a/b; x=é", "a/b", "x=é", [.rawEightBit]),
            // Names are octets: these two are equal to Swift's String.
            (
                "a/b; x\u{e9}=1; xe\u{301}=2; \u{212A}=3; k=4", "a/b",
                "x\u{e9}=1 xe\u{301}=2 \u{212A}=3 k=4", [.rawEightBit]
            ),
            ("a/b; x=a@b", "a/b", "x=a@b", [.unquotedSpecials]),
            ("text", "text/plain", "charset=us-ascii", [.invalidValue]),
            ("", "text/plain", "charset=us-ascii", [.invalidValue]),
            ("text/", "text/plain", "charset=us-ascii", [.invalidValue]),
            ("a/b;\r\n x=1;\r\n\ty=2", "a/b", "x=1 y=2", []),
        ] as [(String, String, String, Set<ParameterDefect>)])
    func contentType_validOrDamaged_isReadWithDefects(
        _ text: String, _ type: String, _ parameters: String, _ defects: Set<ParameterDefect>
    ) {
        let read = ContentType.parse(text)
        #expect("\(read.type)/\(read.subtype)" == type)
        if !defects.contains(.invalidValue) {
            #expect(
                read.parameters.list.map { "\($0.name.text)=\($0.value)" }.joined(separator: " ")
                    == parameters)
        }
        #expect(read.defects == defects)
    }

    @Test func contentDisposition_value_isReadWithParameters() {
        let read = ContentDisposition.parse("Attachment; filename=\"a b.txt\"; size=3")
        #expect(
            read.disposition == "attachment" && read.filename == "a b.txt"
                && read.parameters["SIZE"] == "3")
        #expect(ContentDisposition.parse("; filename=x").disposition == "attachment")
        #expect(ContentDisposition.parse("; filename=x").defects == [.invalidValue])
    }

    @Test func contentType_writtenParameters_areReadBack() {
        var random = SeededGenerator(seed: 13)
        let alphabet = Array("ab c;=\"\\()*'%é漢😀?/_")
        for _ in 0..<1500 {
            let value = String(
                (0..<Int.random(in: 1...90, using: &random)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                })
            var type = ContentType("text", "plain")
            type.parameters["name"] = value
            type.parameters["charset"] = "utf-8"
            let field = HeaderField.folding("Content-Type", type.serialized)
            let read = ContentType.parse(field.rawValue)
            #expect(
                read.parameters["name"]?.utf8.elementsEqual(value.utf8) == true,
                "\(type.serialized)")
            #expect(
                read.parameters["charset"] == "utf-8" && read.defects.isEmpty,
                "\(type.serialized) \(read.defects)")
        }
    }

    struct ParserCase: Decodable {
        struct Expected: Decodable {
            var c_type: String
            var c_subtype: String?
            var attributes: [[String]]?
        }
        var header: String
        var expected: Expected?
    }

    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func contentType_publicCases_agreeWithMailParser() throws {
        let cases = try TestData.json(
            "address/mail-parser/content_type.json", as: [ParserCase].self)
        try #require(!cases.isEmpty)
        var agreed = 0
        for test in cases {
            guard let expected = test.expected else {
                #expect(
                    ContentType.parse(test.header).defects.contains(.invalidValue),
                    "\(test.header.debugDescription)")
                agreed += 1
                continue
            }
            let wanted = (expected.attributes ?? []).filter {
                !($0.first ?? "").hasSuffix("-language")
            }
            .map { "\($0.first ?? "")=\($0.last ?? "")" }.sorted()
            let parameters: MIMEParameters
            if let subtype = expected.c_subtype {
                let read = ContentType.parse(test.header)
                parameters = read.parameters
                if !read.defects.contains(.invalidValue) {
                    #expect(
                        "\(read.type)/\(read.subtype)"
                            == "\(expected.c_type)/\(subtype)".lowercased() || subtype.contains("/")
                    )
                }
            } else {
                parameters = ContentDisposition.parse(test.header).parameters
            }
            let read = parameters.list.map { "\($0.name.text)=\($0.value)" }.sorted()
            if read == wanted {
                agreed += 1
            } else {
                print("mail-parser differs:", test.header.debugDescription, read, wanted)
            }
        }
        print("mail-parser: \(agreed) of \(cases.count) content types")
        #expect(agreed * 100 >= cases.count * 88)
    }
}
