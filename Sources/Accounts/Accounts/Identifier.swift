// Identifiers that administrators choose.

import Database
import Support

/// Checks identifiers of teams, users and apps.
package enum Identifier {
    /// Longest identifier in characters: room for reverse-DNS names, short enough
    /// for a table on a terminal.
    static let maximum = 128

    /// The identifier, unchanged; refused unless it is 1–128 characters of A–Z a–z 0–9 and `._-:`
    /// and begins with a letter or digit. `@` is refused separately: identifiers are not sealed,
    /// and an email address would be in clear text.
    package static func checked(_ text: String, _ what: String) throws(StoreFailure) -> String {
        guard !text.contains("@") else {
            throw .refused(
                .invalid,
                "\(what) must not be an email address: identifiers are stored in clear text")
        }
        let isValid = text.utf8.enumerated().allSatisfy { offset, octet in
            let isAlphanumeric =
                (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5A)
                || (octet >= 0x61 && octet <= 0x7A)
            return isAlphanumeric || (offset > 0 && [0x2E, 0x5F, 0x2D, 0x3A].contains(octet))
        }
        guard isValid, (1...maximum).contains(text.utf8.count) else {
            throw .refused(
                .invalid,
                "\(what) must be 1 to \(maximum) characters of A-Z a-z 0-9 . _ - : and begin with a letter or digit"
            )
        }
        return text
    }

    /// A name for people: 1–200 scalars, see `PersonText`. The refusal gives the position of the
    /// first invalid character.
    package static func checkedName(_ text: String) throws(StoreFailure) -> String {
        try checkText(text)
        guard (1...200).contains(text.unicodeScalars.count) else {
            throw .refused(.invalid, "a name must be 1 to 200 characters")
        }
        guard !text.unicodeScalars.allSatisfy(\.properties.isWhitespace) else {
            throw .refused(.invalid, "a name must have a visible character")
        }
        return text
    }

    /// Refuses text for people with invisible characters, or with characters that change the
    /// direction of other text.
    package static func checkText(_ text: String) throws(StoreFailure) {
        guard let place = PersonText.place(in: text) else { return }
        throw .refused(
            .invalid,
            "the character at place \(place) is not allowed: it is not seen, changes the direction of text, or is one mark too many"
        )
    }
}
