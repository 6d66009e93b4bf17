// The non-ASCII characters that separate an ASCII address from the text directly before it.

enum Script {
    /// Whether the UTF-8 character that ends at an index cannot continue into an ASCII address: a
    /// dash, an arrow, or a letter of Chinese, Japanese, Korean or Thai. It is not a letter of a
    /// script with spaces between words.
    static func divides(_ octets: UnsafeBufferPointer<UInt8>, at end: Int) -> Bool {
        var start = end
        while start > 0, end - start < 3, octets[start] & 0xC0 == 0x80 { start -= 1 }
        guard start < end else { return false }
        let (lead, second) = (octets[start], octets[start + 1])
        switch lead {
        // Latin-1: `ª`, `µ`, `º` are letters, and so are all from U+00C0 on, except the
        // multiplication and division signs.
        case 0xC2: return second != 0xAA && second != 0xB5 && second != 0xBA
        case 0xC3: return second == 0x97 || second == 0xB7
        // Devanagari to Sinhala have spaces between words, as do Georgian, Cherokee and the Latin
        // letters of Vietnamese.
        case 0xE0: return second >= 0xB8 && second < 0xBD
        case 0xE1: return second == 0x80 || second == 0x81 || second == 0x9E || second == 0x9F
        case 0xE2...0xF4: return true
        default: return false
        }
    }
}
