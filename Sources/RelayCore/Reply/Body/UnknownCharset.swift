// Text in an unknown charset: whether its octets may be searched without decoding.

import InternetMessage

enum UnknownCharset {
    /// On average, at least one in this many octets must be ASCII white space. Prose in an 8-bit
    /// charset has one in six; Chinese in lines has one in eighty; EBCDIC has none.
    private static let blankEvery = 128
    /// Fewer octets cannot contain an address.
    private static let shortest = 8

    /// Whether ASCII octets mean themselves here: there are no control characters, which switch
    /// between character sets, and ASCII white space separates words or lines among other octets.
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

    /// The octets read in other charsets with ASCII letters: EBCDIC, UTF-7 and HZ, if they may be
    /// written in those.
    static func readings(of octets: [UInt8]) -> [[UInt8]] {
        var labels: [String] = []
        if octets.contains(where: { $0 >= 0x80 }) { labels.append("ibm037") }
        if octets.contains(UInt8(ascii: "+")) { labels.append("utf-7") }
        if octets.contains(UInt8(ascii: "~")) { labels.append("hz-gb-2312") }
        return labels.compactMap { Charset.decode(octets, $0).map { Array($0.utf8) } }
    }
}
