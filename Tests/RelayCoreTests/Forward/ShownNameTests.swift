// Names in a forward: one short line, which cannot contain an address or an attribution.

import InternetMessage
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ShownNameTests {
    @Test(arguments: [
        ("Eva Example", "Eva Example"), ("  Eva \t Example ", "Eva Example"),
        ("Eva\r\n wrote:\r\n> x", "Eva wrote x"),
        ("On Monday <eva@app.example> wrote:", "On Monday wrote"),
        ("x a\u{FF20}b\u{FF1A}\u{FE64}c\u{203A}", "x c"), ("Eva<eva@app.example>", "Eva"),
        ("\u{202E}Eva\u{200B}", "Eva"),
        ("Zo\u{EB} \u{1F469}\u{200D}\u{1F4BB}", "Zo\u{EB} \u{1F469}\u{200D}\u{1F4BB}"),
        ("Ann\u{2028}Lee", "Ann Lee"),
    ])
    func shown_oneLineWithoutSigns(_ name: String, _ expected: String) {
        #expect(
            ShownName.shown(name)?.utf8.elementsEqual(expected.utf8) == true,
            "\(ShownName.shown(name) ?? "nil")")
    }

    @Test(arguments: ["", " ", ":", "<@>", "eva@app.example", "\u{200B}\r\n"])
    func shown_nothingLeft_isNil(_ name: String) { #expect(ShownName.shown(name) == nil) }

    @Test func shown_aLongName_isCutAt64Scalars() throws {
        #expect(ShownName.shown(String(repeating: "x", count: 64))?.utf8.count == 64)
        #expect(ShownName.shown(String(repeating: "x", count: 65))?.utf8.count == 64)
        #expect(ShownName.shown(String(repeating: "x", count: 63) + " y")?.utf8.count == 63)
        // A letter is removed together with its mark.
        let marked = try #require(ShownName.shown(String(repeating: "x", count: 63) + "e\u{301}y"))
        #expect(marked.unicodeScalars.count == 63 && marked.unicodeScalars.last == "x")
        for length in [1_000, 100_000] {
            let name = try #require(ShownName.shown(String(repeating: "e\u{301}", count: length)))
            #expect(name.unicodeScalars.count <= 64)
        }
    }

    @Test func shown_whatIsShown_staysAsItIs() throws {
        for name in [
            "Eva", "O'Brien, \"Pat\" (Dr.)", "\u{5D9}\u{5B8}\u{5E2}\u{5B5}\u{5DC}", "a;b,c|d",
        ] {
            let shown = try #require(ShownName.shown(name))
            #expect(ShownName.shown(shown)?.utf8.elementsEqual(shown.utf8) == true)
        }
    }

    @Test func madeUp_aLongAddress_showsTheEndOfItsDomain() {
        let address = AddrSpec(
            localPart: String(repeating: "l", count: 60),
            domain: "paypal.example." + String(repeating: "d", count: 50) + ".evil.example")
        let name = ShownName.madeUp(address)
        #expect(
            name.hasPrefix("lll") && name.hasSuffix(".evil.example")
                && name.unicodeScalars.count <= 64)
        #expect(
            ShownName.madeUp(AddrSpec(localPart: "eva", domain: "app.example"))
                == "eva at app.example")
    }

    @Test(arguments: [
        ("Eva <eva@app.example>", true), ("\"Eva, Dr.\" <eva@app.example>", true),
        ("eva@app.example (Eva)", true),
        ("a@b.example, Eva <eva@app.example>", true), ("Team: eva@app.example;", true),
        ("\"Eva: x\" <eva@app.example>", false), ("=?utf-8?Q?Eva=3A?= <eva@app.example>", false),
        ("eva@app.example (Eva wrote:)", false),
        ("Eva <eva@app.example> (see <x@y.example>)", false),
        ("\"a@b\": eva@app.example;", false), ("Eva (a\\)b:) <eva@app.example>", false),
    ])
    func isShown_nameWithSigns_isFalse(_ value: String, _ expected: Bool) {
        let octets = Array(value.utf8)
        #expect(ShownName.isShown(AddressList.parse(octets[...]), in: octets[...]) == expected)
    }
}
