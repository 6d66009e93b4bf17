// Fields that two programs could read differently go no further.

import InternetMessage

extension HeaderField {
    /// Whether the field has a name, and no NUL, bare CR, bare LF or line break outside a fold. libmilter hands values on as C strings,
    /// so that anything behind a NUL would pass unseen.
    var isSafe: Bool {
        nameLength > 0 && controls.isDisjoint(with: [.nul, .bareCR, .bareLF, .lineBreak])
    }
}
