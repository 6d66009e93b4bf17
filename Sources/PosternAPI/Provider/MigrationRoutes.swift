// POST /auth/usermigrationinfo: how two teams speak of a user while an app moves from one to the other.

import Foundation
import HTTPTypes
import Hummingbird
import Identity
import JSON
import PosternStore

/// The old team sends `sub` and `target` (the new team's identifier) and gets a `transfer_sub`; the new team sends that and gets
/// the user's new `sub` and address. Both with an access token of scope `user.migration`.
package struct MigrationRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let now: @Sendable () -> Int64
    private let clients: ClientAuthentication

    /// - Parameter now: seconds since 1970.
    package init(settings: ProviderSettings, store: Store, pool: BlockingPool, now: @escaping @Sendable () -> Int64) {
        self.store = store
        self.pool = pool
        self.now = now
        clients = ClientAuthentication(store: store, pool: pool, issuer: settings.issuer, now: now)
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.post("/auth/usermigrationinfo", access: .open) { request, context in
            await AuthError.answering(context) { try await exchange(request, context) }
        }
    }

    private func exchange(_ request: Request, _ context: APIContext) async throws -> Response {
        let form = try await request.form(context)
        // The client's secret is in the form; the Authorization field has the access token.
        guard let clientID = form["client_id"], let secret = form["client_secret"] else {
            throw AuthError.invalidClient("client_id and client_secret are required", byHeader: false)
        }
        let client = try await clients.client(id: clientID, secret: secret, byHeader: false)
        let token = try bearer(request)
        let time = now()
        let holder = try await pool.run { [store] in try store.provider.holder(accessToken: token, now: time) }
        guard let holder, holder.clientID == client.clientID, holder.teamID == client.teamID,
            holder.scopes.contains(ProviderScope.migration)
        else { throw AuthError.invalidToken() }
        let change = Change(actor: "client:\(client.clientID)", now: time)
        if let transferSubject = form["transfer_sub"] {
            guard form["sub"] == nil, form["target"] == nil else {
                throw AuthError.invalidRequest("send transfer_sub, or sub and target")
            }
            return try await account(transferSubject, client, change)
        }
        let (sub, target) = (try form.required("sub"), try form.required("target"))
        let subject = try await pool.run { [store] in
            try store.transfers.transferSubject(sub: sub, client: client, target: target, change)
        }
        guard let subject else {
            throw AuthError.invalidRequest("unknown sub, or no transfer of this app to this target was started")
        }
        return Self.response(["transfer_sub": .string(subject)])
    }

    private func account(_ transferSubject: String, _ client: ProviderClient, _ change: Change) async throws -> Response {
        let found = try await pool.run { [store] in
            try store.transfers.account(transferSubject: transferSubject, client: client, change)
        }
        guard let found else {
            throw AuthError.invalidRequest(
                "transfer_sub is not for this client, the transfer is not finished, or its 60 days are over")
        }
        var object: JSONObject = ["sub": .string(found.sub)]
        switch found.email {
        case .relay(let address):
            object["email"] = .string(address.wireForm)
            object["is_private_email"] = .bool(true)
        case .shared(let inbox):
            object["email"] = .string(inbox.revealed.wireForm)
            object["is_private_email"] = .bool(false)
        case nil: break
        }
        return Self.response(object)
    }

    private func bearer(_ request: Request) throws -> String {
        let parts = (request.headers[.authorization] ?? "").split(separator: " ", maxSplits: 1)
        guard request.headers[values: .authorization].count == 1, parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw AuthError.invalidToken()
        }
        return String(parts[1])
    }

    private static func response(_ object: JSONObject) -> Response {
        .object(object, headers: HTTPFields().notStored)
    }
}
