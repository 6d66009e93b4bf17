// Which characters beyond ASCII divide an address in ASCII from what is directly before it.

enum Script {
    /// Whether the character of UTF-8 that ends at an index is no letter of a script that is written with spaces between its
    /// words: a dash, an arrow, a letter of Chinese, Japanese, Korean or Thai. No address goes on across it to ASCII.
    static func divides(_ octets: UnsafeBufferPointer<UInt8>, at end: Int) -> Bool {
        var start = end
        while start > 0, end - start < 3, octets[start] & 0xC0 == 0x80 { start -= 1 }
        guard start < end else { return false }
        let (lead, second) = (octets[start], octets[start + 1])
        switch lead {
        // Latin-1: `ª`, `µ`, `º` are letters, and so is all from U+00C0 on but the signs of multiplication and division.
        case 0xC2: return second != 0xAA && second != 0xB5 && second != 0xBA
        case 0xC3: return second == 0x97 || second == 0xB7
        // Devanagari to Sinhala stand between spaces, as do Georgian, Cherokee and the Latin letters of Vietnamese.
        case 0xE0: return second >= 0xB8 && second < 0xBD
        case 0xE1: return second == 0x80 || second == 0x81 || second == 0x9E || second == 0x9F
        case 0xE2...0xF4: return true
        default: return false
        }
    }
}
