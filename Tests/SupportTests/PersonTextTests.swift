import Support
import Testing

@Suite struct PersonTextTests {
    /// Names and notes as people of many languages write them.
    @Test(arguments: [
        "\u{0645}\u{06CC}\u{200C}\u{062E}\u{0648}\u{0627}\u{0647}\u{0645}",  // Persian, with ZWNJ.
        "\u{0DC1}\u{0DCA}\u{200D}\u{0DBB}\u{0DD3}",  // Sinhala, with ZWJ.
        "\u{0915}\u{094D}\u{200D}\u{0937}",  // Devanagari, with ZWJ.
        "\u{05E9}\u{05C1}\u{05B8}\u{05DC}\u{05D5}\u{05B9}\u{05DD}",  // Hebrew with vowels.
        "\u{0645}\u{064F}\u{062D}\u{064E}\u{0645}\u{0651}\u{064E}\u{062F}",  // Arabic with vowels.
        "Nguye\u{0302}\u{0303}n Thi\u{0323} A\u{0301}nh",  // Vietnamese, combining.
        "\u{0E19}\u{0E49}\u{0E33}",  // Thai.
        "\u{0D4E}\u{0D15}",  // Malayalam, with a letter before its own.
        "\u{845B}\u{E0100}\u{57CE}",  // A Japanese place, in the form that its people write.
        "\u{30AB}\u{3099} \u{FF76}\u{FF9E}",  // Katakana, combining and half width.
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}",  // A family.
        // An astronaut, a heart on fire.
        "\u{1F469}\u{1F3FD}\u{200D}\u{1F680} \u{2764}\u{FE0F}\u{200D}\u{1F525}",
        // Flags.
        "\u{1F3F3}\u{FE0F}\u{200D}\u{1F308} \u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        "1\u{FE0F}\u{20E3} #\u{FE0F}\u{20E3} \u{1F1E9}\u{1F1EA}",
        "O'Neil & S\u{F6}hne, \"Ltd.\" \u{AB}Ici\u{A0}\u{BB}",
    ])
    func text_ofAPerson_isTakenAsItIs(_ text: String) {
        #expect(PersonText.place(in: text) == nil)
        #expect(PersonText.cleaned(text).text.utf8.elementsEqual(text.utf8))
    }

    @Test(
        arguments: [
            ("a\u{202E}b", 2, "ab"), ("\u{200F}a", 1, "a"), ("a\u{061C}b", 2, "ab"),
            ("ab\u{2066}", 3, "ab"),
            ("a\u{0}b", 2, "ab"),
            ("a\u{85}b", 2, "ab"), ("a\u{2028}b", 2, "ab"), ("a\u{200B}b", 2, "ab"),
            ("a\u{FEFF}b", 2, "ab"),
            ("a\u{AD}b", 2, "ab"),
            // Fillers and joiners without a meaning, lone marks, letters that join markup to
            // themselves, hidden tags.
            ("\u{3164}", 1, ""), ("a\u{034F}b", 2, "ab"), ("a \u{0301}b", 3, "a b"),
            ("\u{0301}", 1, ""), ("<\u{0338}b", 2, "<b"),
            ("a\u{200D}", 2, "a"), ("\u{200C}a", 1, "a"), ("a\u{200D}<", 2, "a<"),
            ("\u{0600}<", 1, "<"), ("\u{0D4E}<", 1, "<"),
            ("a\u{D4E}\u{D4E}<", 2, "a<"), ("a\u{E0041}b", 2, "ab"),
            ("\u{1F3F4}\u{E0067}b", 2, "\u{1F3F4}b"),
            ("a\u{FFFF}", 2, "a"),
        ] as [(String, Int, String)])
    func text_withWhatIsNotSeen_isRefusedAtItsPlaceAndCleaned(
        _ text: String, _ place: Int, _ cleaned: String
    ) {
        #expect(PersonText.place(in: text) == place)
        let found = PersonText.cleaned(text)
        #expect(found.text.utf8.elementsEqual(cleaned.utf8))
        #expect(found.removed == text.unicodeScalars.count - cleaned.unicodeScalars.count)
    }

    @Test func marks_onOneLetter_areEightAtMost() {
        func letter(_ marks: Int) -> String {
            "e" + String(repeating: "\u{0301}", count: marks) + "f"
        }
        #expect(PersonText.isPlain(letter(8)))
        #expect(PersonText.place(in: letter(9)) == 10)
        let (text, removed) = PersonText.cleaned(letter(32_000))
        #expect(text.utf8.elementsEqual(letter(8).utf8) && removed == 31_992)
    }

    /// The cleaned text can be in a text: cleaning it again removes nothing.
    @Test func cleanedText_ofAnyScalars_isPlain() {
        var random = SystemRandomNumberGenerator()
        let special: [UInt32] = [
            0x200C, 0x200D, 0x202E, 0x301, 0x5B8, 0xFE0F, 0xE0100, 0x1F3F4, 0xE0067, 0xE007F,
            0x1F468, 0x1F3FD, 0xD4E, 0x600,
            0x3C,
            0x20, 0x41, 0x627, 0x1100, 0x115F, 0x20E3, 0x31, 0xA, 0x111C2, 0x1F1E9,
        ]
        for _ in 0..<5_000 {
            let values = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? special[Int.random(in: 0..<special.count, using: &random)]
                    : UInt32.random(in: 0...0x10FFFF, using: &random)
            }
            let text = String(String.UnicodeScalarView(values.compactMap(Unicode.Scalar.init)))
            let cleaned = PersonText.cleaned(text).text
            #expect(PersonText.isPlain(cleaned), "\(values.map { String($0, radix: 16) })")
            #expect(PersonText.isPlain(text) == text.utf8.elementsEqual(cleaned.utf8))
        }
    }

    @Test func lines_whateverEndsThem_areTold() {
        #expect(PersonText.lines("a\r\nb\rc\n\u{2028}d\u{85}") == ["a", "b", "c", "", "d", ""])
        #expect(PersonText.withSingleSpaces("\u{3000} a\u{A0}\t b\n") == "a b")
    }

    @Test(arguments: [
        "a\u{0}b", "a\u{200D}b", "a\u{200C}b", "a\u{AD}b", "\u{0301}a", "a.\u{0301}", "\u{0600}a",
        "\u{0D4E}a", "a\u{3164}",
        "a\u{FE0F}", "a\u{202E}", "a\u{2028}", "a\u{E0041}",
    ])
    func identifier_withWhatIsNotSeen_isRefused(_ text: String) {
        #expect(!IdentifierText.isPlain(text))
    }

    @Test(arguments: [
        "anna", "a+b_c", "\u{5C71}\u{7530}", "e\u{0301}", "\u{0915}\u{094D}\u{0937}", "1\u{0301}",
        "\"a b\"",
    ])
    func identifier_ofLettersAndTheirMarks_isTaken(_ text: String) {
        #expect(IdentifierText.isPlain(text))
    }
}
