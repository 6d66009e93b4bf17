// Operator routes: users, their inboxes and their addresses. Inboxes come in bodies alone, and go out as a hint.

import HTTPTypes
import Hummingbird
import InternetMessage
import PosternStore

package struct UserRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let cursors: Cursors
    private let now: @Sendable () -> Int64
    /// Mail servers may be slow: what waits for them keeps nothing else waiting.
    private let mail = BlockingPool(threads: 2)
    private let verify: @Sendable (_ user: String, _ inbox: Int64, _ change: Change) throws -> Void

    /// - Parameter verify: writes to an inbox to verify it. Blocks.
    package init(
        _ store: Store, _ pool: BlockingPool, _ cursors: Cursors, now: @escaping @Sendable () -> Int64,
        verify: @escaping @Sendable (_ user: String, _ inbox: Int64, _ change: Change) throws -> Void
    ) {
        self.store = store
        self.pool = pool
        self.cursors = cursors
        self.now = now
        self.verify = verify
    }

    // MARK: Shapes

    struct NewUser: Decodable { let user: String; let name: String?; let inbox: String; let isVerified: Bool? }
    struct NewInbox: Decodable { let inbox: String; let isVerified: Bool?; let isReplyOnly: Bool? }
    struct NewAddress: Decodable { let team: String; let clientId: String?; let sharesName: Bool? }

    struct UserItem: Encodable, Sendable {
        let user: String
        let createdAt: Timestamp

        init(_ user: User) {
            self.user = user.id
            createdAt = Timestamp(user.createdAt)
        }
    }

    struct InboxItem: Encodable, Sendable {
        let inbox: Int64
        /// `l…@gmail.com`.
        let hint: String
        let isVerified: Bool
        let isDefault: Bool
        let isReplyOnly: Bool
        let createdAt: Timestamp

        init(_ inbox: Inbox) {
            self.inbox = inbox.number
            let address = inbox.address.revealed
            hint = String(address.localPart.prefix(1)) + "…@" + address.domain
            isVerified = inbox.isVerified
            isDefault = inbox.isDefault
            isReplyOnly = inbox.isReplyOnly
            createdAt = Timestamp(inbox.createdAt)
        }
    }

    struct AddressItem: Encodable, Sendable {
        let address: String
        let team: String
        let sub: String
        let isCurrent: Bool
        let isForwardingOn: Bool
        let createdAt: Timestamp
        let retiredAt: Timestamp?

        init(_ address: RelayAddress) {
            self.address = address.address.wireForm
            team = address.account.teamID
            sub = address.account.sub
            isCurrent = address.isCurrent
            isForwardingOn = address.isForwardingOn
            createdAt = Timestamp(address.createdAt)
            retiredAt = Timestamp(address.retiredAt)
        }
    }

    struct Whole: Encodable, Sendable {
        let user: String
        let createdAt: Timestamp
        let inboxes: [InboxItem]
        let addresses: [AddressItem]
    }

    // MARK: Routes

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/v1/users", access: .operator(.usersRead)) { [self] request, _ in
            let page = try PageRequest(try request.query(PageRequest.parameters), cursors, listing: "users")
            let found = try await pool.run { [store] in try store.users.all(after: page.after ?? "", limit: page.limit + 1) }
            return try .json(Page(found.map(UserItem.init), page, cursors, listing: "users") { $0.user })
        }
        routes.post("/v1/users", access: .operator(.usersWrite)) { [self] request, context in
            let body = try await request.decode(NewUser.self, context)
            let inbox = try Self.inbox(body.inbox, at: "/inbox")
            let change = context.change(now: now())
            let whole = try await pool.run { [store] in
                _ = try store.users.add(
                    id: body.user, name: body.name, inbox: inbox, isVerified: body.isVerified ?? false, change)
                return try Self.whole(body.user, store)
            }
            for added in whole.inboxes where !added.isVerified { await write(to: added.inbox, of: body.user, change) }
            return try .json(whole, status: .created)
        }
        routes.get("/v1/users/{user}", access: .operator(.usersRead)) { [self] _, context in
            let user = try context.pathParameter("user")
            return try await .json(pool.run { [store] in try Self.whole(user, store) })
        }
        routes.delete("/v1/users/{user}", access: .operator(.usersWrite)) { [self] _, context in
            let user = try context.pathParameter("user")
            let change = context.change(now: now())
            try await pool.run { [store] in try store.users.remove(user, change) }
            return .empty
        }
        routes.post("/v1/users/{user}/inboxes", access: .operator(.usersWrite)) { [self] request, context in
            let user = try context.pathParameter("user")
            let body = try await request.decode(NewInbox.self, context)
            let inbox = try Self.inbox(body.inbox, at: "/inbox")
            let change = context.change(now: now())
            let added = try await pool.run { [store] in
                try store.inboxes.add(
                    user: user, inbox, isVerified: body.isVerified ?? false, isReplyOnly: body.isReplyOnly ?? false, change)
            }
            if !added.isVerified { await write(to: added.number, of: user, change) }
            return try .json(InboxItem(added), status: .created)
        }
        routes.post("/v1/users/{user}/inboxes/{inbox}/verification", access: .operator(.usersWrite)) { [self] _, context in
            let (user, inbox) = try Self.inboxPath(context)
            let change = context.change(now: now())
            try await mail.run { [verify] in
                do { try verify(user, inbox, change) } catch let refusal as StoreRefusal { throw refusal } catch {
                    throw Problem(
                        .serviceUnavailable, "mail-unavailable", "The message could not be sent",
                        detail: "the mail server did not accept it",
                        headers: [.retryAfter: "60"])
                }
            }
            return Response(status: .accepted)
        }
        routes.delete("/v1/users/{user}/inboxes/{inbox}", access: .operator(.usersWrite)) { [self] _, context in
            let (user, inbox) = try Self.inboxPath(context)
            let change = context.change(now: now())
            try await pool.run { [store] in try store.inboxes.remove(user: user, .number(inbox), change) }
            return .empty
        }
        routes.post("/v1/users/{user}/addresses", access: .operator(.usersWrite)) { [self] request, context in
            let user = try context.pathParameter("user")
            let body = try await request.decode(NewAddress.self, context)
            let change = context.change(now: now())
            let issued = try await pool.run { [store] in
                try store.addresses.issue(team: body.team, user: user, app: body.clientId, sharesName: body.sharesName, change)
            }
            return try .json(AddressItem(issued.address), status: issued.isNew ? .created : .ok)
        }
    }

    /// Where no message leaves, the inbox is there all the same: it can be written to again.
    private func write(to inbox: Int64, of user: String, _ change: Change) async {
        try? await mail.run { [verify] in try verify(user, inbox, change) }
    }

    private static func inboxPath(_ context: APIContext) throws -> (user: String, inbox: Int64) {
        guard let inbox = Int64(try context.pathParameter("inbox")), inbox > 0 else { throw Problem.notFound() }
        return (try context.pathParameter("user"), inbox)
    }

    private static func inbox(_ text: String, at pointer: String) throws -> InboxAddress {
        guard text.utf8.count <= 320, let address = try? AddrSpec.typed(text) else {
            throw Problem.invalid("this is not a valid email address", at: pointer)
        }
        return InboxAddress(address)
    }

    private static func whole(_ user: String, _ store: Store) throws -> Whole {
        let found = try store.users.user(user)
        return Whole(
            user: found.id, createdAt: Timestamp(found.createdAt),
            inboxes: try store.inboxes.inboxes(user: user).map(InboxItem.init),
            addresses: try store.addresses.addresses(user: user).map(AddressItem.init))
    }
}
