// Fields that two programs could read differently go no further.

import InternetMessage

extension HeaderField {
    /// Whether the field has a name of printable ASCII (RFC 5322 section 2.2), and no NUL, bare CR, bare LF or line break outside a
    /// fold. libmilter hands values on as C strings, so that anything behind a NUL would pass unseen.
    var isSafe: Bool {
        nameLength > 0 && bytes[..<nameLength].allSatisfy { (0x21...0x7E).contains($0) }
            && controls.isDisjoint(with: [.nul, .bareCR, .bareLF, .lineBreak])
    }
}
