// The reason that an administrator gives for a grave change.

import Database
import Support

/// A reason for the audit.
package enum AuditReason {
    /// Unicode scalars of a reason.
    package static let maximumLength = 200

    /// The reason, or `invalid` if it is not one line without an address: the audit shows it.
    package static func checked(_ reason: String) throws(StoreFailure) -> String {
        guard !reason.isEmpty, reason.unicodeScalars.count <= maximumLength,
            PersonText.isPlain(reason), !reason.utf8.contains(UInt8(ascii: "@"))
        else {
            throw .refused(
                .invalid,
                "the reason must be one line of 1 to \(maximumLength) characters, without an email address: the audit shows it"
            )
        }
        return reason
    }
}
