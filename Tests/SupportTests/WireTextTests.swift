// Text from outside: compared by octets, cut by scalars, and no name is long.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct WireTextTests {
    private static let marks = String(repeating: "\u{301}", count: 32_000)

    /// Texts that are equal as `String`.
    @Test(arguments: [
        ("K", "\u{212A}"), (";", "\u{37E}"), ("\u{E9}", "e\u{301}"),
        ("\u{1E0B}\u{323}", "\u{1E0D}\u{307}"),
    ])
    func equality_canonicallyEquivalent_differs(_ left: String, _ right: String) {
        #expect(left == right)
        #expect(WireText(left) != WireText(right))
        #expect(Set([WireText(left), WireText(right)]).count == 2)
    }

    @Test(arguments: ["a", "\u{600}a", "a\u{FE0F}"]) func pairs_nameOfManyMarks_isUnreadable(
        _ name: String
    ) {
        let form = "grant_type=x&\(FormEncoding.encode(name + Self.marks))=1"
        #expect(FormEncoding.pairs(form.utf8, maximum: 10) == nil)
        #expect(
            FormEncoding.pairs("a=\(FormEncoding.encode(Self.marks))".utf8, maximum: 10)?.count == 1
        )
    }

    @Test func pairs_longestName_isTaken() throws {
        let name = String(repeating: "n", count: FormEncoding.nameLimit)
        let pairs = try #require(FormEncoding.pairs("\(name)=1".utf8, maximum: 1))
        #expect(pairs.count == 1 && pairs[0].name == WireText(name) && pairs[0].value == "1")
        #expect(FormEncoding.pairs("\(name)n=1".utf8, maximum: 1) == nil)
    }

    /// A separator before a mark is one Character with it, but still a separator.
    @Test func pairs_separatorsBeforeMarks_separate() throws {
        let pairs = try #require(
            FormEncoding.pairs("a=1&\u{301}b=2&c\u{301}=\u{301}3".utf8, maximum: 3))
        #expect(pairs.map(\.name) == ["a", "\u{301}b", "c\u{301}"])
        #expect(pairs.map(\.value) == ["1", "2", "\u{301}3"])
    }

    @Test(
        arguments: [
            ("12", 12), ("-3", -3), ("", nil), ("1 ", nil), ("１２", nil), ("1\u{301}", nil),
            ("99999999999999999999", nil),
        ] as [(String, Int64?)])
    func integer_otherThanDigits_isNone(_ text: String, _ number: Int64?) {
        #expect(WireText(text).integer == number)
    }

    @Test func words_spacesAlone_divide() {
        #expect(
            WireText("  openid  \u{301}email \u{A0}x ").words == [
                "openid", "\u{301}email", "\u{A0}x",
            ])
        #expect(WireText(" \t a b\t ").trimmed == "a b")
        #expect(WireText(" ").trimmed.isEmpty)
    }

    @Test func excerpt_longText_isCutByScalarsWithoutControls() {
        #expect(Array(WireText("a" + Self.marks).excerpt(limit: 64).unicodeScalars).count == 64)
        #expect(WireText("a\r\nb\u{85}").excerpt(limit: 10) == "a\u{FFFD}\u{FFFD}b\u{FFFD}")
        #expect(
            WireText("a\u{301}").ascii(limit: 10) == nil && WireText("a b").ascii(limit: 10) == nil)
        #expect(WireText("a-b").ascii(limit: 3) == "a-b" && WireText("a-b").ascii(limit: 2) == nil)
    }

    @Test func description_address_isNotPrinted() {
        var text = ""
        dump(WireText("jane@home.example"), to: &text)
        #expect(!text.contains("jane") && !"\(WireText("jane@home.example"))".contains("jane"))
    }
}
