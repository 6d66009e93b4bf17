// Parts that cannot be rewritten, and the findings of the leak check alone.

import InternetMessage
import LeakSearch
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct UnrewritablePartTests {
    @Test func anInboxInAPicture_isRefused() throws {
        let engine = Fixture(evidence: .init()).engine
        let header = HeaderSection([
            HeaderField("From", "<anna@inbox.example>"), HeaderField("Content-Type", "image/bmp"),
            HeaderField("Content-Transfer-Encoding", "base64"),
        ])
        let rewriting = ReplyRewriting(
            engine: engine, account: Fixture.anna, header: header,
            envelopeSender: "anna@inbox.example", isAutomatic: false,
            now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        let body = Base64.encode(Array("\u{1}\u{2}\u{3}anna@inbox.example\u{4}".utf8))
        let refusal = #expect(throws: Refusal.self) { try rewriting.rewrite(body: body) }
        #expect(refusal?.reply.code == 550)
        #expect(refusal?.reply.enhanced == "5.7.7")
    }

    /// The leak check must find these without the rewriter.
    @Test(arguments: [
        "anna@inbox.example", "ANNA@INBOX.EXAMPLE", "anna&#64;inbox.example",
        "anna%40inbox.example", "anna=40inbox.example",
        "anna+40inbox.example",
        "inbox.example=anna", "anna=inbox.example", "anna+shop@inbox.example",
        "anna@inbox.\r\nexample", "anna.second",
        "YW5uYUBpbmJveC5leGFtcGxl",
        "a\u{0}n\u{0}n\u{0}a\u{0}@\u{0}i\u{0}n\u{0}b\u{0}o\u{0}x\u{0}.\u{0}e\u{0}x\u{0}a\u{0}m\u{0}p\u{0}l\u{0}e\u{0}",
    ])
    func part_unrewritableWithInbox_isFound(form: String) {
        let engine = Fixture(evidence: .init()).engine
        let names = ReplyNames(
            engine: engine, account: Fixture.anna, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        let body = Array("Hello \(form) there".utf8)
        // A local part alone counts after all of the typed text was read. base64 is the user's own
        // text.
        let places = ("message body", "header field Subject")
        let (inBody, inField): (LeakCheck.Verdict, LeakCheck.Verdict) =
            switch form {
            case "anna.second": (.leak("typed text"), .leak("typed text"))
            case "YW5uYUBpbmJveC5leGFtcGxl": (.encoded(places.0), .encoded(places.1))
            default: (.leak(places.0), .leak(places.1))
            }
        #expect(TypedLeak.verdict(of: names, [body[...]]) == inBody)
        #expect(TypedLeak.verdict(of: names, field: Array(form.utf8)) == inField)
        // In any number of pieces.
        let pieces = body.indices.map { body[$0...$0] }
        #expect(TypedLeak.verdict(of: names, pieces) == inBody)
    }

    @Test(arguments: [
        "joanna@inbox.example", "jo.anna@inbox.example", "anna@inbox.example.org",
        "anna@notinbox.example", "Hanna at work",
    ])
    func leakCheck_similarAddress_isClean(form: String) {
        let engine = Fixture(evidence: .init()).engine
        let names = ReplyNames(
            engine: engine, account: Fixture.anna, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        #expect(
            TypedLeak.verdict(of: names, field: Array(form.utf8), [Array(form.utf8)[...]]) == .clean
        )
    }
}
