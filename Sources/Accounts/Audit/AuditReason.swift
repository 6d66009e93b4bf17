// The reasons that administrators give.

import Database
import Support

/// A reason in the audit: one line without an address, because others read it.
package enum AuditReason {
    /// Unicode scalars.
    package static let maximum = 200
    /// What a text must be, as the end of a sentence.
    package static let rule =
        "one line of 1 to \(maximum) characters, without an email address: the audit shows it"
    /// `@` and what is read as one: U+FF20 and U+FE6B.
    private static let atSigns: Set<Unicode.Scalar> = ["@", "\u{FF20}", "\u{FE6B}"]

    package static func isAllowed(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.count <= maximum && PersonText.isPlain(text)
            && !text.unicodeScalars.contains(where: atSigns.contains)
    }

    /// The reason; throws `invalid` if it is none.
    package static func checked(_ reason: String) throws(StoreFailure) -> String {
        guard isAllowed(reason) else {
            throw .refused(.invalid, "the reason must be \(rule)")
        }
        return reason
    }
}
