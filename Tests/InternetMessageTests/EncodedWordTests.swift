// Encoded words and charsets.
import InternetMessage
import TestSupport
import Testing

struct EncodedWordTests {
    @Test(arguments: [
        ("plain", "plain"), ("=?utf-8?q?a_b?=", "a b"), ("=?UTF-8?Q?a=5Fb?=", "a_b"),
        ("=?iso-8859-1?q?=E9?= x", "é x"),
        ("=?utf-8?b?w6k=?=", "é"), ("=?utf-8?B?w6k?=", "é"), ("=?us-ascii*en?q?x?=", "x"),
        ("=?utf-8?q?a?= =?utf-8?q?b?=", "ab"), ("=?utf-8?q?a?=\t\r\n =?iso-8859-1?q?b?=", "ab"),
        ("=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"),
        ("=?utf-8?q?=C3?= =?utf-8?q?=A9?=", "é"),
        ("=?utf-8?x?a?=", "=?utf-8?x?a?="), ("=?none-such?q?a?=", "=?none-such?q?a?="),
        ("=?utf-8?q?a", "=?utf-8?q?a"),
        ("=?", "=?"), ("=?=", "=?="),
        ("=??q?a?=", "=??q?a?="), ("=?utf-8?q??=", ""), ("a=?utf-8?q?b?=c", "abc"),
        ("=?utf-8?q?a b?=", "a b"),
        ("=?utf-8?q?what??=", "what?"),
        ("=?utf-8?b?!!!!?=", "=?utf-8?b?!!!!?="), ("=?utf-8?q?=zz?=", "=zz"),
        ("=?ISO-2022-JP?B?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?gb2312?b?1tC5+g==?=", "中国"), ("=?utf-7?q?+AOk-?=", "é"),
        ("=?utf-8?q?a =?utf-8?q?b?=", "=?utf-8?q?a b"),
        ("é =?utf-8?q?=C3=A9?=", "é é"), ("=?utf-8?q?=FF?=", "\u{FFFD}"),
        ("  =?utf-8?q?a?=  ", "  a  "),
    ])
    func encodedWord_validOrMalformed_isDecodedOrKept(_ text: String, _ expected: String) {
        #expect(EncodedWord.decode(text) == expected)
    }

    @Test func encodedWord_randomText_isShortAndReadBack() {
        var random = SeededGenerator(seed: 3)
        let alphabet = Array("ab _=?.,é漢字😀🇩🇪👩‍👩‍👧‍👦e\u{301}")
        for _ in 0..<1000 {
            let text = String(
                (0..<Int.random(in: 1...80, using: &random)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                })
            let encoded = EncodedWord.encode(text)
            #expect(EncodedWord.decode(encoded).utf8.elementsEqual(text.utf8))
            for word in encoded.split(separator: " ") {
                #expect(word.utf8.count <= EncodedWord.maximumLength)
                // Each word alone contains complete characters.
                #expect(!EncodedWord.decode(String(word)).unicodeScalars.contains("\u{FFFD}"))
            }
            let field = HeaderField.unstructured("Subject", text)
            #expect(field.controls.isEmpty && field.bytes.allSatisfy { $0 < 0x80 })
        }
    }

    @Test func encodedWord_plainText_staysUnencoded() {
        #expect(
            EncodedWord.encodeWhereNeeded("Re: your order (3 items)") == "Re: your order (3 items)")
        #expect(EncodedWord.encodeWhereNeeded("Re: Größe 3") == "Re: =?utf-8?b?R3LDtsOfZQ==?= 3")
        #expect(EncodedWord.encodeWhereNeeded("a\r\nBcc: b@c") == "a  Bcc: b@c")
        #expect(HeaderField.unstructured("Subject", "a\r\nBcc: b@c").controls.isEmpty)
    }

    @Test(
        arguments: [
            ("us-ascii", [0x61], "a"), ("UTF-8", [0xC3, 0xA9], "é"),
            ("latin1", [0xE9, 0x80], "é\u{80}"),
            ("windows-1252", [0x80, 0xE9], "€é"),
            ("iso-8859-15", [0xA4], "€"), ("koi8-r", [0xC1], "а"),
            ("shift_jis", [0x82, 0xA0], "あ"),
            ("euc-kr", [0xB0, 0xA1], "가"), ("big5", [0xA4, 0xA4], "中"),
            ("utf-16be", [0, 0x61], "a"), ("utf-16", [0, 0x61], "a"),
            ("utf-16", [0xFF, 0xFE, 0x61, 0], "a"),
            ("gb18030", [0xD6, 0xD0], "中"),
        ] as [(String, [UInt8], String)])
    func charset_knownLabel_isDecodedAndEncoded(
        _ label: String, _ bytes: [UInt8], _ text: String
    ) throws {
        #expect(Charset.decode(bytes, label) == text)
        #expect(Charset.decodeStrict(bytes, label) == text)
        let encoded = try #require(Charset.encode(text, label))
        #expect(Charset.decode(encoded, label) == text)
    }

    @Test func charset_unknownLabelOrBadOctets_isReported() throws {
        for label in [
            "", "x-unknown", "utf-8//TRANSLIT", "../../etc", "char", "wchar_t", "INTERNAL",
            String(repeating: "a", count: 100),
            "é",
        ] {
            #expect(Charset.decode([0x61], label) == nil, "\(label)")
            #expect(Charset.encode("a", label) == nil, "\(label)")
        }
        for (label, bytes) in [
            ("us-ascii", [0x80]), ("utf-8", [0xFF]), ("windows-1252", [0x81]),
            ("shift_jis", [0x82]),
            ("iso-2022-jp", [0x1B, 0x24]),
        ] as [(String, [UInt8])] {
            let decoded = try #require(Charset.decodeCheckingLoss(bytes, label))
            #expect(!decoded.isLossless, "\(label)")
            #expect(Charset.decodeStrict(bytes, label) == nil)
        }
        #expect(Charset.encode("é", "us-ascii") == nil)
        #expect(Charset.encode("漢", "iso-8859-15") == nil)
        #expect(Charset.encode("€", "iso-8859-1") == nil)
        #expect(Charset.encode("\u{81}", "windows-1252") == nil)
    }

    @Test func charset_longText_isConvertedWhole() throws {
        let text = String(repeating: "日本語 text ", count: 20_000)
        for label in ["iso-2022-jp", "euc-jp", "utf-16le", "gb18030"] {
            let bytes = try #require(Charset.encode(text, label))
            #expect(Charset.decodeStrict(bytes, label) == text)
        }
        #expect(
            Charset.decode([UInt8](repeating: 0xFF, count: 10_000), "euc-jp")?.unicodeScalars.count
                == 10_000)
    }
}
