// Letters, digits and marks beyond ASCII that readers read as ASCII: mathematical and circled ones,
// dots and dashes.

@_spi(_Unicode) import Swift

package enum CompatibilityFold {
    /// The ASCII octet, in lower case, of which a character is a form; nil for all others.
    package static func octet(_ scalar: UInt32) -> UInt8? {
        switch scalar {
        case 0xFF01...0xFF5E: UInt8(scalar - 0xFEE0).asciiLowercased
        case 0x2024, 0x3002, 0xFE52, 0xFF61: UInt8(ascii: ".")
        case 0xFE6B: UInt8(ascii: "@")
        case 0x2010...0x2012, 0x2212: UInt8(ascii: "-")
        case 0x212A: UInt8(ascii: "k")
        // Mathematical letters, thirteen alphabets in both cases, and five rows of digits.
        case 0x1D400...0x1D6A3: letter((scalar - 0x1D400) % 26)
        case 0x1D7CE...0x1D7FF: digit((scalar - 0x1D7CE) % 10)
        // Digits and letters in circles and squares.
        case 0x2460...0x2468: digit(scalar - 0x2460 + 1)
        case 0x24EA: digit(0)
        case 0x24B6...0x24E9: letter((scalar - 0x24B6) % 26)
        case 0x1F130...0x1F149: letter(scalar - 0x1F130)
        case 0x1F150...0x1F169: letter(scalar - 0x1F150)
        case 0x1F170...0x1F189: letter(scalar - 0x1F170)
        default: nil
        }
    }

    private static func letter(_ number: UInt32) -> UInt8 { UInt8(ascii: "a") + UInt8(number) }
    private static func digit(_ number: UInt32) -> UInt8 { UInt8(ascii: "0") + UInt8(number) }

    /// Whether a character is invisible: a soft hyphen, a joiner, a mark of direction, a variation
    /// selector, a tag.
    package static func isUnseen(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x180B...0x180E, 0x200B...0x200F, 0x202A...0x202E,
            0x2060...0x206F,
            0xFE00...0xFE0F, 0xFEFF, 0xE0000...0xE0FFF:
            true
        default: false
        }
    }
}

package enum CanonicalForms {
    /// A text in lower case, in three forms: as it is, composed and decomposed, each in UTF-8. Some
    /// programs write `ö` in two characters.
    package static func lowercased(_ text: String) -> Set<[UInt8]> {
        let lower = text.lowercased()
        let octets = Array(lower.utf8)
        if octets.allSatisfy({ $0 < 0x80 }) { return [octets] }
        var (composed, decomposed) = (String.UnicodeScalarView(), String.UnicodeScalarView())
        composed.append(contentsOf: lower._nfc)
        decomposed.append(contentsOf: lower._nfd)
        return [octets, Array(String(composed).utf8), Array(String(decomposed).utf8)]
    }
}
