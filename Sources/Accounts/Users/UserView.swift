// A user and an inbox as HTTP and commands show them.

import Support

/// A user. A single user has inboxes and addresses; a list omits them.
package struct UserView: Encodable, Sendable {
    let user: String
    /// The part of the name that the requester may see; only commands show it.
    private let name: String?
    let createdAt: Timestamp
    package private(set) var inboxes: [InboxView]?
    private var addresses: [AddressView]?
    private var frozen: FreezeView?

    /// When the operator froze the user, and until when.
    private struct FreezeView: Encodable {
        let since: Timestamp
        let endsAt: Timestamp?
    }

    /// As shown in a list.
    package init(_ user: User, name: String? = nil) {
        self.user = user.id
        self.name = name
        createdAt = Timestamp(user.createdAt)
    }

    /// With its inboxes and addresses.
    package init(
        _ user: User, name: String? = nil, freeze: Freeze?, inboxes: [InboxView],
        addresses: [AddressView]
    ) {
        self.init(user, name: name)
        self.inboxes = inboxes
        self.addresses = addresses
        frozen = freeze.map {
            FreezeView(since: Timestamp($0.beganAt), endsAt: Timestamp($0.endsAt))
        }
    }

    /// Everything about one user, from the store, as HTTP shows it.
    package init(id: String, _ store: Store) throws {
        self.init(
            try store.users.user(id), freeze: try store.freezes.freeze(of: .user(id)),
            inboxes: try store.inboxes.inboxes(user: id).map { InboxView($0) },
            addresses: try store.addresses.addresses(user: id).map { AddressView($0) })
    }
}

/// An inbox. HTTP never shows its address. Commands show as much of it as the administrator
/// requested.
package struct InboxView: Encodable, Sendable {
    package let inbox: Int64
    private var hint: String?
    private var address: String?
    package let isVerified: Bool
    let isDefault: Bool
    let isReplyOnly: Bool
    let createdAt: Timestamp
    private var suspendedAt: Timestamp?

    private init(of inbox: Inbox) {
        self.inbox = inbox.number
        isVerified = inbox.isVerified
        isDefault = inbox.isDefault
        isReplyOnly = inbox.isReplyOnly
        createdAt = Timestamp(inbox.createdAt)
    }

    /// As HTTP shows it.
    package init(_ inbox: Inbox) {
        self.init(of: inbox)
        hint = inbox.address.hint
    }

    /// As commands show it.
    /// - Parameter address: the part of the address that may be shown.
    package init(_ inbox: Inbox, address: String) {
        self.init(of: inbox)
        self.address = address
        suspendedAt = Timestamp(inbox.suspendedAt)
    }
}
