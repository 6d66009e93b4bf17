// A user and an inbox as HTTP and commands show them.

import Accounts
import Support

/// A user; one by one, with inboxes and addresses.
package struct UserView: Encodable, Sendable {
    let user: String
    let createdAt: Timestamp
    var inboxes: [InboxView]?
    var addresses: [AddressView]?

    /// As in a list.
    package init(_ user: User) {
        self.user = user.id
        createdAt = Timestamp(user.createdAt)
    }

    /// All of one user, from the store.
    package init(id: String, _ store: Store) throws {
        self.init(try store.users.user(id))
        inboxes = try store.inboxes.inboxes(user: id).map(InboxView.init)
        addresses = try store.addresses.addresses(user: id).map { AddressView($0) }
    }
}

/// An inbox, whose address is not shown.
package struct InboxView: Encodable, Sendable {
    let inbox: Int64
    /// `l…@gmail.com`.
    let hint: String
    let isVerified: Bool
    let isDefault: Bool
    let isReplyOnly: Bool
    let createdAt: Timestamp

    package init(_ inbox: Inbox) {
        self.inbox = inbox.number
        let address = inbox.address.revealed
        hint = String(address.localPart.prefix(1)) + "…@" + address.domain
        isVerified = inbox.isVerified
        isDefault = inbox.isDefault
        isReplyOnly = inbox.isReplyOnly
        createdAt = Timestamp(inbox.createdAt)
    }
}
