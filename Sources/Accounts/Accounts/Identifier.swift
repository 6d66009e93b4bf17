// Identifiers that administrators choose.

import Database

/// Checks identifiers of teams, users and apps.
package enum Identifier {
    /// Longest identifier in characters: room for reverse-DNS names, short enough for a table on a terminal.
    static let maximum = 128

    /// The identifier, unchanged; refused unless it is 1–128 characters of A–Z a–z 0–9 and `._-:` and begins with a letter or
    /// digit. `@` is refused separately: identifiers are not sealed, and an email address would be in clear text.
    package static func checked(_ text: String, _ what: String) throws(StoreFailure) -> String {
        guard !text.contains("@") else {
            throw .refused(.invalid, "\(what) must not be an email address: identifiers are stored in clear text")
        }
        let isValid = text.utf8.enumerated().allSatisfy { offset, octet in
            let isAlphanumeric =
                (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5A) || (octet >= 0x61 && octet <= 0x7A)
            return isAlphanumeric || (offset > 0 && [0x2E, 0x5F, 0x2D, 0x3A].contains(octet))
        }
        guard isValid, (1...maximum).contains(text.utf8.count) else {
            throw .refused(
                .invalid, "\(what) must be 1 to \(maximum) characters of A-Z a-z 0-9 . _ - : and begin with a letter or digit")
        }
        return text
    }

    /// A name for people: 1–200 characters, see `NameText`.
    package static func checkedName(_ text: String) throws(StoreFailure) -> String {
        guard NameText.isPlain(text), (1...200).contains(text.count), text.utf8.count <= 800
        else {
            throw .refused(
                .invalid, "a name must be 1 to 200 characters without control characters, including those for text direction")
        }
        return text
    }
}

/// Names that people read: of teams and users.
package enum NameText {
    /// Whether the text has no control characters and line separators, so that it cannot break out of a header field or a
    /// terminal line, and no invisible characters (Unicode's Cf: U+202E reverses text, U+200B and tags hide in it). Only the
    /// two joiners U+200C and U+200D are allowed: names and emoji use them.
    package static func isPlain(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: false
            case .format: scalar == "\u{200C}" || scalar == "\u{200D}"
            default: true
            }
        }
    }
}
