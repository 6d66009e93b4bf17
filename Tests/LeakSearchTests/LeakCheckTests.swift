// The check of a finished reply: proof of completeness, each kind of stretch, and the limits.

import InternetMessage
import Testing

@testable import LeakSearch

@Suite struct LeakCheckTests {
    typealias Part = LeakFixture.Part

    // MARK: Cover

    @Test func map_shorterThanTheBody_provesNothing() {
        let text = LeakFixture.octets("hello")
        var map = StretchMap()
        map.append(4, .text(StretchMap.Form(), [StretchMap.Stretch(end: 4, kind: .typed)]))
        let check = LeakCheck(LeakFixture.names)
        let work = WorkBudget(octets: 5)
        #expect(
            check.verdict(header: [], body: [text[...]], map: map, work: work)
                == .uncovered("message body"))
        #expect(
            check.verdict(header: [], body: [text[...]], map: StretchMap(), work: work)
                == .uncovered("message body"))
        map.append(2, .picture)
        #expect(
            check.verdict(header: [], body: [text[...]], map: map, work: work)
                == .uncovered("message body"))
    }

    @Test func map_ofTheWholeBody_isProof() {
        var map = StretchMap()
        map.append(5, .text(StretchMap.Form(), [StretchMap.Stretch(end: 5, kind: .typed)]))
        let body = [LeakFixture.octets("he")[...], LeakFixture.octets("xllox")[1..<4]]
        #expect(
            LeakCheck(LeakFixture.names).verdict(
                header: [], body: body, map: map, work: WorkBudget(octets: 5)) == .clean)
    }

    @Test(arguments: [(4, 6), (5, 5), (7, 6), (0, 0)])
    func stretches_thatAreNotTheWholeText_proveNothing(_ first: Int, _ second: Int) {
        let stretches = [
            StretchMap.Stretch(end: first, kind: .typed),
            StretchMap.Stretch(end: second, kind: .neutral),
        ]
        let part = Part(
            octets: LeakFixture.octets("a=3D=\r\nbcde"),
            content: .text(StretchMap.Form(encoding: .quotedPrintable), stretches))
        let isWhole = first <= second && second == 6
        #expect((LeakFixture.verdict([part]) == .clean) == isWhole)
    }

    @Test func text_withoutStretches_isUncovered() {
        #expect(
            LeakFixture.verdict([Part(octets: [0x61], content: .text(StretchMap.Form(), []))])
                == .uncovered("message body"))
        #expect(
            LeakFixture.verdict([Part(octets: [], content: .text(StretchMap.Form(), []))]) == .clean
        )
    }

    @Test func field_withoutItsStretches_isUncovered() {
        let octets = LeakFixture.octets("Subject: hello\r\n")
        let half = [StretchMap.Stretch(end: 8, kind: .made)]
        for stretches in [[], half] {
            let field = LeakCheck.Field(name: "Subject", octets: octets, stretches: stretches)
            #expect(LeakFixture.verdict([], header: [field]) == .uncovered("header field Subject"))
        }
        let whole = LeakCheck.Field(
            name: "Subject", octets: octets,
            stretches: half + [StretchMap.Stretch(end: 16, kind: .neutral)])
        #expect(LeakFixture.verdict([], header: [whole]) == .clean)
    }

    @Test func field_withAnEncodedWord_isRead() {
        let octets = LeakFixture.octets(
            "From: =?utf-8?B?\(LeakFixture.base64("jane.k77x@home."))?=\r\n =?utf-8?Q?example?=\r\n"
        )
        let field = LeakCheck.Field(
            name: "From", octets: octets,
            stretches: [StretchMap.Stretch(end: octets.count, kind: .typed)])
        #expect(LeakFixture.verdict([], header: [field]) == .leak("header field From"))
    }

    @Test func encodedMessage_isReadByItsOwnMap() {
        let text = LeakFixture.octets("Subject: x\r\n\r\njane.k77x@home.example")
        let encoded = LeakFixture.octets(
            LeakFixture.base64(String(decoding: text, as: UTF8.self), lines: 76))
        func verdict(_ kind: StretchMap.Kind, _ count: Int) -> LeakCheck.Verdict {
            var map = StretchMap()
            map.append(
                count, .text(StretchMap.Form(), [StretchMap.Stretch(end: count, kind: kind)]))
            return LeakFixture.verdict([Part(octets: encoded, content: .message(.base64, map))])
        }
        #expect(verdict(.typed, text.count) == .leak("message body"))
        #expect(verdict(.neutral, text.count) == .neutral("message body"))
        #expect(verdict(.made, text.count) == .clean)
        #expect(verdict(.made, text.count - 1) == .uncovered("message body"))
    }

    // MARK: Kinds

    @Test func madeAndPictures_areNotRead() {
        let inbox = "jane.k77x@home.example"
        #expect(LeakFixture.verdict([.text([(inbox, .made)])]) == .clean)
        #expect(
            LeakFixture.verdict([Part(octets: LeakFixture.octets(inbox), content: .picture)])
                == .clean)
        #expect(
            LeakFixture.verdict([
                .text([("write to ", .typed), (inbox, .made), (" please", .typed)])
            ]) == .clean)
    }

    @Test func stretches_areReadAlone() {
        #expect(
            LeakFixture.verdict([
                .text([("jane.k77x@", .typed), ("home", .made), (".example", .typed)])
            ]) == .clean)
        #expect(
            LeakFixture.verdict([.text([("jane.k77x@", .typed), ("home.example", .neutral)])])
                == .clean)
        #expect(
            LeakFixture.verdict([
                .text([("xjane.k77x@", .typed)]), .text([("home.example", .typed)]),
            ]) == .clean)
        // The end of a stretch is the end of its text.
        #expect(
            LeakFixture.verdict([.text([("jane.k77x@home.example", .typed), (".org", .neutral)])])
                == .leak("message body"))
        #expect(
            LeakFixture.verdict([.text([("x", .neutral), ("jane.k77x@home.example", .typed)])])
                == .leak("message body"))
    }

    @Test func base64_acrossStretches_isNotJoined() {
        let run = LeakFixture.base64("Contact: jane.k77x@home.example!")
        let half = run.utf8.count / 2
        let (first, second) = (
            String(decoding: run.utf8.dropLast(half), as: UTF8.self),
            String(decoding: run.utf8.suffix(half), as: UTF8.self)
        )
        #expect(
            LeakFixture.verdict([.text([(first, .typed), ("-", .made), (second, .typed)])])
                == .clean)
        #expect(
            LeakFixture.verdict([.text([(first + second, .typed)])]) == .encoded("message body"))
    }

    @Test(arguments: [
        "someone.else@other.example", "Anna <anna@mail.test> wrote:", "mailto:a.b@c.example.org",
        "x (at) provider.com",
        "anna%40other.example", "anna&#64;other.example", "an&shy;na@other.example",
        "jane.k88x@localhost",
        "otherone@relay.example", "\u{FF41}nna\u{FF20}other.example", "anna\\u0040other.example",
        "anna=40other.example",
    ])
    func neutral_anyAddress_isALeak(_ text: String) {
        #expect(LeakFixture.neutral(text, isMarkup: true) == .neutral("message body"))
    }

    @Test func neutral_addressInBase64_isALeak() {
        #expect(
            LeakFixture.neutral("id=\(LeakFixture.base64("user=anna@other.example"))")
                == .neutral("message body"))
        #expect(
            LeakFixture.neutral("id=\(LeakFixture.hexadecimal("user=anna@other.example"))")
                == .neutral("message body"))
    }

    @Test(arguments: [
        "On 3 May [address] wrote:\r\n> hello", "see https://juice.example/",
        "first (a) one, then [a] two",
        "ref:_00D123.456:ref", "##- Please type your reply above -##",
        "price: 3 @ 4.50", "src=\"cid:image001.png@01D9ABCD.12345678\"", "@media screen",
        "jane.k77x", "C:\\Users\\jane.k77x",
        "lodash@4.17.21", "\(LeakFixture.relayAddress) wrote", "a = b.com", "x at y", "me@", "@you",
        "[JIRA] (ABC-1)",
        "{ticket:12@}",
    ])
    func neutral_withoutAddress_isClean(_ text: String) {
        #expect(LeakFixture.neutral(text) == .clean)
    }

    @Test func holdsAddress_ofAnyone_isTrue() {
        let check = LeakCheck(LeakFixture.names)
        func holds(_ text: String) -> Bool {
            check.holdsAddress(
                LeakFixture.octets(text)[...], isMarkup: false,
                work: WorkBudget(octets: text.utf8.count))
        }
        #expect(holds("Anna <anna@other.example> wrote:"))
        #expect(holds("jane.k77x@home.example"))
        #expect(!holds("[address] wrote:"))
        #expect(!holds("to \(LeakFixture.relayAddress)"))
    }

    @Test func typed_relayAddressOfAnother_isALeak() {
        #expect(LeakFixture.typed("at bank I am abcdefgh23@relay.example") == .leak("message body"))
        #expect(LeakFixture.typed("I am \(LeakFixture.relayAddress)") == .clean)
        #expect(LeakFixture.typed("I am postmaster@sub.relay.example") == .clean)
    }

    @Test func token_withoutDomain_isALeak() {
        #expect(LeakFixture.typed("write to ab.zq7abcdef") == .leak("message body"))
        #expect(LeakFixture.typed("zq7") == .clean)
    }

    // MARK: Bounds

    private static func addresses(_ count: Int) -> String {
        (0..<count).map { "p\($0)@other\($0).example" }.joined(separator: ", ")
    }

    @Test func typed_moreThanFourUnseenAddresses_areRefused() {
        #expect(LeakFixture.typed(Self.addresses(4)) == .clean)
        #expect(LeakFixture.typed(Self.addresses(5)) == .tooMany)
        #expect(LeakFixture.typed(Self.addresses(4) + " " + Self.addresses(4)) == .clean)
        let parts = (0..<5).map { Part.text([("p\($0)@other.example", .typed)]) }
        #expect(LeakFixture.verdict(parts) == .tooMany)
    }

    @Test func typed_addressesThatTheRewritingSaw_doNotCount() {
        var names = LeakFixture.names
        names.seenAddresses = Set((0..<3).map { LeakFixture.octets("p\($0)@other\($0).example") })
        #expect(LeakFixture.typed(Self.addresses(7), names: names) == .clean)
        #expect(LeakFixture.typed(Self.addresses(8), names: names) == .tooMany)
    }

    @Test func typed_ownRelayAddress_doesNotCount() {
        #expect(LeakFixture.typed(Self.addresses(4) + " " + LeakFixture.relayAddress) == .clean)
    }

    private static func words(_ count: Int) -> String {
        (0..<count).map { "word\($0)x" }.joined(separator: " ")
    }

    @Test func typed_bareLocalPart_isLookedForAmongFewWords() {
        #expect(LeakFixture.typed("my name there is jane.k77x") == .leak("typed text"))
        #expect(LeakFixture.typed(Self.words(15) + " jane.k77x") == .leak("typed text"))
        #expect(LeakFixture.typed(Self.words(16) + " jane.k77x") == .clean)
        // An address is still searched for.
        #expect(
            LeakFixture.typed(Self.words(40) + " jane.k77x@home.example") == .leak("message body"))
    }

    @Test func typed_bareLocalPart_isLookedForOnlyWhereTheRewritingLooks() {
        var names = LeakFixture.names
        names.looksForWords = false
        #expect(LeakFixture.typed("my name there is jane.k77x", names: names) == .clean)
        #expect(LeakFixture.typed("jane.k77x@home.example", names: names) == .leak("message body"))
    }

    @Test func file_holdingTheInbox_isNamed() {
        #expect(LeakFixture.file("\u{1}\u{2}jane.k77x@home.example\u{0}") == .file(7))
        #expect(LeakFixture.file("\u{1}\u{2}" + Self.addresses(50)) == .clean)
        let encoded = LeakFixture.octets(
            LeakFixture.base64("\u{0}\u{1}jane.k77x@home.example", lines: 76))
        #expect(LeakFixture.verdict([.file(encoded, .base64)]) == .file(7))
    }

    @Test func spentBudget_isNoProof() {
        let part = Part.text([(String(repeating: "jane k77x at home ", count: 1_000), .typed)])
        #expect(LeakFixture.verdict([part], work: WorkBudget(limit: 1_000)) == .tooMuchWork)
    }
}
