// Colours that an operator gives the users' pages: readable in light and in dark, or refused.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct ColourTests {
    @Test func colour_notSixHexDigits_returnsNil() {
        #expect(Colour("#0F5c55")?.description == "#0f5c55")
        for text in [
            "0f5c55", "#0f5c5", "#0f5c555", "#+f5c55", "#-12345", "#0f5c5g", "red", "", "#０f5c55",
        ] {
            #expect(Colour(text) == nil, "\(text)")
        }
    }

    @Test func contrast_twoColours_isThatOfWCAG() throws {
        #expect(Colour.white.contrast(with: .black) == 21)
        // The lightest grey that level AA allows on white.
        #expect(try #require(Colour("#767676")).contrast(with: .white) >= 4.5)
        #expect(try #require(Colour("#777777")).contrast(with: .white) < 4.5)
    }

    /// All of a grid of colours: accepted ones are readable in every place, in both schemes, and
    /// the others are not readable on white.
    @Test func accentColours_accepted_areReadableInBothSchemes() throws {
        var taken = 0
        for step in 0..<512 {
            let part = { (shift: Int) in String((step >> shift & 7) * 36, radix: 16) }
            let text =
                "#" + [6, 3, 0].map { part($0).count == 1 ? "0" + part($0) : part($0) }.joined()
            let colour = try #require(Colour(text))
            guard let colours = AccentColours(colour) else {
                #expect(
                    AccentColours.lightGrounds.contains { colour.contrast(with: $0) < 4.5 },
                    "\(text)")
                continue
            }
            taken += 1
            for (scheme, grounds) in [
                (colours.light, AccentColours.lightGrounds),
                (colours.dark, AccentColours.darkGrounds),
            ] {
                for ground in grounds + [scheme.tile, scheme.onAccent] {
                    #expect(
                        scheme.accent.contrast(with: ground) >= 4.5,
                        "\(text): \(scheme.accent) on \(ground)")
                }
                #expect(
                    scheme.hover.contrast(with: scheme.onAccent) >= 4.5, "\(text): \(scheme.hover)")
            }
        }
        #expect((100..<400).contains(taken), "\(taken)")
    }
}
