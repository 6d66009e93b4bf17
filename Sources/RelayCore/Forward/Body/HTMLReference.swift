// Character references of HTML that may be part of a `mailto:` link.

import InternetMessage

enum HTMLReference {
    private static let named: [(name: StaticString, scalar: UInt32)] = [
        ("amp", 0x26), ("quot", 0x22), ("apos", 0x27), ("lt", 0x3C), ("gt", 0x3E), ("colon", 0x3A),
        ("commat", 0x40),
        ("period", 0x2E),
        ("Tab", 0x09), ("NewLine", 0x0A), ("plus", 0x2B), ("num", 0x23), ("quest", 0x3F),
        ("equals", 0x3D), ("percnt", 0x25),
        ("comma", 0x2C),
        ("semi", 0x3B), ("lowbar", 0x5F), ("UnderBar", 0x5F), ("sol", 0x2F), ("excl", 0x21),
        ("nbsp", 0xA0), ("AMP", 0x26),
        ("QUOT", 0x22), ("LT", 0x3C), ("GT", 0x3E), ("dollar", 0x24), ("ast", 0x2A),
        ("midast", 0x2A), ("lpar", 0x28),
        ("rpar", 0x29),
        ("lsqb", 0x5B), ("lbrack", 0x5B), ("rsqb", 0x5D), ("rbrack", 0x5D), ("bsol", 0x5C),
        ("Hat", 0x5E), ("grave", 0x60),
        ("DiacriticalGrave", 0x60), ("lcub", 0x7B), ("lbrace", 0x7B), ("rcub", 0x7D),
        ("rbrace", 0x7D), ("verbar", 0x7C),
        ("vert", 0x7C), ("VerticalLine", 0x7C),
    ]
    /// The reference that begins at an index.
    static func read(
        _ text: UnsafeBufferPointer<UInt8>, at start: Int
    ) -> (scalar: UInt32, end: Int)? {
        guard start + 1 < text.count, text[start] == UInt8(ascii: "&") else { return nil }
        guard text[start + 1] == UInt8(ascii: "#") else { return readNamed(text, at: start + 1) }
        var index = start + 2
        let isHex = index < text.count && text[index].asciiLowercased == UInt8(ascii: "x")
        if isHex { index += 1 }
        let first = index
        var scalar: UInt32 = 0
        while index < text.count, let digit = text[index].hexValue, isHex || digit < 10 {
            scalar = min(0x110000, scalar * (isHex ? 16 : 10) + UInt32(digit))
            index += 1
        }
        guard index > first else { return nil }
        // The semicolon may be missing.
        return (scalar, index < text.count && text[index] == UInt8(ascii: ";") ? index + 1 : index)
    }

    private static func readNamed(
        _ text: UnsafeBufferPointer<UInt8>, at start: Int
    ) -> (scalar: UInt32, end: Int)? {
        for (name, scalar) in named {
            let end = start + name.utf8CodeUnitCount
            guard end < text.count, text[end] == UInt8(ascii: ";") else { continue }
            let isIt = name.withUTF8Buffer { name in
                name.indices.allSatisfy { text[start + $0] == name[$0] }
            }
            if isIt { return (scalar, end + 1) }
        }
        return nil
    }
}
