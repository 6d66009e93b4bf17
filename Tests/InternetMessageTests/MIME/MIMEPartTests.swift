// MIME trees: the parts, the ranges of their octets, and the defects.
import InternetMessage
import Testing

struct MIMEPartTests {
    private func parse(_ text: String) -> (part: MIMEPart, message: Message) {
        let message = Message.parse(text.octets)
        return (MIMEPart.parse(message), message)
    }

    /// The tree as text: type(children), a leaf as type"body".
    private func show(_ part: MIMEPart, _ bytes: [UInt8]) -> String {
        let type = "\(part.contentType.type)/\(part.contentType.subtype)"
        if part.isComposite {
            return "\(type)(" + part.children.map { show($0, bytes) }.joined(separator: " ") + ")"
        }
        return "\(type)\""
            + String(decoding: bytes[part.bodyRange], as: UTF8.self).replacing("\r\n", with: "|")
            .replacing("\n", with: "~")
            + "\""
    }

    private func mixed(_ body: String, boundary: String = "b") -> String {
        "Content-Type: multipart/mixed; boundary=\"\(boundary)\"\r\n\r\n\(body)"
    }

    @Test func part_multipart_isSplitIntoChildren() {
        let (part, message) = parse(
            mixed(
                "pre\r\n--b\r\n\r\none\r\n--b\r\nContent-Type: text/html\r\n\r\ntwo\r\n\r\n--b--\r\nepi\r\n"
            ))
        #expect(show(part, message.bytes) == "multipart/mixed(text/plain\"one\" text/html\"two|\")")
        #expect(part.preamble.map { String(decoding: message.bytes[$0], as: UTF8.self) } == "pre")
        #expect(
            part.epilogue.map { String(decoding: message.bytes[$0], as: UTF8.self) } == "epi\r\n")
        #expect(
            part.children.map { String(decoding: message.bytes[$0.headerRange], as: UTF8.self) }
                == [
                    "", "Content-Type: text/html\r\n",
                ])
        #expect(
            part.flattened.allSatisfy { $0.defects.isEmpty }
                && part.flattened.map(\.depth) == [0, 1, 1])
    }

    @Test(
        arguments: [
            // Line feeds alone, white space after a delimiter, no final line break.
            (
                "--b\n\none\n--b \t\n\ntwo\n--b--",
                "multipart/mixed(text/plain\"one\" text/plain\"two\")", []
            ),
            ("--b\r\n\r\n--b--\r\n", "multipart/mixed(text/plain\"\")", []),
            ("--b\r\n\r\n\r\n--b--\r\n", "multipart/mixed(text/plain\"\")", []),
            ("--b\r\n\r\none", "multipart/mixed(text/plain\"one\")", [.missingClosingBoundary]),
            ("no parts\r\n", "multipart/mixed\"no parts|\"", [.noParts]),
            ("", "multipart/mixed\"\"", [.noParts]),
            ("--b--\r\nx", "multipart/mixed\"--b--|x\"", []),
            (
                "--b\r\n\r\nx\r\n--bc\r\ny\r\n--b--", "multipart/mixed(text/plain\"x|--bc|y\")",
                [.delimiterPrefix]
            ),
            (
                "--b\r\n\r\nx\r\n--b--\r\n--b\r\n\r\ny\r\n--b--",
                "multipart/mixed(text/plain\"x\")", [.delimiterInEpilogue]
            ),
            ("--b\r\n\r\nx--b\r\n --b\r\n--b--", "multipart/mixed(text/plain\"x--b| --b\")", []),
            ("--b\r\n\r\nx\r\r\n--b--", "multipart/mixed(text/plain\"x\r\")", []),
        ] as [(String, String, Set<MIMEDefect>)])
    func part_delimiterVariants_areReadAsInRFC2046(
        _ body: String, _ expected: String, _ defects: Set<MIMEDefect>
    ) {
        let (part, message) = parse(mixed(body))
        #expect(show(part, message.bytes) == expected)
        #expect(part.defects == defects)
    }

    @Test(
        arguments: [
            ("Hello\r\n\r\nAnna", "text/plain\"Hello||Anna\""),
            ("  Hello: x\r\nAnna", "text/plain\"  Hello: x|Anna\""),
            ("Content-Type: text/html\r\n<p>\r\n\r\nx", "text/html\"<p>||x\""),
            ("Dear Anna: x\r\ny", "text/plain\"Dear Anna: x|y\""),
            ("X: y\r\n z\r\n: x\r\n", "text/plain\": x|\""),
            ("\u{e9}: x\r\n", "text/plain\"\u{e9}: x|\""),
            ("From a@b Sat\r\nContent-Type: text/html\r\n\r\nx", "text/html\"x\""),
            ("--c\r\nx\r\n", "text/plain\"--c|x|\""),
            (
                "Content-Type: message/rfc822\r\nHello\r\n\r\nx",
                "message/rfc822(text/plain\"Hello||x\")"
            ),
            (
                "Content-Type: multipart/mixed; boundary=c\r\nHello\r\n--c\r\n\r\nx\r\n--c--",
                "multipart/mixed(text/plain\"x\")"
            ),
        ])
    func part_linesThatAreNoFields_beginItsBody(_ text: String, _ expected: String) {
        let message = Message.parse(mixed("--b\r\n\(text)\r\n--b--\r\n").octets)
        let part = MIMEPart.parse(message)
        #expect(show(part, message.bytes) == "multipart/mixed(\(expected))")
        #expect(part.children.first?.headerDefects.contains(.lineWithoutColon) == true)
    }

    @Test func part_endsWithinItsHeader_reportsUnterminatedHeader() {
        let (part, message) = parse(
            mixed("--b\r\nContent-Type: text/html\r\n--b\r\n\r\nx\r\n--b--"))
        #expect(show(part, message.bytes) == "multipart/mixed(text/html\"\" text/plain\"x\")")
        #expect(part.children[0].defects == [.unterminatedHeader])
    }

    private let nested = """
        --outer\r\nContent-Type: multipart/alternative; boundary=outer-1\r\n\r\n--outer-1\r\n\r\na\r\n--outer-1\r\n\r\nb\r\n--outer-1--\r\n\r\n--outer\r\n\r\nc\r\n--outer--\r\n
        """

    @Test func part_boundaryIsPrefixOfAnother_isSplitCorrectly() {
        let (part, message) = parse(mixed(nested, boundary: "outer"))
        #expect(
            show(part, message.bytes)
                == "multipart/mixed(multipart/alternative(text/plain\"a\" text/plain\"b\") text/plain\"c\")"
        )
        #expect(part.defects == [.delimiterPrefix] && part.children[0].defects.isEmpty)
    }

    @Test func part_outerDelimiter_endsInnerParts() {
        let text = nested.replacing("--outer-1--\r\n\r\n", with: "")
        let (part, message) = parse(mixed(text, boundary: "outer"))
        #expect(
            show(part, message.bytes)
                == "multipart/mixed(multipart/alternative(text/plain\"a\" text/plain\"b\") text/plain\"c\")"
        )
        #expect(part.children[0].defects == [.missingClosingBoundary])
    }

    @Test func part_boundaryUsedTwice_reportsAmbiguousDelimiter() {
        let (part, message) = parse(
            mixed(
                "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--\r\n--b--\r\n"
            ))
        #expect(show(part, message.bytes) == "multipart/mixed(multipart/mixed(text/plain\"x\"))")
        #expect(part.defects.contains(.ambiguousDelimiter))
    }

    @Test func part_boundaryEndsInDashes_isNotClosingDelimiter() {
        let text =
            "--b\r\nContent-Type: multipart/mixed; boundary=\"b--\"\r\n\r\n--b--\r\n\r\nx\r\n--b----\r\n--b--\r\n"
        let (part, message) = parse(mixed(text))
        #expect(show(part, message.bytes) == "multipart/mixed(multipart/mixed(text/plain\"x\"))")
        #expect(part.defects.contains(.ambiguousDelimiter))
    }

    @Test(arguments: ["rfc822", "global"])
    func part_messageRFC822OrGlobal_isParsed(_ subtype: String) {
        let inner =
            "Subject: x\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\ndeep\r\n--i--\r\n"
        let (part, message) = parse(
            mixed("--b\r\nContent-Type: message/\(subtype)\r\n\r\n\(inner)\r\n--b--"))
        #expect(
            show(part, message.bytes)
                == "multipart/mixed(message/\(subtype)(multipart/mixed(text/plain\"deep\")))")
        #expect(part.children[0].children[0].header.first("Subject")?.unfoldedValue == "x")
    }

    @Test func part_encodedMessage_staysOpaque() {
        let (part, message) = parse(
            "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nU3ViamVjdDogeA=="
        )
        #expect(
            show(part, message.bytes) == "message/rfc822\"U3ViamVjdDogeA==\""
                && part.defects == [.encodedComposite])
        #expect(
            parse("Content-Transfer-Encoding: x\r\n\r\n").part.defects == [.unknownTransferEncoding]
        )
    }

    @Test(
        arguments: [
            (
                "Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n",
                [.duplicateContentType]
            ),
            ("Content-Type: garbage\r\n\r\n", [.invalidContentType]),
            (
                "Content-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: base64\r\n\r\n",
                [.duplicateTransferEncoding]
            ),
            (
                "Content-Disposition: inline\r\nContent-Disposition: inline\r\n\r\n",
                [.duplicateDisposition]
            ),
            ("Content-Type: multipart/mixed\r\n\r\n--\r\n\r\nx\r\n----\r\n", [.missingBoundary]),
            (
                "Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\nx\r\n----\r\n",
                [.missingBoundary]
            ),
            (
                "Content-Type: multipart/mixed; boundary=a; boundary=b\r\n\r\n--a\r\n\r\nx\r\n--a--\r\n",
                [.ambiguousBoundaryParameter]
            ),
            (
                "Content-Type: multipart/mixed; boundary=\"a\u{E9}\"\r\n\r\n--a\u{E9}\r\n\r\nx\r\n--a\u{E9}--\r\n",
                [.invalidBoundary]
            ),
            (
                "Content-Type: multipart/mixed; boundary=a\r\nContent-Transfer-Encoding: base64\r\n\r\n--a\r\n\r\nx\r\n--a--\r\n",
                [.encodedComposite]
            ),
        ] as [(String, Set<MIMEDefect>)])
    func part_ambiguousHeader_reportsDefect(_ text: String, _ defects: Set<MIMEDefect>) {
        #expect(parse(text).part.defects == defects)
    }

    @Test func part_digest_holdsMessages() {
        let (part, message) = parse(
            "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\nSubject: x\r\n\r\nbody\r\n--b--"
        )
        #expect(show(part, message.bytes) == "multipart/digest(message/rfc822(text/plain\"body\"))")
        #expect(part.children[0].children[0].header.first("subject") != nil)
    }

    @Test func part_bodyIsASlice_keepsItsIndices() {
        let bytes = "xxxxx--b\r\n\r\none\r\n--b--".octets
        let header = HeaderSection([HeaderField("Content-Type", "multipart/mixed; boundary=b")])
        let part = MIMEPart.parse(header: header, body: bytes[5...])
        #expect(
            part.bodyRange == 5..<bytes.count
                && String(decoding: bytes[part.children[0].bodyRange], as: UTF8.self) == "one")
    }

    @Test func part_nestedTooDeep_stopsAtMaximumDepth() {
        var text = ""
        for level in 0..<100 {
            text += "Content-Type: multipart/mixed; boundary=b\(level)\r\n\r\n--b\(level)\r\n"
        }
        let (part, _) = parse(text)
        let deepest = part.flattened.map(\.depth).max()
        #expect(deepest == MIMEPart.maximumDepth)
        #expect(part.flattened.last?.defects.contains(.tooDeep) == true)
        let messages = String(repeating: "Content-Type: message/rfc822\r\n\r\n", count: 5000)
        #expect(parse(messages).part.flattened.map(\.depth).max() == MIMEPart.maximumDepth)
    }

    @Test func part_tooManyParts_leavesRestInLastPart() {
        let (part, message) = parse(
            mixed(
                String(repeating: "--b\r\n\r\nx\r\n", count: MIMEPart.maximumPartCount + 5)
                    + "--b--"))
        #expect(
            part.children.count == MIMEPart.maximumPartCount && part.defects.contains(.tooManyParts)
        )
        #expect(part.children.last?.bodyRange.upperBound == message.bytes.count)
    }
}
