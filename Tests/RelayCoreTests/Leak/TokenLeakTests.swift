// Tokens without their domain, glued inboxes and uuencoded data, as the last look and the search of opaque parts see them.

import InternetMessage
import MailAuth
import Testing

@testable import RelayCore

@Suite struct TokenLeakTests {
    private static let engine = Fixture(evidence: .init()).engine

    private static func names(_ client: SMTPClientIdentity? = nil) -> ReplyNames {
        ReplyNames(
            engine: engine, account: Fixture.anna, message: HeaderSection(), envelopeSender: "", client: client,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
    }

    private static func reverse(_ account: RelayAccount) -> String {
        engine.tokens.reverse(account: account.number, correspondent: AddrSpec(localPart: "billing", domain: "app.example")).localPart
    }

    private static func lastLookFinds(_ text: String) -> Bool {
        LastLook(names: names()).finds(header: HeaderSection(), body: [Array(text.utf8)[...]]) != nil
    }

    @Test func theLastLookSeesATokenWithoutItsDomain() {
        let token = Self.reverse(Fixture.anna)
        for text in [token, token.uppercased(), "xx\(token)yy", token.replacing("=", with: "%3D"), token.replacing("=", with: "=3D")] {
            #expect(Self.lastLookFinds("Hello \(text) there"), "\(text)")
        }
        #expect(Self.lastLookFinds(Self.engine.tokens.replyReturnPath(account: Fixture.anna.number, nonce: 3, expiryDay: 20_000).localPart))
    }

    @Test func tokensOfOthersAndForgedOnesAreNoneOfOurs() {
        #expect(!Self.lastLookFinds("Hello \(Self.reverse(Fixture.bob)) there"))
        #expect(!Self.lastLookFinds("Hello \(Self.reverse(Fixture.anna).replacing("billing", with: "willing")) there"))
    }

    @Test func zerosInBase64AreNoStoredToken() {
        #expect(!Self.lastLookFinds("%%xx aGAAAAAAB" + String(repeating: "A", count: 60) + " text"))
    }

    @Test func upperCaseTokensAreReplaced() {
        let text = TextRewriter(names: Self.names()).rewrite(Array("to \(Self.reverse(Fixture.anna).uppercased())!".utf8))
        #expect(text.map { String(decoding: $0, as: UTF8.self) } == "to billing@app.example!")
    }

    @Test(arguments: ["E-Mailanna.second@home.example", "3Danna.second@home.example", "u003canna.second@home.example"])
    func theLastLookSeesAGluedInbox(text: String) { #expect(Self.lastLookFinds(text)) }

    @Test func theClientsNameAndAddressAreTraces() {
        let client = SMTPClientIdentity(address: "2001:db8::17", helo: "Annas-MBP.fritz.box", mailFrom: "")
        #expect(Self.names(client).traces == ["2001:db8::17", "annas-mbp.fritz.box"])
        #expect(Self.names(SMTPClientIdentity(address: "127.0.0.1", helo: "localhost", mailFrom: "")).traces.isEmpty)
    }

    /// Whatever the lines are: no trap, and never more than the lines can stand for.
    @Test func anyLinesDecodeAsUuencode() {
        var random = SeededRandom("uuencode".utf8)
        var total = 0
        for _ in 0..<2_000 {
            var text = random.word(Int(random.next() % 200), from: " !#M`_@AZ09\n\u{7f}").utf8.map { $0 }
            if random.next() % 2 == 0 { text = Array("begin 644 a\n".utf8) + text }
            let decoded = UUEncoding.decode(text, onlyBlocks: random.next() % 2 == 0)
            total += decoded.count
            #expect(decoded.count <= text.count * 63)
        }
        #expect(total > 0)
        #expect(UUEncoding.decode(Array("#0V%T".utf8), onlyBlocks: false) == Array("Cat".utf8))
    }
}
