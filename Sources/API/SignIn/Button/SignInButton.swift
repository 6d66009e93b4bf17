// A sign-in button as SVG. Pure: the same button always gives the same octets. No text of a query is written into it.

import Languages
import Support

/// The appearance of a button.
struct SignInButton: Sendable {
    /// CSS pixels.
    static let heights = 32...64
    /// CSS pixels.
    static let widths = 160...480
    static let usualHeight = 44

    var kind = ButtonKind.signIn
    var style = Style.dark
    /// Pixels, within `heights`.
    var height = Self.usualHeight
    /// Pixels, within `widths`; nil for as wide as the text needs.
    var width: Int?
    var language = Catalogue.english

    enum Style: String, Sendable, CaseIterable {
        case light, dark, outline
    }

    /// `#rrggbb`: each text has a contrast of 13:1 or more with its background, and the line of 3:1 (WCAG 2.2, 1.4.3 and
    /// 1.4.11).
    private var colours: (ground: String, text: String, mark: String, line: String?) {
        switch style {
        case .dark: ("#1b2430", "#ffffff", "#7fd1c2", nil)
        case .light: ("#ffffff", "#1b2430", "#0f5c55", nil)
        case .outline: ("#ffffff", "#1b2430", "#0f5c55", "#74818d")
        }
    }

    /// - Parameters:
    ///   - service: the operator's name for the service.
    ///   - mark: shapes in a square of 32 units, in the colour `currentColor`.
    func svg(service: String, mark: String) -> String {
        let text = kind.text(language, service: service)
        // Hundredths of a pixel as integers, so that numbers have the same digits on every machine.
        let size = height * 100
        let (margin, icon, gap) = (size * 30 / 100, size * 48 / 100, size * 22 / 100)
        let fontSize = size * 40 / 100
        let needed = fontSize / 100 * Self.hundredthsOfEms(text) / 100 * 100
        let natural = margin * 2 + icon + gap + needed
        let total = width.map { $0 * 100 } ?? min(max(natural, Self.widths.lowerBound * 100), Self.widths.upperBound * 100)
        let room = total - margin * 2 - icon - gap
        // If the reader's fonts are wider than estimated, or the button is narrow, the text is set closer.
        let shown = min(needed, room)
        let scaled = room < needed ? fontSize * room / needed : fontSize
        let start = (total - icon - gap - shown) / 2
        let isLeft = !language.isRightToLeft
        let iconX = isLeft ? start : total - start - icon
        let textX = (isLeft ? start + icon + gap : start) + shown / 2
        let title = HTMLText.escaped(text)
        let (ground, ink, accent, line) = colours
        let border = line.map { " stroke=\"\($0)\"" } ?? ""
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.pixels(total))" height="\(height)" \
            viewBox="0 0 \(Self.pixels(total)) \(height)" role="img" lang="\(language.tag)">\
            <title>\(title)</title>\
            <rect x=".5" y=".5" width="\(Self.pixels(total - 100))" height="\(height - 1)" rx="7.5" fill="\(ground)"\(border)/>\
            <svg x="\(Self.pixels(iconX))" y="\(Self.pixels((size - icon) / 2))" width="\(Self.pixels(icon))" \
            height="\(Self.pixels(icon))" viewBox="0 0 32 32" color="\(accent)">\(mark)</svg>\
            <text x="\(Self.pixels(textX))" y="\(Self.pixels(size / 2 + scaled * 35 / 100))" font-size="\(Self.pixels(scaled))" \
            textLength="\(Self.pixels(shown))" lengthAdjust="spacingAndGlyphs" text-anchor="middle" font-weight="600" fill="\(ink)" \
            direction="\(isLeft ? "ltr" : "rtl")" \
            font-family="system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Helvetica, Arial, sans-serif">\(title)</text></svg>
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
