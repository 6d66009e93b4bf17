// Transfer encodings, their offset map, and replacement of single words.
import InternetMessage
import Support
import TestSupport
import Testing

struct TransferEncodingTests {
    @Test(
        arguments: [
            ("YWJj", "abc", []), ("YWI=", "ab", []), ("YQ==", "a", []), ("", "", []),
            ("YW\r\nJj\r\n", "abc", []),
            ("Y!W@J#j", "abc", [.strayCharacter]), ("YQ==YmM=", "abc", [.dataAfterPadding]),
            ("YWI", "ab", [.incompleteGroup]),
            ("YQ", "a", [.incompleteGroup]),
            ("YQ=", "a", [.incompleteGroup]), ("YWJjZ", "abc", [.incompleteGroup]),
            ("YR==", "a", [.nonZeroPaddingBits]),
            ("====", "", [.strayPadding]),
            ("YWJj=", "abc", [.strayPadding]), ("YQ===", "a", [.strayPadding]),
            ("YQ=YmM=", "abc", [.incompleteGroup, .dataAfterPadding]),
            ("fn5-Pz8_", "~~~???", [.otherAlphabet]), ("fn5+Pz8/", "~~~???", []),
        ] as [(String, String, Set<TransferDefect>)])
    func base64_validOrDamaged_isDecodedWithDefects(
        _ text: String, _ expected: String, _ defects: Set<TransferDefect>
    ) {
        let plain = Base64.decode(text.octets)
        #expect(plain.bytes == expected.octets && plain.defects == defects)
        let mapped = DecodedText(base64: text.octets[...])
        #expect(mapped.bytes == expected.octets && mapped.defects == defects)
    }

    @Test(
        arguments: [
            ("abc", "abc", []), ("a=3Db", "a=b", []), ("a=\r\nb", "ab", []), ("a=\nb", "ab", []),
            ("a= \t\r\nb", "ab", []),
            ("a=C3=A9", "aé", []),
            ("a=c3=a9", "aé", [.lowercaseEscape]), ("a=zz", "a=zz", [.invalidEscape]),
            ("a=3", "a=3", [.invalidEscape]),
            ("a=", "a", [.trailingSoftBreak]),
            ("a \r\nb", "a\r\nb", [.trailingWhiteSpace]), ("a ", "a", [.trailingWhiteSpace]),
            ("a=20\r\nb", "a \r\nb", []),
            ("é", "é", [.rawOctet]),
            ("a\u{1}", "a\u{1}", [.rawOctet]), ("a b", "a b", []), ("=", "", [.trailingSoftBreak]),
            ("a=\rb", "a=\rb", [.invalidEscape]),
            (String(repeating: "a", count: 77), String(repeating: "a", count: 77), []),
            (String(repeating: "a", count: 78), String(repeating: "a", count: 78), [.longLine]),
        ] as [(String, String, Set<TransferDefect>)])
    func quotedPrintable_validOrDamaged_isDecodedWithDefects(
        _ text: String, _ expected: String, _ defects: Set<TransferDefect>
    ) {
        let decoded = QuotedPrintable.decode(text.octets[...])
        #expect(decoded.bytes == expected.octets && decoded.defects == defects)
    }

    private func randomOctets(_ random: inout SeededGenerator, upTo limit: Int = 400) -> [UInt8] {
        let mode = Int.random(in: 0..<3, using: &random)
        return (0..<Int.random(in: 0...limit, using: &random)).map { _ in
            switch mode {
            case 0: UInt8.random(in: 0...255, using: &random)
            case 1: [0x61, 0x20, 0x0D, 0x0A, 0x3D, 0x2E, 0x09].randomElement(using: &random) ?? 0
            default: UInt8.random(in: 0x20...0x7E, using: &random)
            }
        }
    }

