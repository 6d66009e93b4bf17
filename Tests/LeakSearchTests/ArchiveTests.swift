// Archives as programs open them: several members, octets before the archive,
// and the strings of PDF.

import Support
import Testing

@testable import LeakSearch

@Suite struct ArchiveTests {
    /// Finds one word in octets, without decoding.
    final class WordSearch: StreamSearch {
        private let word: [UInt8]
        private var octets: [UInt8] = []
        private(set) var isFound = false

        init(_ word: String) { self.word = Array(word.utf8) }

        func feed(_ octets: UnsafeBufferPointer<UInt8>) {
            self.octets += octets
            if self.octets.indices.contains(where: { self.octets[$0...].starts(with: word) }) {
                isFound = true
            }
        }

        func finish() -> Bool {
            defer {
                octets = []
                isFound = false
            }
            return isFound
        }
    }

    private static let inbox = "jane.k77x@home.example"

    private static func finds(_ octets: [UInt8]) -> Bool {
        ArchiveScan(work: WorkBudget(octets: octets.count)) { WordSearch(inbox) }.finds(in: octets)
    }

    /// A deflate stream of one stored block. No search of the octets themselves can read it, as
    /// each word contains a zero.
    private static func deflated(_ text: String) -> [UInt8] {
        let octets = Array(text.utf8)
        let blocks = octets.enumerated().map { index, octet -> [UInt8] in
            [index == octets.count - 1 ? 1 : 0, 1, 0, 0xFE, 0xFF, octet]
        }
        return blocks.flatMap { $0 }
    }

    private static func member(_ text: String) -> [UInt8] {
        [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + deflated(text) + [UInt8](repeating: 0xAA, count: 8)
    }

    private static func zip(_ text: String) -> [UInt8] {
        let data = deflated(text)
        var header: [UInt8] =
            [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + [UInt8](repeating: 0, count: 16)
        header += [1, 0, 0, 0]
        return header + Array("a".utf8) + data + [UInt8](repeating: 0, count: 30)
    }

    private static func pdf(_ content: String, isPacked: Bool = true) -> [UInt8] {
        let text = Array("%PDF-1.7\n1 0 obj\n<</Length 9>>\nstream\n".utf8)
        let stream = isPacked ? [0x78, 0x01] + deflated(content) : Array(content.utf8)
        return text + stream + Array("\nendstream\nendobj\n".utf8)
    }

    private static let lead = Array("MZ a program that unpacks itself\n".utf8)

    @Test func gzip_severalMembers_allAreSearched() {
        #expect(Self.finds(Self.member("hello ") + Self.member("world") + Self.member(Self.inbox)))
        #expect(Self.finds(Self.member("hello") + [0, 0, 0] + Self.member(Self.inbox)))
        #expect(Self.finds(Self.member(Self.inbox) + Self.member("world")))
        #expect(!Self.finds(Self.member("hello") + Self.member("jane.k88x@home.example")))
    }

    @Test func gzip_manyMembers_takeBoundedWork() {
        let octets = (0..<20_000).flatMap { _ in Self.member(" ") }
        let work = WorkBudget(octets: octets.count)
        _ = ArchiveScan(work: work) { WordSearch(Self.inbox) }.finds(in: octets)
        #expect(work.spent <= work.limit + WorkBudget.step)
    }

    @Test func zip_behindOtherOctets_isOpened() {
        #expect(Self.finds(Self.zip(Self.inbox)))
        #expect(Self.finds(Self.lead + Self.zip(Self.inbox)))
        #expect(!Self.finds(Self.lead + Self.zip("jane.k88x@home.example")))
    }

    @Test func zip_behindAPicture_isOpened() {
        let picture: [UInt8] =
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + [UInt8](repeating: 0, count: 40)
        #expect(Self.finds(picture + Self.zip(Self.inbox)))
    }

    @Test func zip_farBehindOtherOctets_isKnownByTheEndOfItsDirectory() {
        let stub = [UInt8](repeating: 1, count: 1_100_000)
        let end: [UInt8] = [0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18)
        #expect(Self.finds(stub + Self.zip(Self.inbox) + end))
    }

    @Test func pdf_behindOtherOctets_isOpened() {
        #expect(Self.finds(Self.pdf(Self.inbox)))
        #expect(Self.finds(Self.lead + Self.pdf(Self.inbox)))
    }

    @Test(arguments: [
        #"(jane.k77x\100home.example) Tj"#,
        #"(jane\56k77x@home\56example) Tj"#,
        #"[(jane.k7) -20 (7x@home.) 3.5 (example)] TJ"#,
        #"[(jane.k7) -20 <3778> (@home.example)] TJ"#,
        "(jane.k77x@ho\\\nme.example) Tj",
        "(jane.k77x@ho\\\r\nme.example) Tj",
        #"(Write to \(jane.k77x\100home.example\)) Tj"#,
        #"(a (nested) word jane.k77x\100home.example) Tj"#,
        "<6A616E652E6B373778 40 686F6D652E6578616D706C65> Tj",
    ])
    func pdf_stringWithEscapes_isRead(_ text: String) {
        #expect(Self.finds(Self.pdf(text)), "packed: \(text)")
        #expect(Self.finds(Self.pdf(text, isPacked: false)), "\(text)")
    }

    @Test func pdf_parenthesisInAPicture_hidesNoLaterString() {
        let picture = Self.pdf("\u{1}(\u{2}\u{3}", isPacked: false)
        #expect(
            Self.finds(
                picture + Self.pdf(#"[(jane.k7) 3 (7x\100home.example)] TJ"#, isPacked: false)))
    }

    @Test func pdf_stringsOfTwoLines_areNotJoined() {
        #expect(!Self.finds(Self.pdf("(jane.k77x@home) Tj 0 -14 Td (.example) Tj")))
    }

    @Test func kinds_ofText_areNone() {
        let text = Array("Dear team, PK and %PDF are words.".utf8)
        #expect(!ArchiveScan.isArchive(text))
    }
}
