// Texts of a body that comes in pieces: they equal those of the tree for every division.
import InternetMessage
import Support
import TestSupport
import Testing

struct TextWalkerTests {
    /// The text of one part, assembled from its stretches.
    private struct Text: Equatable {
        var ordinal: Int
        var type: String
        var isLoose: Bool
        var octets: [UInt8]
    }

    private func walk(
        _ message: Message, chunks: (Int) -> Int
    ) -> (texts: [Text], walker: TextWalker) {
        var walker = TextWalker(header: message.header) { _ in true }
        var texts: [Text] = []
        func take(_ stretches: [TextStretch]) {
            for stretch in stretches {
                if let last = texts.last, last.ordinal == stretch.ordinal,
                    last.isLoose == stretch.isLoose, stretch.start > 0
                {
                    // Overlaps repeat earlier octets.
                    #expect(
                        last.octets.dropFirst(stretch.start).elementsEqual(
                            stretch.octets.prefix(stretch.overlap)))
                    texts[texts.count - 1].octets += stretch.octets.dropFirst(stretch.overlap)
                } else {
                    #expect(stretch.overlap == 0 && stretch.start == 0)
                    let type = stretch.part.contentType
                    texts.append(
                        Text(
                            ordinal: stretch.ordinal, type: "\(type.type)/\(type.subtype)",
                            isLoose: stretch.isLoose,
                            octets: stretch.octets))
                }
            }
        }
        var position = message.bodyStart
        while position < message.bytes.count {
            let end = min(
                message.bytes.count, position + max(1, chunks(message.bytes.count - position)))
            message.bytes[position..<end].withUnsafeBytes { take(walker.feed($0)) }
            position = end
        }
        take(walker.finish())
        return (texts, walker)
    }

    /// The texts of the same message by its tree.
    private func texts(_ message: Message) -> [Text] {
        var texts: [Text] = []
        var ordinal = 0
        func visit(_ part: MIMEPart) {
            let own = ordinal
            ordinal += 1
            let type = "\(part.contentType.type)/\(part.contentType.subtype)"
            func loose(_ range: Range<Int>?) {
                guard let range, !range.isEmpty else { return }
                texts.append(
                    Text(
                        ordinal: own, type: type, isLoose: true, octets: Array(message.bytes[range])
                    ))
            }
            loose(part.preamble)
            for child in part.children { visit(child) }
            loose(part.epilogue)
            let isLeaf = part.children.isEmpty && part.preamble == nil && part.epilogue == nil
            guard isLeaf, !part.bodyRange.isEmpty else { return }
            let raw = message.bytes[part.bodyRange]
            let octets = part.transferEncoding.decode(raw)?.bytes ?? Array(raw)
            texts.append(Text(ordinal: own, type: type, isLoose: false, octets: octets))
        }
        visit(MIMEPart.parse(message))
        return texts.filter { !$0.octets.isEmpty }
    }

    private func compare(_ bytes: [UInt8], _ name: String, random: inout SeededGenerator) {
        let message = Message.parse(bytes)
        let expected = texts(message)
        let sizes: [(Int) -> Int] =
            bytes.count < 4_000 ? [{ $0 }, { _ in 1 }, { _ in 7 }] : [{ $0 }, { _ in 1_000 }]
        for chunks in sizes {
            let isSame =
                walk(message, chunks: chunks).texts.filter { !$0.octets.isEmpty } == expected
            #expect(isSame, "\(name)")
        }
        var local = random
        let isSame =
            walk(message) { _ in Int.random(in: 1...200, using: &local) }.texts.filter {
                !$0.octets.isEmpty
            } == expected
        #expect(isSame, "\(name)")
        random = local
    }

    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func textWalker_publicMessageInAnyChunks_matchesTree() throws {
        let files = TestData.files(["mail", "bounces", "replies", "calendar"])
        try #require(!files.isEmpty, "the conformance folder holds no messages")
        var random = SeededGenerator(seed: 41)
        for file in files { compare(try TestData.bytes(file), "\(file)", random: &random) }
    }

    @Test func textWalker_randomBrokenMultipart_matchesTree() {
        var random = SeededGenerator(seed: 43)
        let pieces = [
            "--a", "--a--", "--b", "--b--", "--", "-", "a", "\r\n", "\r\n", "\r\n\r\n", "\n", "\r",
            " ", "x", "=", "=4", "=\r\n",
            "YWI=", "\0", "é",
            "Content-Type: text/plain\r\n", "Content-Type: multipart/mixed; boundary=b\r\n",
            "Content-Type: message/rfc822\r\n\r\n",
            "Content-Type: multipart/digest; boundary=a\r\n",
            "Content-Transfer-Encoding: base64\r\n",
            "Content-Transfer-Encoding: quoted-printable\r\n",
        ].map(\.octets)
        for round in 0..<6_000 {
            let body = (0..<Int.random(in: 0...40, using: &random)).flatMap { _ in
                pieces.randomElement(using: &random) ?? []
            }
            compare(
                "Content-Type: multipart/mixed; boundary=a\r\n\r\n".octets + body,
                "round \(round): \(String(decoding: body, as: UTF8.self).debugDescription)",
                random: &random)
        }
    }

    @Test(arguments: ["base64", "quoted-printable", "8bit", "x-unknown"])
    func textWalker_longText_returnsOverlappingStretches(_ encoding: String) throws {
        var random = SeededGenerator(seed: 47)
        for lineLength in [76, 0] {
            let text = (0..<300_000).map { _ in
                "abcdefgh =\r\n.é".utf8.randomElement(using: &random) ?? 0
            }
            var body = TransferEncoding.parse(encoding).encode(text) ?? text
            if lineLength == 0 { body.removeAll { $0 == 0x0A || $0 == 0x0D } }
            let bytes = "Content-Transfer-Encoding: \(encoding)\r\n\r\n".octets + body
            compare(bytes, encoding, random: &random)
            var walker = TextWalker(header: Message.parse(bytes).header) { _ in true }
            let stretches = body.withUnsafeBytes { walker.feed($0) } + walker.finish()
            #expect(
                stretches.count > 3
                    && stretches.allSatisfy {
                        $0.octets.count <= TextWalker.stretch + TextWalker.overlap
                    })
            #expect(
                stretches.dropFirst().allSatisfy {
                    $0.overlap <= TextWalker.overlap && $0.overlap >= TextWalker.overlap / 2
                })
            #expect(
                stretches.map(\.isLast) == Array(repeating: false, count: stretches.count - 1) + [
                    true
                ])
        }
    }

    @Test func textWalker_utf16Text_isCutBetweenCharacters() {
        let text = Array(String(repeating: "Gr\u{FC}\u{DF}e ", count: 20_000).utf16).flatMap {
            [UInt8($0 & 255), UInt8($0 >> 8)]
        }
        var walker = TextWalker(
            header: HeaderSection([
                HeaderField("Content-Type", "text/plain; charset=utf-16le"),
                HeaderField("Content-Transfer-Encoding", "base64"),
            ])
        ) { _ in true }
        let stretches = Base64.encode(text).withUnsafeBytes { walker.feed($0) } + walker.finish()
        #expect(stretches.count > 3 && stretches.allSatisfy { $0.start % 4 == 0 })
    }

    @Test func textWalker_attachment_isSkipped() {
        let body = """
            --b\r\n\r\ntext\r\n--b\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ninner\r\n--b--\r\n
            """.octets
        var walker = TextWalker(
            header: HeaderSection([HeaderField("Content-Type", "multipart/mixed; boundary=b")])
        ) {
            $0.contentType.matches("text")
        }
        let stretches = body.withUnsafeBytes { walker.feed($0) } + walker.finish()
        #expect(stretches.map { String(decoding: $0.octets, as: UTF8.self) } == ["text", "inner"])
        #expect(stretches.map(\.ordinal) == [1, 4])
    }

    @Test(arguments: [
        (
            "--b\r\nX: " + String(repeating: "y", count: MIMEPart.maximumHeaderSize + 1),
            MIMEStop.longHeader
        ),
        (
            "--b\r\n\r\ntext\r\n--b" + String(repeating: " ", count: MIMEPart.maximumDelimiterLine),
            .longDelimiter
        ),
    ])
    func textWalker_headerOrDelimiterTooLong_stops(_ body: String, _ stop: MIMEStop) {
        var walker = TextWalker(
            header: HeaderSection([HeaderField("Content-Type", "multipart/mixed; boundary=b")])
        ) { _ in true }
        var texts: [TextStretch] = []
        for chunk in stride(from: 0, to: body.utf8.count, by: 10_000).map({
            body.octets[$0..<min($0 + 10_000, body.utf8.count)]
        }) {
            texts += chunk.withUnsafeBytes { walker.feed($0) }
        }
        texts += "\r\n--b\r\n\r\nmore\r\n--b--\r\n".octets.withUnsafeBytes { walker.feed($0) }
        texts += walker.finish()
        #expect(
            walker.stop == stop
                && texts.allSatisfy { String(decoding: $0.octets, as: UTF8.self) == "text" })
    }

    @Test func textWalker_longLineOfDashes_isText() {
        let line = "--" + String(repeating: "-", count: 3 * MIMEPart.maximumDelimiterLine)
        var walker = TextWalker(
            header: HeaderSection([HeaderField("Content-Type", "multipart/mixed; boundary=b")])
        ) { _ in true }
        var texts: [TextStretch] = []
        for octet in "--b\r\n\r\n\(line)\r\n--b--".octets {
            texts += [octet].withUnsafeBytes { walker.feed($0) }
        }
        texts += walker.finish()
        #expect(
            walker.stop == nil
                && String(
                    decoding: texts.flatMap { $0.octets.dropFirst($0.overlap) }, as: UTF8.self)
                    == line
        )
    }
}
