// A sign-in button as SVG. Pure: the same button always gives the same octets. No text of a
// query is written into it.

import Languages
import Support

/// The appearance of a button.
package struct SignInButton: Sendable {
    /// CSS pixels.
    package static let heights = 32...64
    /// CSS pixels.
    package static let widths = 160...480
    package static let usualHeight = 44
    /// CSS pixels.
    package static let radii = 0...32
    package static let usualRadius = 8

    var kind = ButtonKind.signIn
    var style = Style.dark
    /// Pixels, within `heights`.
    var height = Self.usualHeight
    /// Pixels, within `widths`; nil for the width that the text needs.
    var width: Int?
    var language = Catalogue.english
    var logo = Logo.beside
    /// Pixels of the rounded corners, within `radii`; at most half of the height.
    var radius = Self.usualRadius
    /// Whether the button has a line around it; nil for the default of the style.
    var border: Border?

    package enum Style: String, Sendable, CaseIterable {
        case light, dark, outline
    }

    /// The position of the logo.
    package enum Logo: String, Sendable, CaseIterable {
        /// Next to the text, both in the middle.
        case beside
        /// At the edge where reading begins. The text is in the middle of the rest.
        case edge
        /// Only the logo. Programs read the text as the title.
        case only
    }

    package enum Border: String, Sendable, CaseIterable { case yes, no }

    /// `#rrggbb`: each text has a contrast of 13:1 or more with its background, and the line of 3:1
    /// (WCAG 2.2, 1.4.3 and 1.4.11).
    private var colours: (ground: String, text: String, mark: String, line: String) {
        switch style {
        case .dark: ("#1b2430", "#ffffff", "#7fd1c2", "#8b98a5")
        case .light, .outline: ("#ffffff", "#1b2430", "#0f5c55", "#74818d")
        }
    }

    private var hasBorder: Bool { border.map { $0 == .yes } ?? (style == .outline) }

    /// - Parameters:
    ///   - service: the operator's name for the service.
    ///   - mark: shapes in a square of 32 units, in the colour `currentColor`.
    func svg(service: String, mark: String) -> String {
        let text = kind.text(language, service: service)
        guard logo != .only else { return logoAlone(text: text, mark: mark) }
        // Integers in hundredths of a pixel, so that numbers have the same digits on every machine.
        let size = height * 100
        let (margin, icon, gap) = (size * 30 / 100, size * 48 / 100, size * 22 / 100)
        let fontSize = size * 40 / 100
        let needed = fontSize / 100 * Self.hundredthsOfEms(text) / 100 * 100
        let natural = margin * 2 + icon + gap + needed
        let total =
            width.map { $0 * 100 }
            ?? min(max(natural, Self.widths.lowerBound * 100), Self.widths.upperBound * 100)
        let room = total - margin * 2 - icon - gap
        // If the reader's fonts are wider than estimated, or the button is narrow, the letters move
        // closer together.
        let shown = min(needed, room)
        let scaled = room < needed ? fontSize * room / needed : fontSize
        let isLeft = !language.isRightToLeft
        // Both are in the middle; or the logo is at the edge, and the text in the middle of the
        // rest.
        let start = logo == .edge ? margin : (total - icon - gap - shown) / 2
        let textStart = logo == .edge ? start + icon + gap + (room - shown) / 2 : start + icon + gap
        let iconX = isLeft ? start : total - start - icon
        let textX = isLeft ? textStart + shown / 2 : total - textStart - shown / 2
        let title = HTMLText.escaped(text)
        return """
            \(frame(width: total, title: title))\(picture(mark, x: iconX, side: icon))\
            <text x="\(Self.pixels(textX))" y="\(Self.pixels(size / 2 + scaled * 35 / 100))" font-size="\(Self.pixels(scaled))" \
            textLength="\(Self.pixels(shown))" lengthAdjust="spacingAndGlyphs" text-anchor="middle" font-weight="600" \
            fill="\(colours.text)" \
            direction="\(isLeft ? "ltr" : "rtl")" \
            font-family="system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Helvetica, Arial, sans-serif">\(title)</text></svg>
            """
    }

    /// A square with the logo.
    private func logoAlone(text: String, mark: String) -> String {
        let size = height * 100
        let icon = size * 60 / 100
        let total = width.map { $0 * 100 } ?? size
        return
            "\(frame(width: total, title: HTMLText.escaped(text)))\(picture(mark, x: (total - icon) / 2, side: icon))</svg>"
    }

    /// The beginning of the image, with its ground and its line.
    /// - Parameters:
    ///   - width: hundredths of a pixel.
    ///   - title: escaped.
    private func frame(width: Int, title: String) -> String {
        let corner = max(0, min(radius, height / 2) * 100 - 50)
        let line = hasBorder ? " stroke=\"\(colours.line)\"" : ""
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.pixels(width))" height="\(height)" \
            viewBox="0 0 \(Self.pixels(width)) \(height)" role="img" lang="\(language.tag)">\
            <title>\(title)</title>\
            <rect x=".5" y=".5" width="\(Self.pixels(width - 100))" height="\(height - 1)" rx="\(Self.pixels(corner))" \
            fill="\(colours.ground)"\(line)/>
            """
    }

    private func picture(_ mark: String, x: Int, side: Int) -> String {
        """
        <svg x="\(Self.pixels(x))" y="\(Self.pixels((height * 100 - side) / 2))" width="\(Self.pixels(side))" \
        height="\(Self.pixels(side))" viewBox="0 0 32 32" color="\(colours.mark)">\(mark)</svg>
        """
    }

    // MARK: Texts

    /// The width of a text in a typical system font, in hundredths of an em.
    private static func hundredthsOfEms(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { sum, scalar in
            switch scalar.value {
            case 0x20: sum + 26
            case 0x2E80...0xFFEF, 0x20000...0x3FFFF: sum + 100
            case 0x0300...0x036F, 0x064B...0x0652: sum
            case 0x0600...0x06FF: sum + 50
            default:
                switch Character(scalar) {
                case "i", "j", "l", "I", "f", "t", "r", "’", ".", "-": sum + 36
                case "m", "w", "M", "W": sum + 88
                case "A"..."Z": sum + 67
                default: sum + 57
                }
            }
        }
    }

    /// `12.5` for 1250.
    private static func pixels(_ hundredths: Int) -> String {
        let rest = hundredths % 100
        if rest == 0 { return "\(hundredths / 100)" }
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
