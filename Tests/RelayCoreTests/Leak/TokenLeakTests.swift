// Tokens without their domain, joined inboxes and uuencoded data, as seen by the leak check and the
// search of opaque parts.

import InternetMessage
import LeakSearch
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct TokenLeakTests {
    private static let engine = Fixture(evidence: .init()).engine

    private static func names() -> ReplyNames {
        ReplyNames(
            engine: engine, account: Fixture.anna, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
    }

    private static func reverse(_ account: RelayAccount) -> String {
        engine.tokens.reverse(
            account: account.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example")
        )
        .localPart
    }

    private static func leakCheckFinds(_ text: String) -> Bool {
        TypedLeak.isFound(Array(text.utf8), of: names())
    }

    @Test func leakCheck_tokenWithoutItsDomain_findsIt() {
        let token = Self.reverse(Fixture.anna)
        for text in [
            token, token.uppercased(), "xx\(token)yy", token.replacing("=", with: "%3D"),
            token.replacing("=", with: "=3D"),
        ] {
            #expect(Self.leakCheckFinds("Hello \(text) there"), "\(text)")
        }
    }

    /// It shows nothing of account and sender. But as a word, or with its domain, a reader would
    /// take it for an address.
    @Test(arguments: [Fixture.anna, Fixture.bob])
    func returnPath_inText_isReplaced(_ account: RelayAccount) throws {
        let long = AddrSpec(localPart: String(repeating: "b", count: 64), domain: "app.example")
        let token = Self.engine.tokens.forwardReturnPath(
            account: account.number, sender: long, nonce: 9, expiryDay: 20_000
        ).localPart
        for text in [token, token.uppercased(), "<\(token)>", "\(token)@relay.example"] {
            let said = try #require(
                TextRewriter(names: Self.names()).rewrite(Array("to \(text), as said".utf8)))
            #expect(
                OctetSearch.find(String(token.suffix(20)), in: said.map(\.asciiLowercased)) == nil,
                "\(text)")
        }
    }

    @Test func leakCheck_foreignOrForgedToken_findsNothing() {
        #expect(!Self.leakCheckFinds("Hello \(Self.reverse(Fixture.bob)) there"))
        #expect(
            !Self.leakCheckFinds(
                "Hello \(Self.reverse(Fixture.anna).replacing("billing", with: "willing")) there"))
    }

    @Test func storedToken_withinBase64_isChance() {
        // Key id, letter and number of anna's account, as in her tokens.
        #expect(
            !Self.leakCheckFinds("%%xx aY6TUOZGB" + String(repeating: "A", count: 60) + " text"))
    }

    /// Tokens of anna's account that an engine made before its key was retired, by name.
    private static let retired: [(name: String, local: String)] = {
        let mint = TokenMint(
            keys: TokenKeys(
                keys: [UInt8(ascii: "z"): Array(repeating: 9, count: 32)], active: UInt8(ascii: "z")
            )!)
        let (anna, short) = (
            Fixture.anna.number, AddrSpec(localPart: "billing", domain: "app.example")
        )
        let long = AddrSpec(localPart: String(repeating: "b", count: 64), domain: "app.example")
        return [
            ("reverse", mint.reverse(account: anna, correspondent: short).localPart),
            ("stored reverse", mint.reverse(account: anna, correspondent: long).localPart),
            (
                "return path",
                mint.forwardReturnPath(account: anna, sender: short, nonce: 9, expiryDay: 20_000)
                    .localPart
            ),
            (
                "stored return path",
                mint.forwardReturnPath(account: anna, sender: long, nonce: 9, expiryDay: 20_000)
                    .localPart
            ),
            (
                "silent return path",
                mint.forwardReturnPath(account: anna, sender: nil, nonce: 9, expiryDay: 20_000)
                    .localPart
            ),
            (
                "return path of a reply",
                mint.replyReturnPath(
                    account: anna, recipients: [short], nonce: 9, expiryDay: 20_000
                ).localPart
            ),
        ]
    }()

    /// Their code can no longer be checked, but a reader still sees a token. Without its domain, a
    /// token is found only by the account's number, which only its key can read.
    @Test(arguments: retired.indices)
    func token_underARetiredKey_isReplaced(number: Int) throws {
        let (name, token) = Self.retired[number]
        for text in [
            "to \(token)@relay.example.", "to <\(token.uppercased())@relay.example>",
            "to \(token)%40relay.example",
        ] {
            let said = try #require(
                TextRewriter(names: Self.names()).rewrite(Array(text.utf8)),
                "\(name): \(text) stays")
            #expect(
                OctetSearch.find(String(token.suffix(20)), in: said.map(\.asciiLowercased)) == nil,
                "\(name): \(text)")
        }
    }

    /// Otherwise two teams could find out that they have the same user.
    @Test func relayAddress_ofAnotherAccount_isReplacedWhereItWasTyped() {
        let others =
            "bobrelay22@relay.example, \(Self.reverse(Fixture.bob))@relay.example or \(Self.reverse(Fixture.bob))"
        let text =
            "Is \(others), or annarelay2@relay.example, the customer you mean? See team at relay.example."
        #expect(
            TextRewriter(names: Self.names()).rewrite(Array(text.utf8)).map {
                String(decoding: $0, as: UTF8.self)
            }
                == "Is [address], [address] or [address], or annarelay2@relay.example, the customer you mean? See team at relay.example."
        )
    }

    /// A team that puts a token, or its guess of the inbox, into an id of its own must not cause an
    /// incident. It cannot know a token, and a guess returns unchanged, right or wrong.
    @Test func messageID_ofTheTeam_staysUnlessItHoldsAToken() throws {
        let token = Self.reverse(Fixture.anna)
        let ids = [
            "\(token)@esp.example", "7=anna@inbox.example@esp.example",
            "7=anna=inbox.example@app.example", "fine@esp.example",
            "fine@app.example",
        ]
        let witnesses = ids.map {
            String(
                decoding: Self.engine.ids.witness(
                    for: Array($0.utf8), account: Fixture.anna.number, relayDomain: "relay.example"),
                as: UTF8.self)
        }
        let header = HeaderSection([
            HeaderField("From", "<anna@inbox.example>"),
            HeaderField("References", (ids + witnesses).map { "<\($0)>" }.joined(separator: " ")),
        ])
        let rewriting = ReplyRewriting(
            engine: Self.engine, account: Fixture.anna, header: header,
            envelopeSender: "anna@inbox.example", isAutomatic: false,
            now: Fixture.now,
            hops: 1,
            stored: StoredAddresses(directory: Self.engine.directory, tokens: Self.engine.tokens))
        let outgoing = try rewriting.rewrite(body: Array("Hello\r\n".utf8))
        let references = MessageIDs.ids(
            in: try #require(outgoing.header.first("References")).rawValue
        ).map {
            String(decoding: $0, as: UTF8.self)
        }
        #expect(
            references.count == ids.count && references.dropFirst().elementsEqual(ids.dropFirst()))
        #expect(references[0].hasSuffix("@relay.example") && !references[0].contains(token))
    }

    @Test func token_inUpperCase_isReplaced() {
        let text = TextRewriter(names: Self.names()).rewrite(
            Array("to \(Self.reverse(Fixture.anna).uppercased())!".utf8))
        #expect(text.map { String(decoding: $0, as: UTF8.self) } == "to billing@app.example!")
    }

    @Test(arguments: [
        "E-Mailanna.second@home.example", "3Danna.second@home.example",
        "u003canna.second@home.example",
    ])
    func leakCheck_gluedInbox_findsIt(text: String) { #expect(Self.leakCheckFinds(text)) }

    /// Any lines: no trap, and never more octets than the lines can encode.
    @Test func uuencode_anyLines_decodesWithinBounds() {
        var random = SeededRandom("uuencode".utf8)
        var total = 0
        for _ in 0..<2_000 {
            var text = random.word(Int(random.next() % 200), from: " !#M`_@AZ09\n\u{7f}").utf8.map {
                $0
            }
            if random.next() % 2 == 0 { text = Array("begin 644 a\n".utf8) + text }
            let decoded = UUEncoding.decode(text, onlyBlocks: random.next() % 2 == 0)
            total += decoded.count
            #expect(decoded.count <= text.count * 63)
        }
        #expect(total > 0)
        #expect(UUEncoding.decode(Array("#0V%T".utf8), onlyBlocks: false) == Array("Cat".utf8))
    }
}
