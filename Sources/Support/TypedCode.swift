// Codes of six digits and numbers, as people type them.

package enum TypedCode {
    /// Octets beyond which a text is not a code.
    private static let limit = 256

    /// The six digits in ASCII. Decimal digits of every script count, because keyboards have them.
    /// Spaces, hyphens, dashes and invisible marks are left out. Nil for text that cannot be a
    /// code.
    package static func digits(_ text: String) -> String? {
        guard text.utf8.count <= limit else { return nil }
        var digits = ""
        for scalar in text.unicodeScalars {
            let properties = scalar.properties
            switch properties.generalCategory {
            case .decimalNumber: digits += String(Int(properties.numericValue ?? 0))
            case .spaceSeparator, .dashPunctuation, .format, .control: break
            default:
                // The full-width hyphen-minus and similar characters are punctuation already;
                // U+2212 is a mathematical sign.
                guard scalar == "\u{2212}" || properties.isDefaultIgnorableCodePoint else {
                    return nil
                }
            }
        }
        return digits.utf8.count == 6 ? digits : nil
    }

    /// A whole number in decimal digits of any script, with spaces around
    /// it; nil for anything else.
    package static func number(_ text: String) -> Int? {
        guard text.utf8.count <= limit else { return nil }
        let kept = text.unicodeScalars.filter { $0.properties.generalCategory != .spaceSeparator }
        guard !kept.isEmpty, kept.allSatisfy({ $0.properties.generalCategory == .decimalNumber })
        else { return nil }
        return Int(kept.map { String(Int($0.properties.numericValue ?? 0)) }.joined())
    }
}
