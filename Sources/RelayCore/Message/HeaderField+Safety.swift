// Fields that two programs could read differently go no further.

import InternetMessage

extension HeaderField {
    /// Whether the field has a name of printable ASCII (RFC 5322 section 2.2), and no NUL, bare CR, bare LF or line break outside a
    /// fold. libmilter hands values on as C strings, so that anything behind a NUL would pass unseen; a name that begins with white
    /// space would be part of the field above.
    var isSafe: Bool {
        nameLength > 0 && bytes[..<nameLength].allSatisfy { (0x21...0x7E).contains($0) }
            && controls.isDisjoint(with: [.nul, .bareCR, .bareLF, .lineBreak])
    }

    /// Octets of a line without its end (RFC 5322 section 2.1.1). A server on the way may break a longer one, signed as it is.
    static let longestLine = 998

    /// Whether no line of the field is too long.
    var fitsLines: Bool { bytes.split(separator: 0x0A).allSatisfy { $0.count - ($0.last == 0x0D ? 1 : 0) <= Self.longestLine } }
}
