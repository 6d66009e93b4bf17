// The text that a `mailto:` link of a forward puts into a new message: no body, and a subject
// without addresses.

import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct MailtoWordsTests {
    private static let words = MailtoWords(
        relayAddress: AddrSpec(localPart: "annarelay2", domain: "relay.example"))

    @Test(arguments: [
        ("off jane.k77x@home.example now", "off [address] now"),
        ("<jane@home.example>, (x@y)", "<[address]>, ([address])"),
        ("jane%40home.example jane=40home.example", "[address] [address]"),
        ("jane&#64;home.example", "[address];home.example"),
        ("jane\u{FF20}home.example.", "[address]"),
        ("=?utf-8?Q?jane=40home.example?= x", "[address] x"),
        ("annarelay2@relay.example and a@b", "annarelay2@relay.example and [address]"),
    ])
    func neutral_anyAddressButTheRelayAddress_goes(_ text: String, _ expected: String) throws {
        let new = try #require(Self.words.neutral(Array(text.utf8)))
        #expect(String(decoding: new, as: UTF8.self) == expected)
    }

    @Test(arguments: [
        "", "Unsubscribe list 4711: token.aB-9_x=", "AnnaRelay2@relay.example!",
        "=?utf-8?Q?Gr=C3=BC=C3=9Fe?=", "a at b.example",
    ])
    func neutral_nothingToTakeOut_isNil(_ text: String) {
        #expect(Self.words.neutral(Array(text.utf8)) == nil)
    }

    private static func uri(_ text: String, keepsBody: Bool = false) -> String {
        let words = MailtoWords(relayAddress: words.relayAddress, keepsBody: keepsBody)
        let new = MailtoURI(Array(text.utf8))?.mapping(words: words) {
            AddrSpec(localPart: "R", domain: $0.domain)
        }
        return String(decoding: new ?? [], as: UTF8.self)
    }

    @Test(arguments: [
        ("mailto:a@b?subject=x%20y&body=z", "mailto:R@b?subject=x%20y"),
        ("mailto:a@b?BODY=z", "mailto:R@b"),
        ("mailto:a@b?%62ody=z&amp;body=y&amp;Subject=1", "mailto:R@b?Subject=1"),
        ("mailto:a@b?subject=c%40d+e@f.%20g", "mailto:R@b?subject=%5Baddress%5D%20g"),
        (
            "mailto:a@b?x-jane=1&importance=high&in-reply-to=%3C1%40x%3E",
            "mailto:R@b?in-reply-to=%3C1%40x%3E"
        ),
        (
            "mailto:a@b?subject=annarelay2%40relay.example",
            "mailto:R@b?subject=annarelay2%40relay.example"
        ),
    ])
    func mapping_keepsRecipientsAndSubjectAlone(_ text: String, _ expected: String) {
        #expect(Self.uri(text) == expected)
    }

    /// A word that may be a guess would return as the user's own.
    @Test(arguments: [
        ("leave%20now.", "mailto:R@b?body=leave%20now.&subject=x"),
        ("leave%20c%40d", "mailto:R@b?subject=x"),
        ("jane.k77x", "mailto:R@b?subject=x"),
        ("jane%20(at)%20home%20dot%20example", "mailto:R@b?subject=x"),
        ("eyJlIjoiamFuZSJ9", "mailto:R@b?subject=x"),
    ])
    func mapping_aKeptBody_isPlainWords(_ body: String, _ expected: String) {
        #expect(Self.uri("mailto:a@b?body=\(body)&subject=x", keepsBody: true) == expected)
    }

    // MARK: In a forward

    private static let guess = "jane.k77x%40home.example"

    @Test(arguments: [
        (
            "html", #"<a href="mailto:eva@app.example?body=GUESS&amp;subject=GUESS">x</a>"#,
            #"<a href="LINK?subject=%5Baddress%5D">x</a>"#
        ),
        (
            "html", #"<a href="mailto:?body=GUESS&subject=Hi">x</a>"#,
            #"<a href="mailto:?subject=Hi">x</a>"#
        ),
        ("html", #"<a href="&#109;ailto:?&#98;ody=GUESS">x</a>"#, #"<a href="mailto:">x</a>"#),
        ("plain", "Write: <mailto:eva@app.example?body=GUESS>.", "Write: <LINK>."),
        ("plain", "mailto:share?body=GUESS", "mailto:"),
        ("plain", "mailto:share?body=x&subject=y", "mailto:share?subject=y"),
    ])
    func forward_aLinkWithWords_losesThem(_ type: String, _ text: String, _ expected: String) {
        let result = Forwarded(
            "Content-Type: text/\(type)\r\n\r\n" + text.replacing("GUESS", with: Self.guess)
                + "\r\n")
        #expect(
            result.body == expected.replacing("LINK", with: result.link("eva@app.example")) + "\r\n"
        )
    }

    @Test func forward_aLinkThatCannotBeRewritten_losesItsWordsAllTheSame() {
        // There is not enough room on the line.
        let filler = String(repeating: "y", count: 940)
        let long = Forwarded(
            "Content-Type: text/plain\r\n\r\n\(filler) mailto:eva@app.example?body=\(Self.guess)\r\n"
        )
        #expect(long.body == "\(filler) mailto:eva@app.example\r\n")
        #expect(long.decision.reasons.contains { $0.code == .linksLeft })
        // More links than are rewritten.
        let count = MailtoLinks.maximumCount + 10
        let many = Forwarded(
            "Content-Type: text/html\r\n\r\n"
                + String(
                    repeating: "<a href=\"mailto:eva@app.example?body=\(Self.guess)\">x</a>\r\n",
                    count: count))
        #expect(
            !many.body.contains("home.example")
                && many.body.ranges(of: "<a href=\"mailto:").count == count)
        #expect(
            many.decision.reasons.contains { $0.code == .linksLeft && $0.detail.hasPrefix("10 ") })
    }

    @Test func forward_aLinkInACalendar_losesItsWords() {
        let text =
            "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nURL:mailto:eva@app.example?body=\(Self.guess)\r\nCONTACT:mailto:?body=\(Self.guess)\r\n"
            + "ORGANIZER:mailto:eva@app.example?body=\(Self.guess)\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        let result = Forwarded("Content-Type: text/calendar\r\n\r\n" + text)
        #expect(result.code == "relay" && result.newBody != nil)
        #expect(!result.body.replacing("\r\n ", with: "").contains("home.example"))
    }

    private static func list(_ value: String) -> (value: String?, reasons: [String]) {
        let result = Forwarded("List-Unsubscribe: \(value)\r\n\r\nx\r\n")
        let header = result.decision.modifications.lazy.compactMap { change -> String? in
            if case .changeHeader(_, _, let value) = change {
                return String(decoding: value ?? [], as: UTF8.self)
            }
            return nil
        }
        let found = header.first { $0.contains("<mailto:") || $0.contains("<https:") }
        return (
            found?.replacing(result.link("off@app.example"), with: "LINK").replacing(
                "\r\n", with: ""),
            result.decision.reasons.filter { $0.code == .listMailto }.map(\.detail)
        )
    }

    @Test func forward_listUnsubscribeWithABody_isLeftOutBesideHTTPS() {
        let both = Self.list("<mailto:off@app.example?body=\(Self.guess)>, <https://app.example/u>")
        #expect(both.value == " <https://app.example/u>", "\(both)")
        #expect(both.reasons.count == 1 && both.reasons.first?.contains("left out") == true)
        let alone = Self.list(
            "<mailto:off@app.example?subject=off%20\(Self.guess)&body=leave%20\(Self.guess)>")
        #expect(alone.value == " <LINK?subject=off%20%5Baddress%5D>", "\(alone)")
        #expect(
            alone.reasons.count == 1
                && alone.reasons.first?.contains("kept as plain words alone") == true)
        let plain = Self.list("<mailto:off@app.example?subject=off-4711>, <https://app.example/u>")
        #expect(
            plain.value == " <LINK?subject=off-4711>, <https://app.example/u>"
                && plain.reasons.isEmpty, "\(plain)")
    }
}
