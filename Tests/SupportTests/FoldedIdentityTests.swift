// Case folding of identities: no letter becomes one of ASCII.

import Support
import Testing

struct FoldedIdentityTests {
    @Test func letters_ofASCIIAndOthers_areLowered() {
        #expect("Jane.DOE@X".foldedIdentity == "jane.doe@x")
        #expect("J\u{DC}RGEN".foldedIdentity.hasSameOctets(as: "j\u{FC}rgen"))
        #expect("gro\u{DF}".foldedIdentity.hasSameOctets(as: "gro\u{DF}"))
    }

    @Test(arguments: [
        "\u{212A}", "\u{17F}", "\u{131}", "\u{130}", "\u{FF4B}", "\u{FB01}", "\u{1D5C4}", "\u{AA}",
        "\u{2460}",
    ])
    func letter_thatFoldsToASCII_staysAnotherOne(_ letter: String) throws {
        #expect(letter.foldedIdentity.utf8.allSatisfy { $0 >= 0x80 })
        #expect(try #require(letter.unicodeScalars.first).foldsToASCII)
    }

    /// Scalars that become ASCII by lower case, upper case or compatibility are found; letters of
    /// other scripts are not.
    @Test func scalars_allOfUnicode_foldToASCIIOnlyAsLookAlikes() {
        let all = (0x80...UInt32(0x10FFFF)).lazy.compactMap(Unicode.Scalar.init)
        for scalar in all where scalar.properties.lowercaseMapping.utf8.allSatisfy({ $0 < 0x80 }) {
            #expect(scalar.foldsToASCII, "\(scalar.value)")
            #expect(String(scalar).foldedIdentity.utf8.allSatisfy { $0 >= 0x80 })
        }
        for scalar
            in "\u{FC}\u{DC}\u{E9}\u{C9}\u{DF}\u{F8}\u{3B1}\u{391}\u{3C2}\u{436}\u{5D0}\u{4E2D}"
            .unicodeScalars
        {
            #expect(!scalar.foldsToASCII, "\(scalar)")
        }
    }
}
