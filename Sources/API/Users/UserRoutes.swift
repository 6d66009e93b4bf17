// Operator routes: users, their inboxes and their addresses. Inboxes are sent only in bodies, and
// returned only as a hint.

import Accounts
import Database
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage

package struct UserRoutes: RouteModule {
    private let parts: RouteParts
    /// Mail servers may be slow. Waiting for them must not delay other work.
    private let mail = BlockingPool(.mail)
    private let verify: @Sendable (_ user: String, _ inbox: Int64, _ change: Change) throws -> Void

    /// - Parameter verify: sends mail to an inbox to verify it. Blocks.
    package init(
        _ parts: RouteParts,
        verify:
            @escaping @Sendable (_ user: String, _ inbox: Int64, _ change: Change) throws -> Void
    ) {
        self.parts = parts
        self.verify = verify
    }

    private struct NewUser: Decodable {
        let user: String
        let name: String?
        let inbox: String
        let isVerified: Bool?
    }
    private struct NewInbox: Decodable {
        let inbox: String
        let isVerified: Bool?
        let isReplyOnly: Bool?
    }
    private struct NewAddress: Decodable {
        let team: String
        let clientId: String?
        let sharesName: Bool?
    }

    package func addRoutes(to routes: Routes) {
        routes.operator(.usersRead).get("/v1/users", use: list).get("/v1/users/{user}", use: show)
        routes.operator(.usersWrite).post("/v1/users", use: add).delete(
            "/v1/users/{user}", use: remove
        )
        .post("/v1/users/{user}/inboxes", use: addInbox)
        .post("/v1/users/{user}/inboxes/{inbox}/verification", use: verifyInbox)
        .delete("/v1/users/{user}/inboxes/{inbox}", use: removeInbox)
        .post("/v1/users/{user}/addresses", use: issueAddress)
    }

    // MARK: Users

    private func list(_ request: Request, _ context: OperatorContext) async throws -> Response {
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors, listing: "users")
        let found = try await parts.run {
            try $0.users.all(after: page.after ?? "", limit: page.rows)
        }
        return try .json(page.page(found, position: \.id, item: { UserView($0) }))
    }

    private func add(_ request: Request, _ context: OperatorContext) async throws -> Response {
        let body = try await request.decode(NewUser.self, context)
        let inbox = InboxAddress(try AddrSpec(member: body.inbox, at: "/inbox"))
        let change = context.change(now: parts.now())
        let whole = try await parts.run { store in
            _ = try store.users.add(
                id: body.user, name: body.name, inbox: inbox, isVerified: body.isVerified ?? false,
                change)
            return try UserView(id: body.user, store)
        }
        for added in whole.inboxes ?? [] where !added.isVerified {
            await write(to: added.inbox, of: body.user, change)
        }
        return try .json(whole, status: .created)
    }

    private func show(_ request: Request, _ context: OperatorContext) async throws -> Response {
        let user = try context.pathParameter("user")
        return try await .json(parts.run { try UserView(id: user, $0) })
    }

    private func remove(_ request: Request, _ context: OperatorContext) async throws -> Response {
        let user = try context.pathParameter("user")
        let change = context.change(now: parts.now())
        try await parts.run { try $0.users.remove(user, change) }
        return .empty
    }

    // MARK: Inboxes

    private func addInbox(_ request: Request, _ context: OperatorContext) async throws -> Response {
        let user = try context.pathParameter("user")
        let body = try await request.decode(NewInbox.self, context)
        let inbox = InboxAddress(try AddrSpec(member: body.inbox, at: "/inbox"))
        let change = context.change(now: parts.now())
        let added = try await parts.run {
            try $0.inboxes.add(
                user: user, inbox, isVerified: body.isVerified ?? false,
                isReplyOnly: body.isReplyOnly ?? false, change)
        }
        if !added.isVerified { await write(to: added.number, of: user, change) }
        return try .json(InboxView(added), status: .created)
    }

    private func verifyInbox(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let (user, inbox) = try Self.inboxPath(context)
        let change = context.change(now: parts.now())
        try await mail.run { [verify] in
            do { try verify(user, inbox, change) } catch let failure as StoreFailure
                where failure.isRefusal
            {
                throw failure
            } catch {
                throw Problem.mailUnavailable
            }
        }
        return Response(status: .accepted)
    }

    private func removeInbox(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let (user, inbox) = try Self.inboxPath(context)
        let change = context.change(now: parts.now())
        try await parts.run { try $0.inboxes.remove(user: user, .number(inbox), change) }
        return .empty
    }

    private static func inboxPath(_ context: OperatorContext) throws -> (user: String, inbox: Int64)
    {
        guard let inbox = Int64(try context.pathParameter("inbox")), inbox > 0 else {
            throw Problem.notFound()
        }
        return (try context.pathParameter("user"), inbox)
    }

    /// The inbox exists even if no message is sent: another message can be requested.
    private func write(to inbox: Int64, of user: String, _ change: Change) async {
        try? await mail.run { [verify] in try verify(user, inbox, change) }
    }

    // MARK: Addresses

    private func issueAddress(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let user = try context.pathParameter("user")
        let body = try await request.decode(NewAddress.self, context)
        let change = context.change(now: parts.now())
        let issued = try await parts.run {
            try $0.addresses.issue(
                team: body.team, user: user, app: body.clientId, sharesName: body.sharesName, change
            )
        }
        return try .json(AddressView(issued.address), status: issued.isNew ? .created : .ok)
    }
}