    @Test func encodedText_randomOctets_isCanonicalAndReadBack() {
        var random = SeededGenerator(seed: 17)
        for _ in 0..<600 {
            // A bare LF becomes CRLF in quoted-printable, which is for text.
            let bytes = Message.canonicalLineBreaks(randomOctets(&random))
            let quoted = QuotedPrintable.encode(bytes)
            let read = QuotedPrintable.decode(quoted[...])
            #expect(read.bytes == bytes && read.defects.isEmpty)
            #expect(
                quoted.split(separator: 10, omittingEmptySubsequences: false).allSatisfy {
                    $0.count <= 77
                })
            #expect(
                quoted.allSatisfy {
                    ($0 >= 0x20 && $0 < 0x7F) || $0 == 0x0D || $0 == 0x0A || $0 == 0x09
                })
            let raw = randomOctets(&random)
            let encoded = Base64.encode(raw)
            let back = Base64.decode(encoded)
            #expect(back.bytes == raw && back.defects.isEmpty)
            #expect(encoded.split(separator: 10).allSatisfy { $0.count <= 77 })
            #expect(Base64.decode(Base64.encodeUnbroken(raw)).bytes == raw)
        }
        #expect(QuotedPrintable.encode("From x\r\n.\r\na".octets) == "=46rom x\r\n=2E\r\na".octets)
    }

    /// For random damaged input: decoding the raw range of a decoded range
    /// gives that range's octets.
    @Test func decodedText_randomDamagedInput_mapsToRawOctets() {
        var random = SeededGenerator(seed: 19)
        let alphabet = "YWJjZ012==\r\n !%a".octets
        for _ in 0..<1500 {
            let text = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            for decoded in [
                DecodedText(base64: text[...]), DecodedText(quotedPrintable: text[...]),
                DecodedText(identity: text[...]),
            ] {
                #expect(
                    decoded.rawOffset(of: decoded.bytes.count) <= text.count
                        && decoded.rawOffset(of: -1) == 0)
                guard !decoded.bytes.isEmpty else { continue }
                let low = Int.random(in: 0..<decoded.bytes.count, using: &random)
                let high = Int.random(in: low...decoded.bytes.count, using: &random)
                let range = decoded.rawRange(of: low..<high)
                #expect(
                    range.decoded.lowerBound <= low && range.decoded.upperBound >= high
                        && range.decoded.count <= high - low + 4)
                guard low < high else { continue }
                let again = decoded.encoding.decode(decoded.raw[range.raw])?.bytes
                // Alone, white space, CR or "=" at the end of the piece would have another meaning.
                if let last = decoded.bytes[range.decoded].last, !last.isFoldingWhiteSpace,
                    last != UInt8(ascii: "=")
                {
                    #expect(again == Array(decoded.bytes[range.decoded]))
                }
                #expect(decoded.rawOffset(of: low) == range.raw.lowerBound)
            }
        }
    }

    @Test func decodedText_wordReplaced_keepsOtherOctets() {
        let raw = "Hello =\r\na@b.example, =C3=A9=\r\n weird =zz   \r\nend".octets
        let text = DecodedText(quotedPrintable: raw[...])
        let at = 6..<17
        #expect(String(decoding: text.bytes[at], as: UTF8.self) == "a@b.example")
        let replaced = text.replacing([.init(at, "x=y".octets)])
        #expect(
            String(decoding: replaced, as: UTF8.self)
                == "Hello =\r\nx=3Dy, =C3=A9=\r\n weird =zz   \r\nend")
        #expect(text.replacing([]) == raw)
        let identity = DecodedText(identity: "ab cd ef".octets[...])
        #expect(identity.replacing([.init(0..<2, "X".octets), .init(6..<8, [])]) == "X cd ".octets)
    }

    @Test func decodedText_replacedInEachEncoding_isReadBack() {
        var random = SeededGenerator(seed: 23)
        for _ in 0..<800 {
            let bytes = Message.canonicalLineBreaks(randomOctets(&random))
            guard bytes.count > 4 else { continue }
            let low = Int.random(in: 0..<(bytes.count - 2), using: &random)
            let middle = Int.random(in: low...bytes.count, using: &random)
            let high = Int.random(in: middle...bytes.count, using: &random)
            // A change between CR and LF is not a replacement of words.
            if bytes[low] == 0x0A || (middle < bytes.count && bytes[middle] == 0x0A)
                || (high < bytes.count && bytes[high] == 0x0A)
            {
                continue
            }
            let new = "new word é ".octets
            let edits = [
                DecodedText.Replacement(low..<middle, new), .init(high..<high, "!".octets),
            ]
            let expected =
                Array(bytes[..<low]) + new + bytes[middle..<high] + "!".octets + bytes[high...]
            for encoding in [TransferEncoding.base64, .quotedPrintable, .eightBit] {
                guard let raw = encoding.encode(bytes), let text = encoding.decode(raw[...]) else {
                    continue
                }
                let replaced = text.replacing(edits)
                #expect(encoding.decode(replaced[...])?.bytes == expected, "\(encoding)")
                if !encoding.isIdentity {
                    #expect(
                        replaced.split(separator: 10, omittingEmptySubsequences: false).allSatisfy {
                            $0.count <= 77
                        },
                        "\(encoding)")
                }
            }
        }
    }

    @Test(
        arguments: [
            ("base64", .base64), (" BASE64 (c)", .base64), ("quoted-printable", .quotedPrintable),
            ("7bit", .sevenBit),
            ("8BIT", .eightBit), ("binary;", .binary),
            ("", .sevenBit), ("x-uuencode", .unknown("x-uuencode")),
        ] as [(String, TransferEncoding)])
    func transferEncoding_fieldValue_isParsed(_ text: String, _ expected: TransferEncoding) {
        #expect(TransferEncoding.parse(text) == expected)
    }
}
