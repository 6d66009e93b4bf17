// Every public message, complete, truncated and damaged, goes through every reader; also inputs
// designed to be slow.
import InternetMessage
import TestSupport
import Testing

/// Runs all readers over a message and checks the properties of any input.
private func exercise(_ bytes: [UInt8]) {
    let message = Message.parse(bytes)
    #expect(message.headerEnd <= message.bodyStart && message.bodyStart <= bytes.count)
    if message.defects.isDisjoint(with: [.bareLF, .unterminatedLine]) {
        #expect(message.header.serialized.elementsEqual(bytes[..<message.headerEnd]))
    }
    _ = AuthorAddress.parse(header: message.header)
    for field in message.header.fields {
        _ = field.decodedValue
        if ["from", "to", "cc", "reply-to", "sender"].contains(field.name.lowercased()) {
            exerciseAddresses(field.rawValue)
        }
    }
    let root = MIMEPart.parse(message)
    #expect(root.bodyRange == message.bodyStart..<bytes.count)
    check(root, bytes)
}

private func exerciseAddresses(_ value: ArraySlice<UInt8>) {
    let list = AddressList.parse(value)
    for mailbox in list.mailboxes {
        #expect(
            mailbox.range.lowerBound <= mailbox.addrSpecRange.lowerBound
                && mailbox.addrSpecRange.upperBound <= mailbox.range.upperBound)
        #expect(
            mailbox.range.lowerBound >= value.startIndex
                && mailbox.range.upperBound <= value.endIndex)
    }
    let candidates = AddressCandidates.find(in: value)
    #expect(
        candidates.allSatisfy {
            $0.range.lowerBound >= value.startIndex && $0.range.upperBound <= value.endIndex
        })
    let found = Set(candidates.map(\.addrSpec))
    #expect(list.mailboxes.allSatisfy { found.contains($0.addrSpec) })
    if case .success(let address) = AuthorAddress.parse(value: value) {
        #expect(list.mailboxes.map(\.addrSpec) == [address])
    }
}

private func check(_ part: MIMEPart, _ bytes: [UInt8]) {
    #expect(part.depth <= MIMEPart.maximumDepth)
    var last = part.bodyRange.lowerBound
    for child in part.children {
        #expect(
            child.headerRange.lowerBound >= last
                && child.headerRange.upperBound <= child.bodyRange.lowerBound)
        #expect(child.bodyRange.upperBound <= part.bodyRange.upperBound)
        last = child.bodyRange.upperBound
        check(child, bytes)
    }
    guard part.children.isEmpty, let text = part.transferEncoding.decode(bytes[part.bodyRange])
    else { return }
    #expect(text.rawOffset(of: text.bytes.count) <= part.bodyRange.upperBound)
    if let charset = part.contentType.charset, part.contentType.matches("text") {
        _ = Charset.decode(text.bytes, charset)
    }
}

