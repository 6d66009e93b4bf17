// Users and their inboxes.

import InternetMessage

/// A person known to the operator.
package struct User: Sendable, Hashable {
    /// The store's own number.
    package let number: Int64
    /// The identifier that the operator chose; stored in the database in clear text.
    package let id: String
    /// Sealed in the database.
    package let name: String?
    package let createdAt: Int64
}

extension User: CustomStringConvertible, CustomReflectable {
    /// Never the name.
    package var description: String { "<user \(id)>" }
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}

/// A real address of a user.
package struct Inbox: Sendable, Hashable {
    /// The store's own id; never shown.
    package let id: Int64
    /// From 1 on among the user's inboxes, never reused: commands and programs use it to name the
    /// inbox without its address.
    package let number: Int64
    package let address: InboxAddress
    /// Seconds since 1970; nil while unverified.
    package let verifiedAt: Int64?
    /// Where mail goes for accounts that chose no other. One for each user; never a reply-only one.
    package let isDefault: Bool
    /// Replies may come from it; nothing is ever forwarded to it.
    package let isReplyOnly: Bool
    package let createdAt: Int64
    /// When Postern suspended forwarding to it because it refused too much, in seconds since 1970;
    /// nil if not suspended. `confirm` ends this.
    package let suspendedAt: Int64?
    /// Permanent failures counted at the time of the suspension.
    package let suspendedFailures: Int

    package var isVerified: Bool { verifiedAt != nil }
    package var isSuspended: Bool { suspendedAt != nil }
}
