// Quoted and programs' text in the form for the team: without addresses, links and paths of anyone,
// and otherwise unchanged.

import Foundation
import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct NeutraliserTests {
    // MARK: Addresses

    @Test(arguments: [
        ("Hello jane.k77x@home.example, hi", "Hello [address], hi"),
        ("<jane.k77x@home.example>", "<[address]>"),
        ("_jane.k77x@home.example_", "_[address]_"),
        ("jane.k77x@home.exampleTel.: 49", "[address]Tel.: 49"),
        ("jane.k77x%40home.example", "%5Baddress%5D"), ("jane.k77x (at) home.example", "[address]"),
        ("jane.k77x at home.example", "[address]"),
        ("we meet at home.example", "we meet at home.example"),
        ("x jane.k77x=home.example@list.example", "x [address]"),
        ("jane.k77x=home.example", "[address]"),
        ("?url=home.example", "?url=home.example"), ("jane@localhost", "[address]"),
        ("=?utf-8?b?amFuZS5rNzd4QGhvbWUuZXhhbXBsZQ==?=", "=?utf-8?b?W2FkZHJlc3Nd?="),
        ("19#jane.k77x@home.example7ded9217", "19#[address]7ded9217"),
        ("6a616e652e6b37377840686f6d652e6578616d706c65", "[address]"),
        ("jane.k77x@home.example and joe.b@other.example", "[address] and [address]"),
        ("image001.png@01D9ABCD.12345678", "image001.png@01D9ABCD.12345678"),
        ("cid:a1@home.example", "cid:a1@home.example"),
        (
            "My address is jane.k77x@home.example, or k77x.jane42@gmail.com.\r\nk77x%2Ejane42%40gmail%2Ecom it is",
            "My address is [address], or [address].\r\n%5Baddress%5D it is"
        ),
    ])
    func anAddress_ofAnyone_isReplaced(text: String, expected: String) {
        #expect(Neutral.text(text) == expected)
    }

    /// The inbox and any other address of its length: nothing distinguishes them.
    @Test(arguments: [
        "G", "<G>", "mailto:G", "G, said G", "https://x.example/G", "On Friday, Jane <G> wrote:",
        "Jane (G)", "C:\\Users\\L\\x",
        "L", "L=D@x.example",
        "x_L_D_y", "G\r\n> G", "\"L\"@D", "L at D", "G7ded9217",
    ])
    func rightAndWrongGuess_inEveryPlace_giveTheSame(frame: String) {
        for standing in [Standing.quoted, .attribution, .program] {
            for syntax in [TextSyntax.plain, .markup] {
                func text(_ local: String, _ domain: String) -> [UInt8] {
                    let text = frame.replacing("G", with: local + "@" + domain).replacing(
                        "L", with: local
                    ).replacing(
                        "D", with: domain)
                    let octets = Array(text.utf8)
                    let names = Neutral.names()
                    let out =
                        Neutraliser(names: names).rewrite(octets, syntax: syntax, as: standing)
                        ?? octets
                    return Array(
                        String(decoding: out, as: UTF8.self).replacing(local, with: "L").replacing(
                            domain, with: "D"
                        ).utf8)
                }
                #expect(
                    text("jane.k77x", "home.example") == text("jane.k78x", "homf.example"),
                    "\(frame)")
            }
        }
    }

    @Test func base64_withAnAddress_isWrittenAnew() throws {
        let inner = "{\"user\":\"jane.k77x@home.example\",\"order\":12}"
        let text = Neutral.text(
            "see " + String(decoding: Base64.encodeUnbroken(Array(inner.utf8)), as: UTF8.self)
                + " there")
        let run = try #require(text.split(separator: " ").dropFirst().first)
        #expect(
            String(decoding: Base64.decode(Array(run.utf8)[...]).bytes, as: UTF8.self)
                == "{\"user\":\"[address]\",\"order\":12}")
    }

    // MARK: The relay's own addresses

    @Test func relayAddressAndReverseAddress_ofTheAccount_stand() {
        let reverse = Neutral.reverse()
        #expect(Neutral.text("to annarelay2@relay.example.") == "to annarelay2@relay.example.")
        #expect(Neutral.text("to \(reverse)@relay.example.") == "to billing@app.example.")
        #expect(
            Neutral.text("mailto:\(reverse.replacing("=", with: "%3D"))%40relay.example")
                == "mailto:billing%40app.example")
        #expect(Neutral.text("token \(reverse) alone") == "token billing@app.example alone")
    }

    /// An address of the relay that is not this account's would link the user to another team.
    @Test func addressAtTheRelay_ofAnyoneElse_isReplaced() {
        for local in [
            "bobrelay22", "annaother2", "postmaster", "5d5mfp4h5v", Neutral.reverse(Fixture.bob),
        ] {
            #expect(Neutral.text("to \(local)@relay.example now") == "to [address] now", "\(local)")
        }
        #expect(
            Neutral.text("token \(Neutral.reverse(Fixture.bob)) alone") == "token [address] alone")
    }

    // MARK: Links and paths

    @Test(arguments: [
        ("see https://www.x.example/a/jane?u=1#f.", "see https://www.x.example/."),
        ("https://x.example", "https://x.example"),
        ("https://x.example?u=jane", "https://x.example"),
        ("(https://x.example/a)", "(https://x.example/)"),
        ("https://jane:pw@x.example:8080/a", "https://x.example:8080/"),
        ("www.x.example/jane", "www.x.example/"),
        ("https://app.example/t/12?u=1", "https://app.example/t/12?u=1"),
        (
            "https://app.example/t?mail=jane.k77x@home.example&v=1",
            "https://app.example/t?mail=%5Baddress%5D&v=1"
        ),
        (
            "https://app.example/t?mail=jane.k77x%40home.example&v=1",
            "https://app.example/t?mail=%5Baddress%5D&v=1"
        ),
        (
            "https://a.app.example/x https://notapp.example/x",
            "https://a.app.example/x https://notapp.example/"
        ),
        ("mailto:jane@home.example?subject=x&body=y", "mailto:[address]"),
        ("tel:+49301234", "tel:+49301234"),
        ("javascript:alert(1)", "javascript:"),
        ("{\"u\":\"https:\\/\\/x.example\\/jane\"}", "{\"u\":\"https:\\/\\/x.example\\/\"}"),
        ("in C:\\Users\\jane.k77x\\My Files\\clip.xml now", "in [path] now"),
        ("\"C:/Users/jane k/x.pdf\"", "\"[path]\""),
        ("\\\\server\\share\\x", "[path]"),
        ("/home/jane.k77x/a.txt and /Users/jane/b", "[path] and [path]"),
        ("file:///C:/Users/jane/x", "[path]"), ("and/or ~ a/b", "and/or ~ a/b"),
        ("a: b, Re: c, 10:15", "a: b, Re: c, 10:15"),
    ])
    func linksAndPaths_loseWhatNamesAReader(text: String, expected: String) {
        #expect(Neutral.text(text) == expected)
    }

    @Test(arguments: [
        ("<a href=\"https://x.example/a?b=c&amp;d\">x</a>", "<a href=\"https://x.example/\">x</a>"),
        ("<img src='cid:a1@home.example'>", "<img src='cid:a1@home.example'>"),
        (
            "<a href=\"mailto:jane@home.example?body=x\">jane@home.example</a>",
            "<a href=\"mailto:[address]\">[address]</a>"
        ),
        ("jane.k77x<wbr>@home.example", "[address]<wbr>"),
        ("jane.k77x&#64;home.example", "[address]"),
        ("<td>jane@home.example</td><td>next</td>", "<td>[address]</td><td>next</td>"),
        ("https&colon;//x.example/a", "https&colon;//x.example/"),
        ("<a href=https://x.example/a>b</a>", "<a href=https://x.example/>b</a>"),
        (
            "<img src=\"data:image/png;base64,iVBORw0KGgo=\">",
            "<img src=\"data:image/png;base64,iVBORw0KGgo=\">"
        ),
        ("<a href=\"data:text/html,x\">", "<a href=\"data:,\">"),
    ])
    func markup_keepsItsElements(text: String, expected: String) {
        #expect(Neutral.text(text, syntax: .markup) == expected)
    }

    // MARK: Attributions

    @Test(arguments: [
        (
            "On Fri, Nov 21, 2025 at 10:15 AM Jane Berg <jane@home.example> wrote:",
            "On Fri, Nov 21, 2025 at 10:15 AM <[address]> wrote:"
        ),
        ("From: \"Berg, Jane\" <jane@home.example>", "From: <[address]>"),
        ("Am 21.11.2025 um 10:15 schrieb Jane:", "Am 21.11.2025 um 10:15 schrieb Jane:"),
        ("Von: Jane Berg [mailto:jane@home.example]", "Von: [mailto:[address]]"),
    ])
    func attribution_losesTheNameWithTheAddress(text: String, expected: String) {
        let shown = Neutral.text(text, as: .attribution)
        #expect(shown == expected)
    }

    @Test func attribution_ofAReverseAddress_keepsTheName() {
        let text = "On Fri, 21 Nov 2025, Billing Team <\(Neutral.reverse())@relay.example> wrote:"
        #expect(
            Neutral.text(text, as: .attribution)
                == "On Fri, 21 Nov 2025, Billing Team <billing@app.example> wrote:")
        let html =
            "On Fri, Billing &lt;<a href=\"mailto:\(Neutral.reverse())@relay.example\">\(Neutral.reverse())@relay.example</a>&gt; wrote:"
        #expect(
            Neutral.text(html, syntax: .markup, as: .attribution)
                == "On Fri, Billing &lt;<a href=\"mailto:billing@app.example\">billing@app.example</a>&gt; wrote:"
        )
        let other = Neutral.text(
            "On Fri, Jane Berg &lt;<a href=\"mailto:jane@home.example\">jane@home.example</a>&gt; wrote:",
            syntax: .markup,
            as: .attribution)
        #expect(
            !other.contains("Jane") && !other.contains("Berg")
                && other.contains("<a href=\"mailto:[address]\">[address]</a>&gt; wrote:"),
            "\(other)")
    }

    @Test func typedStretches_areNotTouched() {
        let text = Array("jane@home.example\r\n> jane@home.example".utf8)
        var stretches = Stretches(.typed)
        stretches.note(.quoted, at: 19)
        let edits = Neutraliser(names: Neutral.names()).edits(text, in: stretches)
        #expect(
            String(decoding: edits.applied(to: text), as: UTF8.self)
                == "jane@home.example\r\n> [address]")
    }

    // MARK: Help desks

    private static let desks = Folders.package.appending(path: "Tests/RelayCoreTests/Vectors/desks")

    static var deskNames: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: desks.path)) ?? []).filter {
            $0.hasSuffix(".txt")
        }.sorted()
    }

    @Test func desks_areTen() { #expect(Self.deskNames.count == 10) }

    /// Tokens, marks and links by which a help desk recognises the ticket return unchanged, in all
    /// kinds of text.
    @Test(arguments: deskNames) func desk_readsWhatItWrote(name: String) throws {
        let lines = try String(contentsOf: Self.desks.appending(path: name), encoding: .utf8).split(
            separator: "\n")
        let domain = try #require(lines.first { $0.hasPrefix("# domain: ") }?.dropFirst(10))
        let samples = lines.filter { !$0.hasPrefix("# ") }
        #expect(samples.count >= 3)
        for sample in samples {
            let text = String(sample).replacing("\\n", with: "\n")
            for standing in [Standing.quoted, .attribution, .program] {
                #expect(Neutral.text(text, as: standing, team: String(domain)) == text)
                #expect(
                    Neutral.text(text, syntax: .markup, as: standing, team: String(domain)) == text)
            }
            let quoted = "> " + text.replacing("\n", with: "\n> ")
            #expect(Neutral.text(quoted, team: String(domain)) == quoted)
        }
    }

    // MARK: Work

    /// Quadratic work on 120 kB would take minutes.
    @Test(
        .timeLimit(.minutes(2)),
        arguments: [
            "a@b.com ", "mailto:", "https://", "https://x.example/", "www.", "C:\\", "\\\\a",
            "<a href=\"", "&#58;", "=?u?q?",
            "file:", "/home/", "\"@",
            "aaaaaaaaaaaaaaaaaaaa", "61", "<b>@", "cid:", "data:", "> a@b\r\n", "Jane <a@b.com> ",
        ])
    func hostileText_isReadInLinearTime(unit: String) {
        let text = Array(String(repeating: unit, count: 120_000 / unit.utf8.count).utf8)
        let neutraliser = Neutraliser(names: Neutral.names())
        for syntax in [TextSyntax.plain, .markup] {
            let edits = neutraliser.edits(text, syntax: syntax, in: Stretches(.attribution))
            #expect(edits.allSatisfy { $0.range.upperBound <= text.count })
        }
    }
}
