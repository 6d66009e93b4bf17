// A code of six digits, as people type it.

package enum TypedCode {
    /// Octets beyond which nothing is a code.
    private static let limit = 256

    /// The six digits in ASCII. Decimal digits of every script count, as a keyboard has them; spaces, hyphens, dashes and marks
    /// that show nothing are left out. Nil for what cannot be a code.
    package static func digits(_ text: String) -> String? {
        guard text.utf8.count <= limit else { return nil }
        var digits = ""
        for scalar in text.unicodeScalars {
            let properties = scalar.properties
            switch properties.generalCategory {
            case .decimalNumber: digits += String(Int(properties.numericValue ?? 0))
            case .spaceSeparator, .dashPunctuation, .format, .control: break
            default:
                // The full-width hyphen-minus and its like are punctuation already; U+2212 is a mathematical sign.
                guard scalar == "\u{2212}" || properties.isDefaultIgnorableCodePoint else { return nil }
            }
        }
        return digits.utf8.count == 6 ? digits : nil
    }
}
