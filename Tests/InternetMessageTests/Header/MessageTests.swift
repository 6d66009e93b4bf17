// Splitting messages, header fields, and folding.
import InternetMessage
import TestSupport
import Testing

struct MessageTests {
    @Test func message_firstEmptyLine_endsHeader() {
        let message = Message.parse("A: 1\r\nB: 2\r\n\t3\r\n\r\nbody\r\n\r\nmore".octets)
        #expect(message.header.fields.map(\.name) == ["A", "B"])
        #expect(message.header.first("b")?.unfoldedValue == "2\t3")
        #expect(String(decoding: message.body, as: UTF8.self) == "body\r\n\r\nmore")
        #expect(message.bytes[..<message.headerEnd].elementsEqual(message.header.serialized))
        #expect(message.defects.isEmpty)
    }

    @Test func message_bareLineFeeds_endLinesAndAreReported() {
        let message = Message.parse("A: 1\nB: 2\n 3\n\nbody\n".octets)
        #expect(message.header.fields.map(\.unfoldedValue) == ["1", "2 3"])
        #expect(String(decoding: message.body, as: UTF8.self) == "body\n")
        #expect(message.defects == [.bareLF])
        let whole = Message.parse(Message.canonicalLineBreaks(message.bytes))
        #expect(whole.defects.isEmpty && whole.bytes == "A: 1\r\nB: 2\r\n 3\r\n\r\nbody\r\n".octets)
    }

    @Test(
        arguments: [
            ("A: 1\r\nno colon\r\n\r\n", [.lineWithoutColon]), (": x\r\n\r\n", [.emptyName]),
            ("A b: x\r\n\r\n", [.invalidName]),
            ("\u{E4}: x\r\n\r\n", [.eightBitName]),
            ("A : x\r\n\r\n", [.spaceBeforeColon]),
            (" A: x\r\n\r\n", [.leadingContinuation, .invalidName]),
            ("A: x\r\n \t\r\n\r\n", [.whiteSpaceOnlyLine]),
            ("A: \0\r\n\r\n", [.nul]), ("A: \rx\r\n\r\n", [.bareCR]), ("A: x\n\r\n", [.bareLF]),
            ("A: \u{1}\r\n\r\n", [.controlCharacter]),
            ("A: x", [.unterminatedLine]),
            ("A: " + String(repeating: "x", count: 996) + "\r\n\r\n", [.longLine]),
            ("A:\r\n\r\n", []), ("", []), ("\r\n", []),
            ("A: é\r\n\r\n", []),
        ] as [(String, Set<MessageDefect>)])
    func message_eachDefect_isReported(_ text: String, _ defects: Set<MessageDefect>) {
        #expect(Message.parse(text.octets).defects == defects)
    }

    @Test func message_headerNotUTF8_isReported() {
        #expect(Message.parse("A: ".octets + [0xFF] + "\r\n\r\n".octets).defects == [.notUTF8])
    }

    @Test func headerField_controlOctets_areReported() {
        func controls(_ text: String) -> HeaderControls { HeaderField(bytes: text.octets).controls }
        #expect(controls("A: b\r\n c") == [])
        #expect(controls("A: \0") == .nul)
        #expect(controls("A: b\rc") == .bareCR)
        #expect(controls("A: b\n c") == .bareLF)
        #expect(controls("A: b\nc") == [.bareLF, .lineBreak])
        #expect(controls("A: b\r\nBcc: c") == .lineBreak)
        #expect(controls("A: b\r\n") == .lineBreak)
        #expect(controls("A: b\r\n \r\n c") == .emptyContinuation)
        #expect(controls("A: b\r\n ") == .emptyContinuation)
        #expect(controls("A: \u{7F}") == .otherControl)
        #expect(
            HeaderField(bytes: "S: =?utf-8?q?=C3=A9?=\r\n =?utf-8?q?x?= y".octets).decodedValue
                == "éx y")
    }

    @Test func headerField_folded_keepsLinesShortAndTextWhole() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<500 {
            let words = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                let word = String(repeating: "w", count: Int.random(in: 0...30, using: &random))
                return Int.random(in: 0..<6, using: &random) == 0 ? "\"\(word) \(word)\"" : word
            }
            let text = words.joined(separator: " ")
            let field = HeaderField.folding("X-Test", text)
            #expect(field.controls.isEmpty)
            #expect(String(decoding: field.unfoldedBytes, as: UTF8.self) == " " + text.trimmedEnd)
            let lines = String(decoding: field.bytes, as: UTF8.self).utf8.split(separator: 10)
            #expect(lines.allSatisfy { $0.count <= HeaderField.preferredLineLength + 1 })
        }
        #expect(HeaderField.folding("A", "b\r\nBcc: c\0").bytes == "A: b  Bcc: c".octets)
        let quoted = "\"" + String(repeating: "wort ", count: 1000) + "\""
        let field = HeaderField.folding("A", quoted)
        #expect(
            String(decoding: field.bytes, as: UTF8.self).utf8.split(separator: 10).allSatisfy {
                $0.count <= 999
            })
        #expect(String(decoding: field.unfoldedBytes, as: UTF8.self) == " " + quoted)
    }
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = Substring(self)
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
