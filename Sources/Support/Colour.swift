// sRGB colours, and how readable one is on another (WCAG 2.2). Pure.

import Glibc

/// A colour with eight bits for each of red, green and blue.
package struct Colour: Sendable, Hashable, CustomStringConvertible {
    package let red, green, blue: UInt8

    package static let white = Colour(red: 255, green: 255, blue: 255)
    package static let black = Colour(red: 0, green: 0, blue: 0)

    private init(red: UInt8, green: UInt8, blue: UInt8) {
        (self.red, self.green, self.blue) = (red, green, blue)
    }

    /// `#rrggbb`, in either case; nil for anything else.
    package init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 7, digits[0] == UInt8(ascii: "#"),
            let value = UInt32(text.dropFirst(), radix: 16),
            digits[1] != UInt8(ascii: "+"), digits[1] != UInt8(ascii: "-")
        else { return nil }
        self.init(
            red: UInt8(truncatingIfNeeded: value >> 16),
            green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }

    /// `#rrggbb`.
    package var description: String { "#" + Hex.encode([red, green, blue]) }

    /// Relative luminance, 0 to 1.
    private var luminance: Double {
        func linear(_ value: UInt8) -> Double {
            let part = Double(value) / 255
            return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    /// Contrast ratio, 1 to 21.
    package func contrast(with other: Colour) -> Double {
        let (one, two) = (luminance, other.luminance)
        return (max(one, two) + 0.05) / (min(one, two) + 0.05)
    }

    /// This colour mixed with a share of another, 0 to 1.
    package func mixed(with other: Colour, _ share: Double) -> Colour {
        func mix(_ one: UInt8, _ two: UInt8) -> UInt8 {
            UInt8((Double(one) * (1 - share) + Double(two) * share).rounded())
        }
        return Colour(
            red: mix(red, other.red), green: mix(green, other.green), blue: mix(blue, other.blue))
    }
}

/// The colours for the users' pages, in light and dark, derived from the operator's accent colour.
package struct AccentColours: Sendable, Hashable {
    /// The contrast of easily readable text: level AA, success criterion 1.4.3.
    package static let leastContrast = 4.5
    /// The backgrounds of accents, as in the pages' style sheet: card, page, sunken.
    package static let lightGrounds = ["#ffffff", "#f7f6f2", "#f0eee7"].compactMap(Colour.init)
    package static let darkGrounds = ["#1a2128", "#12171c", "#232c34"].compactMap(Colour.init)

    /// The colours of one scheme, light or dark.
    package struct Scheme: Sendable, Hashable {
        package let accent, hover, onAccent, tile: Colour

        /// - Parameter towards: the colour moves in this direction under the pointer.
        fileprivate init(_ accent: Colour, on grounds: [Colour], towards: Colour) {
            self.accent = accent
            hover = accent.mixed(with: towards, 0.25)
            onAccent =
                accent.contrast(with: .white) > accent.contrast(with: .black) ? .white : .black
            // Uses as much of the accent colour as keeps it readable there.
            let tiles = stride(from: 0.16, through: 0, by: -0.02).map {
                grounds[0].mixed(with: accent, $0)
            }
            tile =
                tiles.first { $0.contrast(with: accent) >= AccentColours.leastContrast }
                ?? grounds[0]
        }
    }

    package let light, dark: Scheme

    /// Lightens the colour for the dark scheme as far as needed. Nil for a colour that is not
    /// readable in the light scheme.
    package init?(_ colour: Colour) {
        guard Self.contrast(of: colour) >= Self.leastContrast else { return nil }
        light = Scheme(colour, on: Self.lightGrounds, towards: .black)
        let lighter = stride(from: 0.0, through: 1, by: 0.05).map { colour.mixed(with: .white, $0) }
        let readable =
            lighter.first { Self.least($0, Self.darkGrounds) >= Self.leastContrast } ?? .white
        dark = Scheme(readable, on: Self.darkGrounds, towards: .white)
    }

    /// The lowest contrast of a colour with the backgrounds of the light scheme.
    package static func contrast(of colour: Colour) -> Double { least(colour, lightGrounds) }

    private static func least(_ colour: Colour, _ grounds: [Colour]) -> Double {
        grounds.map(colour.contrast).min() ?? 1
    }
}
