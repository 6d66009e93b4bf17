// Text in a charset that no one here knows: whether its octets may be searched as they are.

import InternetMessage

enum UnknownCharset {
    /// Octets among which one of ASCII's white space must be, on the average: prose in an 8-bit charset has one in six, Chinese
    /// in lines one in eighty. EBCDIC has none.
    private static let blankEvery = 128
    /// Fewer octets hold no address.
    private static let shortest = 8

    /// Whether octets are such that those of ASCII stand for themselves: no controls, which shift from one set to another, and
    /// where there is more than ASCII, its white space between words or lines.
    static func isLikeASCII(_ octets: [UInt8]) -> Bool {
        var (blanks, isWide) = (0, false)
        for octet in octets {
            switch octet {
            case 0x20, 0x09, 0x0A, 0x0C, 0x0D: blanks += 1
            case 0x21...0x7E: continue
            case 0x80...: isWide = true
            default: return false
            }
        }
        return !isWide || octets.count <= shortest || blanks * blankEvery >= octets.count
    }

    /// What the octets say in other charsets of ASCII's letters: EBCDIC, UTF-7 and HZ, as far as they could be written in those.
    static func readings(of octets: [UInt8]) -> [[UInt8]] {
        var labels: [String] = []
        if octets.contains(where: { $0 >= 0x80 }) { labels.append("ibm037") }
        if octets.contains(UInt8(ascii: "+")) { labels.append("utf-7") }
        if octets.contains(UInt8(ascii: "~")) { labels.append("hz-gb-2312") }
        return labels.compactMap { Charset.decode(octets, $0).map { Array($0.utf8) } }
    }
}
