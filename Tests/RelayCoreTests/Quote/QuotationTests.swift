// The quoted parts of a reply, recognised by form.

import Foundation
import InternetMessage
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct QuotationTests {
    /// The standing of each non-empty line, as one letter: t, q, a, p.
    private static func lines(_ text: String, syntax: TextSyntax = .plain) -> String {
        let octets = Array(text.utf8)
        let stretches = Quotation.stretches(of: octets, syntax: syntax)
        var letters = ""
        var start = 0
        for line in octets.split(separator: 0x0A, omittingEmptySubsequences: false) {
            defer { start += line.count + 1 }
            guard let first = line.firstIndex(where: { $0 > 0x20 }) else { continue }
            letters += letter(stretches.standing(at: start + first - line.startIndex))
        }
        return letters
    }

    private static func letter(_ standing: Standing) -> String {
        switch standing {
        case .typed: "t"
        case .quoted: "q"
        case .attribution: "a"
        case .program: "p"
        }
    }

    /// The standing of the stretch that contains a word.
    private static func standing(
        _ word: String, in text: String, syntax: TextSyntax = .markup
    ) -> Standing? {
        let octets = Array(text.utf8)
        let word = Array(word.utf8)
        return octets.indices.first { octets[$0...].starts(with: word) }.map {
            Quotation.stretches(of: octets, syntax: syntax).standing(at: $0)
        }
    }

    // MARK: Plain text

    @Test(arguments: [
        ("Hi\n\n> a\n> b\n\nBye", "tqqt"), ("Hi\nAnna> a\nJD> b\n&> c\n| d\n» e\nBye", "tqqqqqt"),
        ("a |b| c\n|x", "tt"),
        ("Hi\nOn Fri, 21 Nov 2025, Anna wrote:\n\nhello\n-- \nx", "taqqq"),
        ("Hi\nAm 21.11.25 um 10:15 schrieb Anna:\nhello", "taq"),
        ("Hi\nLe ven. 21 nov. 2025, Anna <a@b.example>\na écrit :\n\nx", "taaq"),
        ("Hi\n在 2025年11月21日，Anna 写道：\nx", "taq"),
        ("Hi\n2025年11月21日(金) 10:15 Anna <a@b.example>:\nx", "taq"),
        ("Hi\nOn Fri, 21 Nov 2025 at 10:15, Anna <\na@b.example> wrote:\nx", "taaq"),
        ("Hi\n-----Original Message-----\nFrom: Anna\nSent: Friday\n\nx", "taaaq"),
        ("Hi\n---- On Fri Anna wrote ----\nx", "taq"),
        (
            "Hi\n________________________________\nVon: Anna <a@b.example>\nGesendet: Freitag\nAn: Jo\nBetreff: x\n\ny",
            "taaaaaq"
        ),
        ("Hi\n*From:* Anna\n\n*Sent:* Friday\n\n*To:* Jo\n\nx", "taaaq"),
        ("Hi\nDe : Anna\nEnvoyé : lundi\nx", "taaq"),
        ("Hi\n发件人：Anna\n发送时间：2025\nx", "taaq"),
        ("Hi\nBegin forwarded message:\n\nFrom: Anna\nDate: x\n\ny", "taaaq"),
        ("Hi\n---- 回复的原邮件 ----\n| 发件人 | Anna<a@b.example> |\n| 日期 | 2025 |\n\nx", "taqqq"),
        ("Hi\n[Original Message processed by david]\n\nVon Anna\n\nx", "taqq"),
        ("Hi\n>>> Anna <a@b.example> Fri, 21 Nov 2025 at 05:00 >>>\nx", "taq"),
        (
            "Hi\n> This is a line of more than seventy octets, which a program has broken, and\nthe rest of it\n\nBye",
            "tqqt"
        ),
        // Text that the user typed.
        ("[Message clipped]\nBye", "tt"),
        ("Name: Anna\nPhone: 12\nMail: a@b.example\n\nBye", "tttt"),
        ("Meeting at 10:15:\nsee you", "tt"),
        (
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: x\n\nHello\n-----END PGP SIGNATURE-----",
            "tttt"
        ),
        ("Dear team:\nhello", "tt"),
        ("I wrote:\nhello", "tt"), ("----------\nhello\n----------", "ttt"),
        ("From: Berlin\nis far", "tt"),
    ])
    func plainText_isToldApart(text: String, expected: String) {
        #expect(Self.lines(text) == expected)
    }

    @Test func brokenOffRemainders_belongToTheQuotation() {
        let long = "> " + String(repeating: "word ", count: 14)
        #expect(Self.lines("Hi\n\(long)\nrest\n> more\n\nBye") == "tqqqt")
        #expect(Self.lines("Hi\n\(long)\nrest one\nrest two\n> more\n\nBye") == "tqqqqt")
        #expect(Self.lines("Hi\n> short\nmy answer\n> more") == "tqtq")
        // Apple Mail writes this for a link with words.
        #expect(Self.lines("Hi\n> see it here\n<https://a.example/x?y=1>.\n> more") == "tqqq")
        #expect(Self.lines("Hi\n> see it here\n\n<https://a.example/>\n\n> more") == "tqtq")
        #expect(Self.lines("Hi\n\(long)\n\nmy answer\n\n> more") == "tqtq")
    }

    @Test func firstMarkedLine_readsLikeAnAttribution() {
        #expect(Self.lines("Hi\n> On Fri, 21 Nov 2025, Anna <a@b.example> wrote:\n> x") == "taq")
    }

    // MARK: Markup

    @Test(arguments: [
        "<p>Hi TYPED</p><blockquote><p>QUOTED</p></blockquote>",
        "<div dir=ltr>Hi TYPED</div><div class=\"gmail_quote gmail_quote_container\"><div>QUOTED</div></div>",
        "Hi TYPED<div class=3D\"gmail_quote\">QUOTED</div>",
        "<div>Hi TYPED</div><div id=\"divRplyFwdMsg\">From</div><div>x</div>QUOTED",
        "<div>Hi TYPED</div><hr id=\"stopSpelling\">From<div>QUOTED</div>",
        "<div>Hi TYPED</div><div id=appendonsend></div><p>QUOTED</p>",
        "<div>Hi TYPED</div><div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3pt'>From</div></div><p>QUOTED</p>",
        "<p>Hi TYPED</p><div><b>From:</b> Anna<br><b>Sent:</b> Friday<br></div><p>QUOTED</p>",
        "<div>Hi TYPED</div><div>On Fri, 21 Nov 2025, Anna &lt;<a href=\"mailto:a@b.example\">a@b.example</a>&gt; wrote:</div><p>QUOTED",
        "<div title=\"a > b\">Hi TYPED</div><blockquote title='>' type=cite>QUOTED</blockquote>",
        "<pre>Hi TYPED\n&gt; QUOTED</pre>",
        "<div>Hi TYPED</div><div class='protonmail_quote'>QUOTED</div>",
        "<div>Hi TYPED</div><div id=\"yahoo_quoted_12\" class=\"yahoo_quoted\">QUOTED</div>",
        "<div>Hi TYPED</div><div class=\"moz-cite-prefix\">Am x</div>QUOTED",
        // The team closes the container too early.
        "<p>Hi TYPED</p><blockquote><p>x</blockquote><p>QUOTED</p></blockquote>",
        "<div>Hi TYPED</div><div class=gmail_quote>x</div></div></div><p>QUOTED</p></div></div>",
        "<p>Hi TYPED</p><blockquote><div>x<p>QUOTED",
    ])
    func markup_isToldApart(text: String) {
        #expect(Self.standing("TYPED", in: text) == .typed)
        #expect(Self.standing("QUOTED", in: text) == .quoted, "\(text)")
    }

    @Test func markup_behindAContainer_isTyped() {
        #expect(
            Self.standing("TYPED", in: "<blockquote><div>x</div></blockquote><p>TYPED</p>")
                == .typed)
        #expect(Self.standing("TYPED", in: "<div class=WordSection1><p>TYPED</p></div>") == .typed)
    }

    @Test func markup_thatNoReaderSees_isTheProgramsOwn() {
        let text =
            "<!doctype html><html><head><style>STYLE</style><meta name=x content=\"META\"></head><body><p>Hi TYPED<!-- COMMENT --> MORE</p><script>SCRIPT</script></body>"
        for word in ["STYLE", "META", "COMMENT", "SCRIPT", "doctype"] {
            #expect(Self.standing(word, in: text) == .program, "\(word)")
        }
        #expect(
            Self.standing("TYPED", in: text) == .typed && Self.standing("MORE", in: text) == .typed)
        #expect(Self.standing("TEXT", in: "<p>a<!-->TEXT") == .typed)
        #expect(Self.standing("TEXT", in: "<head>TEXT<p>b") == .typed)
    }

    // MARK: Public replies

    /// The first quoted line of each public sample, as a person reads it; 0 if nothing is quoted.
    private static let expected = Folders.package.appending(
        path: "Tests/RelayCoreTests/Vectors/quotations.txt")

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func publicReplies_areToldApartAsAPersonReadsThem() throws {
        var wrong: [String] = []
        let lines = try String(contentsOf: Self.expected, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
        #expect(lines.count > 100)
        for line in lines {
            let fields = line.split(separator: " ")
            let octets = [UInt8](
                try Data(contentsOf: Folders.conformance.appending(path: "replies/\(fields[0])")))
            let stretches = Quotation.stretches(of: octets, syntax: .plain)
            var number = 0
            var found = 0
            var start = 0
            for text in octets.split(separator: 0x0A, omittingEmptySubsequences: false) {
                number += 1
                defer { start += text.count + 1 }
                guard found == 0, let first = text.firstIndex(where: { $0 > 0x20 }) else {
                    continue
                }
                if !stretches.standing(at: start + first - text.startIndex).isTyped {
                    found = number
                }
            }
            if found != Int(fields[1]) { wrong.append("\(line): \(found)") }
        }
        #expect(wrong == [], "\(wrong.joined(separator: "\n"))")
    }

    // MARK: Work

    /// Quadratic work on 150 kB would take minutes.
    @Test(
        .timeLimit(.minutes(2)),
        arguments: [
            "<blockquote>", "</blockquote>", "<div class=gmail_quote>", "<div><b>", "</div>",
            "<a b=\"", "<a b='", "<!--",
            "<!-->", "<head>", "<style>", "<pre>\n",
            "<", "&", "On x wrote:\n", "a:\n", ">", "> a\n", "\n", "From: a\n", "---\n", "a\n",
            "<p>a:", "<br>", "<i a=",
            "\"<i a=\"",
        ])
    func hostileText_isReadInLinearTime(unit: String) {
        let text = Array(String(repeating: unit, count: 150_000 / unit.utf8.count).utf8)
        for syntax in [TextSyntax.plain, .markup] {
            #expect(
                Quotation.stretches(of: text, syntax: syntax).starts.allSatisfy { $0 <= text.count }
            )
        }
    }
}
