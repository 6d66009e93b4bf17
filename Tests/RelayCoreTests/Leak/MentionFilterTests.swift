// The quick look at a forward says no only of texts in which the rewriting finds no mention, however it is written.

import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct MentionFilterTests {
    private static let engine = Fixture(evidence: .init()).engine
    private static let inboxes = [
        "anna@inbox.example", "jane.k77x@home.example", "max.m4yer@gmail.com", "q@b.example", "ole@xn--mller-kva.example",
    ]

    private static func rewriter(_ inbox: String, _ collector: MentionCollector) -> TextRewriter {
        TextRewriter(
            names: ReplyNames(
                engine: engine, account: Fixture.account(1, "annarelay2", team: "app.example", inboxes: [inbox]),
                message: HeaderSection(),
                envelopeSender: "", stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens)
            ).judged(by: collector))
    }

    private static func filter(_ inbox: String) -> MentionFilter {
        MentionFilter(inboxes: [AddrSpec(envelope: inbox)].compactMap { $0 }, providers: engine.settings.providers) {
            engine.settings.relayDomains.map(NameIndex.octets) + engine.tokens.forms(account: Fixture.anna.number).map(\.anchor)
        }
    }

    /// One octet of an address in one of the ways in which programs write it, or as a reader may still come to read it.
    private static func written(_ octet: UInt8, _ way: Int, _ random: inout SeededRandom) -> String {
        let hex = (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: Bool.random(using: &random))
        let plain = String(UnicodeScalar(octet))
        switch way {
        case 0: return plain
        case 1: return "%" + hex
        case 2: return "=" + hex
        case 3: return "+" + hex
        case 4: return "&#\(octet);"
        case 5: return "&#x\(hex);"
        case 6: return "\\x" + hex
        case 7: return "\\u00" + hex
        case 8: return "%25" + hex
        case 9: return "&amp;#\(octet);"
        case 10: return plain.uppercased()
        case 11: return plain + "\u{200B}"
        case 12:
            return plain + ["\r\n", " ", "=\r\n", "\r\n> > ", "&shy;", "&nbsp;", "%20", "=20"].randomElement(using: &random)!
        case 13: return plain + ["<wbr>", "</b>", "<span class=\"a%40\">", "<!-- x -->"].randomElement(using: &random)!
        default: return octet > 0x20 ? String(UnicodeScalar(0xFEE0 + UInt32(octet))!) : plain
        }
    }

    private static func mention(_ inbox: String, _ random: inout SeededRandom) -> String {
        let at = inbox.firstIndex(of: "@")!
        let (local, domain) = (String(inbox[..<at]), String(inbox[at...].dropFirst()))
        let form = [
            inbox, local, "\(domain)=\(local)", "\(local)=\(domain)", "\(local)+tag@\(domain)", "\(local) (at) \(domain)",
            "m.axm4y.er@gmail.com",
            local + " and " + domain, "x" + inbox, domain,
        ].randomElement(using: &random)!
        // One way for most of it, others here and there.
        let way = Int.random(in: 0...14, using: &random)
        let often = Int.random(in: 0...6, using: &random)
        var text = ""
        for octet in form.utf8 {
            var chosen = Int.random(in: 0...9, using: &random) == 0 ? Int.random(in: 0...14, using: &random) : 0
            if Int.random(in: 0...6, using: &random) < often { chosen = way }
            text += written(octet, chosen, &random)
        }
        return text
    }

    private static let around = [
        "Dear reader, ", "<p class=\"x\">", "</p>\r\n", "https://app.example/?id=61&x=%2Fa%20b ", "&nbsp;", "+49 30 61 62 ",
        "=3D=\r\n", " < 5 ", "a=b ", "\r\n",
        "\u{200B}\u{E9}", "\\u", "&amp;", "<a href=\"", "\">", "QWxsZXMgR3V0ZSB6dW0gR2VidXJ0c3RhZw==", "anna ", "gmail.com ", "%",
        "=", "&", "<",
    ]

    @Test(arguments: 1...20)
    func whatTheRewritingFindsIsWorthALook(seed: UInt64) {
        var random = SeededRandom("filter \(seed)".utf8)
        var found = 0
        for _ in 0..<200 {
            let inbox = Self.inboxes.randomElement(using: &random)!
            func some() -> String {
                (0..<Int.random(in: 0...4, using: &random)).map { _ in Self.around.randomElement(using: &random)! }.joined()
            }
            var text = some() + Self.mention(inbox, &random) + some()
            for _ in 0..<Int.random(in: 0...2, using: &random) where Int.random(in: 0...2, using: &random) == 0 {
                text = some() + String(decoding: Base64.encodeUnbroken(Array(text.utf8)), as: UTF8.self) + some()
            }
            let isMarkup = Bool.random(using: &random)
            let collector = MentionCollector()
            _ = Self.rewriter(inbox, collector).edits(Array(text.utf8), syntax: isMarkup ? .markup : .plain, place: .quoted)
            guard !collector.all.isEmpty else { continue }
            found += 1
            #expect(Self.filter(inbox).mayMention(Array(text.utf8), isMarkup: isMarkup), "\(seed): \(text.utf8.count) octets")
        }
        #expect(found > 20)
    }

    /// Otherwise it would save nothing.
    @Test(arguments: ["anna@inbox.example", "jane.k77x@home.example", "max.m4yer@gmail.com"])
    func ordinaryTextIsNotWorthALook(inbox: String) {
        let texts = [
            "Dear Anna, your order 4711 has been sent. See https://app.example/track?id=61AF20&u=%2Fhome%3Fa for details.\r\n",
            "<html><body style=\"color:#61616e;width=60\"><p>Hello&nbsp;Anna &ndash; it&#8217;s 20% off</p><a href=\"https://x.example/QWxsZXMgR3V0ZSB6dW0gR2VidXJ0c3RhZw\">\u{E9}\u{2014}</a>",
            "-- \r\n+49 30 616263, Inbox 5, example.com, mail@app.example\r\n",
        ]
        for text in texts { #expect(!Self.filter(inbox).mayMention(Array(text.utf8), isMarkup: text.hasPrefix("<")), "\(text)") }
    }

    @Test func inboxesThatCannotBeToldByTheirEndsAreAlwaysWorthALook() {
        for inbox in ["q@b.c", "ole@xn--mller-kva.example"] {
            #expect(Self.filter(inbox).mayMention(Array("Nothing".utf8), isMarkup: false))
        }
        #expect(
            !MentionFilter(inboxes: [], providers: Self.engine.settings.providers) { [] }.mayMention(
                Array("Nothing".utf8), isMarkup: false))
    }
}
