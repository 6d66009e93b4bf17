// Octets that were searched and go on as they came are not searched a second time, and still nothing passes the leak check.

import HostileMail
import InternetMessage
import LeakSearch
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct SearchedStretchTests {
    private static let engine = Fixture(evidence: .init()).engine
    private static let inbox = "anna@inbox.example"
    private static func names() -> ReplyNames {
        ReplyNames(
            engine: engine, account: Fixture.anna, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
    }

    /// Text in which nothing stands; the length is one of a whole stretch and more.
    private static let filler = Array(String(repeating: "Nothing of note stands in this line of text.\r\n", count: 4_000).utf8)

    private static func encoded(_ text: [UInt8], levels: Int) -> [UInt8] {
        (0..<levels).reduce(text) { text, _ in Base64.encode(text) }
    }

    private static func search(
        _ stretches: [Range<Int>], of body: [UInt8], budget: WorkBudget = WorkBudget(limit: .max)
    ) -> [SearchedStretch] {
        let scan = OpaqueScan(names: names(), work: budget)
        for stretch in stretches { _ = scan.finds(in: body[stretch], encoding: .sevenBit, isOfMessage: true) }
        return scan.searched
    }

    private static func finds(
        _ pieces: [ArraySlice<UInt8>], passingOver searched: [SearchedStretch] = [], of body: [UInt8] = []
    ) -> Bool {
        LeakCheck(names: names()).firstLeak(header: HeaderSection(), body: pieces, searched: searched, of: body) != nil
    }

    /// base64 that is base64 again at every level cost twice what it may, and was refused: a regression of the budget's first
    /// day.
    @Test(arguments: 1...4)
    func base64OfBase64IsSearchedOnce(levels: Int) {
        let line = Array((String(repeating: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", count: 2) + "\r\n").utf8)
        var attachment = (0..<20_000).flatMap { _ in line }
        for _ in 1..<levels { attachment = Base64.encode(attachment) }
        let body =
            Array("--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n".utf8) + attachment
            + Array("--b--\r\n".utf8)
        let outcome = WorkBudgetTests.rewrite(
            [HeaderField("MIME-Version", "1.0"), HeaderField("Content-Type", "multipart/mixed; boundary=b")], body)
        #expect(outcome.refusal == nil)
        #expect(outcome.budget.spent < 100 * body.count, "\(outcome.budget.spent / body.count) units for an octet")
    }

    /// Parts below the length of a stretch were searched twice, and all together refused: 40 photographs, or a mailbox in pieces.
    @Test(arguments: 1...4)
    func manyPartsOfBase64OfBase64AreSearchedOnce(levels: Int) {
        let line = Array((String(repeating: "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", count: 2) + "\r\n").utf8)
        var content = (0..<2_000).flatMap { _ in line }
        for _ in 1..<levels { content = Base64.encode(content) }
        content = Array(content.prefix(61_440 / 78 * 78))
        let part =
            Array("--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n".utf8) + content
        let body = (0..<40).flatMap { _ in part } + Array("--b--\r\n".utf8)
        let outcome = WorkBudgetTests.rewrite(
            [HeaderField("MIME-Version", "1.0"), HeaderField("Content-Type", "multipart/mixed; boundary=b")], body)
        #expect(outcome.refusal == nil)
        // Searched twice it is 150 and more.
        #expect(outcome.budget.spent < 120 * body.count, "\(outcome.budget.spent / body.count) units for an octet")
    }

    @Test(arguments: 0...3, [-30, -21, -18, -14, -9, -4, -1, 0])
    func aNameAcrossTheBeginningOfAStretchIsFound(levels: Int, shift: Int) {
        let start = Array("Dear reader,\r\nwrite to ".utf8)
        let body = Self.encoded(start + Array(Self.inbox.utf8) + [13, 10] + Self.filler, levels: levels)
        // Where the name ends, or some octets before.
        let cut = Self.encoded(start + Array(Self.inbox.utf8), levels: levels).count + shift
        let searched = Self.search([cut..<body.count], of: body)
        #expect(Self.finds([body[...]], passingOver: searched, of: body))
        // In two pieces, as where the part has a new header.
        #expect(Self.finds([Array(body[..<cut])[...], body[cut...]], passingOver: searched, of: body))
    }

    @Test(arguments: 0...3, [1, 3, 4, 7, 10, 14, 18, 22])
    func aNameAcrossTheEndOfAStretchIsFound(levels: Int, shift: Int) {
        let before = Self.encoded(Self.filler, levels: levels)
        let body = Self.encoded(Self.filler + Array(Self.inbox.utf8) + Array(" is where to write to.\r\n".utf8), levels: levels)
        let cut = before.count - 6 + shift
        let searched = Self.search([0..<cut], of: body)
        #expect(searched.count == 1)
        #expect(Self.finds([body[...]], passingOver: searched, of: body))
        #expect(Self.finds([body[..<cut], Array(body[cut...])[...]], passingOver: searched, of: body))
    }

    @Test(arguments: [
        "Write to \(inbox).\r\n", "V3JpdGUgdG8gYW5uYUBpbmJveC5leGFtcGxlLg==\r\n", "write to anna%40inbox.example\r\n",
    ])
    func aNameBeforeBetweenAndBehindStretchesIsFound(text: String) throws {
        let body = Self.filler + Self.filler
        let half = Self.filler.count
        let searched = Self.search([0..<half, half..<body.count], of: body)
        try #require(searched.count == 2)
        #expect(!Self.finds([body[...]], passingOver: searched, of: body))
        let name = Array(text.utf8)[...]
        for place in 0...2 {
            var pieces = [body[..<half], body[half...]]
            pieces.insert(name, at: place)
            #expect(Self.finds(pieces, passingOver: searched, of: body), "\(place)")
        }
    }

    /// What was searched counts only where it is what leaves.
    @Test func aChangedStretchIsSearched() throws {
        let body = Self.filler
        let searched = Self.search([0..<body.count], of: body)
        try #require(searched.count == 1)
        var changed = body
        changed.replaceSubrange(90_000..<90_020, with: " \(Self.inbox) ".utf8)
        try #require(changed.count == body.count)
        #expect(Self.finds([changed[...]], passingOver: searched, of: body))
        #expect(
            Self.finds([body[..<60_000], Array(" \(Self.inbox) ".utf8)[...], body[60_000...]], passingOver: searched, of: body))
    }

    @Test func aStretchWithANameIsNotPassedOver() {
        var body = Self.filler
        body.replaceSubrange(90_000..<90_020, with: " \(Self.inbox) ".utf8)
        let searched = Self.search([0..<body.count], of: body)
        #expect(searched.isEmpty)
        #expect(Self.finds([body[...]], passingOver: searched, of: body))
    }

    /// A search that ended with its budget has seen nothing of the rest.
    @Test func aStretchThatWasNotSearchedToItsEndIsNotPassedOver() {
        #expect(Self.search([0..<Self.filler.count], of: Self.filler, budget: WorkBudget(limit: 100_000)).isEmpty)
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }

    /// Names at the ends of stretches and within them, as they are and encoded, between text and base64: with stretches passed
    /// over the last look says what it says without.
    @Test(arguments: 1...40)
    func theLeakCheckSaysTheSame(seed: Int) {
        var random = Generator(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15)
        let levels = Int.random(in: 0...3, using: &random)
        var text = Self.filler + Self.filler
        if Bool.random(using: &random) {
            let at = Int.random(in: 0..<text.count, using: &random)
            text.insert(
                contentsOf: " \(Self.inbox) ".utf8,
                at: Bool.random(using: &random) ? at : text.count / 2 + Int.random(in: -20...20, using: &random))
        }
        let body = Self.encoded(text, levels: levels)
        let middle = body.count / 2 + Int.random(in: -200...200, using: &random)
        let ends = [Int.random(in: 0...5_000, using: &random), middle, body.count - Int.random(in: 0...5_000, using: &random)]
        let stretches = [ends[0]..<ends[1], (ends[1] + Int.random(in: 0...2, using: &random))..<ends[2]]
        let searched = Self.search(stretches, of: body)
        #expect(Self.finds([body[...]], passingOver: searched, of: body) == Self.finds([body[...]]))
    }
}