struct CorpusTests {
    @Test(.enabled(if: TestData.conformance != nil, TestData.skipReason))
    func readers_wholeCutOrDamagedMessage_keepInvariants() throws {
        let files = TestData.files(["mail", "bounces", "replies", "calendar"])
        try #require(!files.isEmpty, "the conformance folder holds no messages")
        var random = SeededGenerator(seed: 29)
        var count = 0
        for file in files {
            let bytes = try TestData.bytes(file)
            exercise(bytes)
            count += 1
            guard !bytes.isEmpty else { continue }
            for _ in 0..<1 {
                exercise(
                    Array(
                        bytes.prefix(min(10_000, Int.random(in: 0...bytes.count, using: &random)))))
                var damaged = Array(bytes.prefix(10_000))
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    let index = Int.random(in: 0..<damaged.count, using: &random)
                    let interesting: [UInt8] = [
                        0, 0x0A, 0x0D, 0x20, 0x22, 0x28, 0x2D, 0x3A, 0x3B, 0x3C, 0x3D, 0x3F, 0x40,
                        0x5C, 0x80, 0xFF,
                    ]
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: damaged[index] = interesting.randomElement(using: &random) ?? 0
                    case 1:
                        damaged.insert(interesting.randomElement(using: &random) ?? 0, at: index)
                    default: if damaged.count > 1 { damaged.remove(at: index) }
                    }
                }
                exercise(damaged)
                count += 2
            }
        }
        print("corpus: \(files.count) files, \(count) messages")
    }

    @Test func readers_randomAddressField_keepInvariants() {
        var random = SeededGenerator(seed: 31)
        let pieces =
            [
                "a", "b.c", "@", "@", "<", ">", ",", ";", ":", "(", ")", "\"", "\\", "[", "]", ".",
                " ", "\r\n ", "\n", "\r",
                "\0", "é", "=?utf-8?q?", "=40", "?=", "x@y", "＠",
            ].map(\.octets)
            + [[0xFF]]
        for _ in 0..<10_000 {
            let value = (0..<Int.random(in: 0...14, using: &random)).flatMap { _ in
                pieces.randomElement(using: &random) ?? []
            }
            exerciseAddresses(value[...])
            _ = ContentType.parse(value[...])
            _ = AddrSpec.parseReversePath(value)
        }
    }

    private static let million = 1_000_000

    /// A reader that backtracks, or recurses, for each opening character takes too long.
    @Test(arguments: ["(", "<", "\"", "=?", "["])
    func readers_megabyteOfOpenings_findNothing(_ piece: String) {
        let value = [UInt8](
            repeatElement(piece.octets, count: Self.million / piece.utf8.count).joined())
        #expect(AddressList.parse(value).mailboxes.isEmpty)
        if case .success = AuthorAddress.parse(value: value[...]) {
            Issue.record("rubbish has no author")
        }
        #expect(EncodedWord.decode(value[...]).utf8.elementsEqual(value))
        #expect(ContentType.parse(value[...]).defects.contains(.invalidValue))
    }

    /// Octets of each damaged value below. A quadratic reader needs a million times a small step
    /// for it; a linear one needs hardly any time.
    private static let length = 40_000

    @Test(arguments: [
        "(", "<", "\"", "=?", "@", "a@", "\"@", "\\", "[", "a@b,", ":", ";", "a:", "a@b ", "<a@b>",
        "()", "(\"", "\"(", "=?a?q?",
        "=?utf-8?q?=?=", "=?x1?q?a?= ", "a.", "@:", "<@a:",
        "\\\"@", "\r\n ", ", ", "é", "＠", "a@[", "?=", "=?utf-8?b?w6?= ", "x :", "@x:",
    ])
    func readers_longRepeatedPiece_keepInvariants(_ piece: String) {
        let value = Array(
            repeatElement(piece.octets, count: Self.length / piece.utf8.count).joined())
        exerciseAddresses(value[...])
        _ = EncodedWord.decode(value[...])
        _ = ContentType.parse(value[...])
        _ = ContentDisposition.parse(("x;" + piece).octets[...])
        exercise(value)
        _ = HeaderField.folding("X", String(decoding: value, as: UTF8.self))
    }

    @Test(arguments: [
        "a=b;", ";", "a*0=b;", "\"", "(", "a=\"", "a ", "a=b ", "=", "a*1=b;c*2*=d;", "é", "/",
        "a=b c=", "x=(", "a=?;",
    ])
    func contentType_longRepeatedPiece_limitsParameters(_ piece: String) {
        let value =
            "text/plain;".octets
            + repeatElement(piece.octets, count: Self.length / piece.utf8.count).joined()
        #expect(ContentType.parse(value[...]).parameters.list.count <= MIMEParameters.maximumCount)
    }

    @Test func addressList_hundredThousandMailboxes_isRead() {
        let value = (0..<100_000).map { "N \($0) <a\($0)@b.example>" }.joined(separator: ", ")
        let list = AddressList.parse(value)
        #expect(list.mailboxes.count == 100_000 && list.defects.isEmpty)
        #expect(AuthorAddress.parse(value: value.octets[...]) == .failure(.multipleMailboxes))
        #expect(
            AddressList.parse(HeaderField.addresses("To", list.mailboxes).rawValue).mailboxes.count
                == 100_000)
    }

    @Test func mimePart_manyBoundariesInLargeBody_isParsed() {
        let open = (0..<30).map {
            "Content-Type: multipart/mixed; boundary=level\($0)\r\n\r\n--level\($0)\r\n"
        }.joined()
        let body = String(
            repeating: "--level\r\n--level29\r\n\r\n" + String(repeating: "-- text\r\n", count: 40),
            count: 9_000)
        let message = Message.parse((open + body).octets)
        let root = MIMEPart.parse(message)
        #expect(root.flattened.count > 9_000)
        let long = HeaderSection([
            HeaderField(
                "Content-Type",
                "multipart/mixed; boundary=\"" + String(repeating: "b", count: 100_000) + "\"")
        ])
        let lines = [UInt8](repeatElement("--bbbbbbbb\r\n".octets, count: 100_000).joined())
        #expect(MIMEPart.parse(header: long, body: lines).defects.contains(.noParts))
    }
}
