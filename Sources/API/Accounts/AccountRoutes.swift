// /v1/accounts: a team reads its accounts, revokes consents and deletes accounts; the operator
// reads all accounts.

import Accounts
import HTTP
import Hummingbird
import Support

package struct AccountRoutes: RouteModule {
    private let parts: RouteParts
    private let listings: ListingStore

    package init(_ parts: RouteParts, listings: ListingStore) {
        (self.parts, self.listings) = (parts, listings)
    }

    private struct Revocation: Decodable, Sendable {
        private enum CodingKeys: CodingKey {
            case clientId
        }
        /// Nil means every app.
        let clientId: String?

        /// Refuses null: a client with an empty variable must not end every consent by mistake.
        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            guard members.contains(.clientId) else {
                clientId = nil
                return
            }
            guard try !members.decodeNil(forKey: .clientId) else {
                throw Problem.invalid(
                    "give a client_id, or omit it to revoke consent to all apps of the team",
                    at: "/client_id")
            }
            clientId = try members.decode(String.self, forKey: .clientId)
        }
    }

    private struct Revoked: Encodable, Sendable {
        let sub: String
        /// Consents ended by this request.
        let revoked: Int
        let credentialState: String
    }

    private struct State: Encodable, Sendable {
        let sub: String
        let clientId: String?
        let credentialState: String
    }

    package func addRoutes(to routes: Routes) {
        routes.either(.accountsRead).get("/v1/accounts", use: list).get(
            "/v1/accounts/{sub}", use: show
        )
        .get("/v1/accounts/{sub}/credential-state", use: credentialState)
        routes.either(.accountsWrite).delete("/v1/accounts/{sub}", use: delete).post(
            "/v1/accounts/{sub}/revoke", use: revoke)
    }

    private func list(_ request: Request, _ context: KeyContext) async throws -> Response {
        let team = context.caller.team
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors,
            listing: "accounts" + (team.map { " team:\($0.id)" } ?? ""))
        let found = try await parts.pool.run { [listings] in
            try listings.accountList.accounts(
                team: team?.number, after: page.afterNumber ?? 0, limit: page.rows)
        }
        return try .json(
            page.page(
                found, position: { "\($0.number)" },
                item: { AccountView($0, for: team == nil ? .service : .team) }))
    }

    private func show(_ request: Request, _ context: KeyContext) async throws -> Response {
        _ = try request.query([])
        let (team, sub) = (context.caller.team?.id, try context.pathParameter("sub"))
        return try await .json(
            parts.run {
                try AccountView(
                    try $0.accounts.account(sub: sub, team: team),
                    for: team == nil ? .service : .team, $0)
            })
    }

    private func delete(_ request: Request, _ context: KeyContext) async throws -> Response {
        _ = try request.query([])
        let (team, sub) = (context.caller.team?.id, try context.pathParameter("sub"))
        let change = context.change(now: parts.now())
        try await parts.run { store in
            let account = try store.accounts.account(sub: sub, team: team)
            try store.accounts.delete(account: account.number, isTeams: team != nil, change)
        }
        return .empty
    }

    private func revoke(_ request: Request, _ context: KeyContext) async throws -> Response {
        _ = try request.query([])
        let (team, sub) = (context.caller.team?.id, try context.pathParameter("sub"))
        let body = try await request.decode(Revocation.self, context)
        let change = context.change(now: parts.now())
        return try await .json(
            parts.run { store in
                let account = try store.accounts.account(sub: sub, team: team)
                let count = try Self.revoke(account, clientID: body.clientId, store, change)
                let state = try store.grants.credentialState(
                    team: account.teamID, sub: sub, clientID: body.clientId)
                return Revoked(sub: sub, revoked: count, credentialState: state.rawValue)
            })
    }

    /// Ends every consent, or the one to the group of one app; returns how many ended.
    private static func revoke(
        _ account: Account, clientID: String?, _ store: Store, _ change: Change
    ) throws -> Int {
        guard let clientID else {
            return try store.grants.revokeAll(account: account.number, change)
        }
        guard
            let app = try store.apps.apps(team: account.teamID).first(where: {
                $0.clientID == clientID
            })
        else {
            throw Problem.invalid("the team has no such app", at: "/client_id")
        }
        return try store.grants.revoke(account: account.number, group: app.group, change) ? 1 : 0
    }

    private func credentialState(_ request: Request, _ context: KeyContext) async throws -> Response
    {
        let clientID = try request.query(["client_id"])["client_id"]?.text
        guard clientID.map({ (1...128).contains($0.utf8.count) }) ?? true else {
            throw Problem.malformed("client_id: must be 1 to 128 octets")
        }
        let (team, sub) = (context.caller.team?.id, try context.pathParameter("sub"))
        guard sub.utf8.count <= 255, IdentifierText.isPlain(sub) else {
            throw Problem.malformed("sub: must be at most 255 octets without control characters")
        }
        let state = try await parts.run { store throws -> CredentialState in
            guard let owner = team ?? (try? store.accounts.account(sub: sub))?.teamID else {
                return .notFound
            }
            return try store.grants.credentialState(team: owner, sub: sub, clientID: clientID)
        }
        // "Not found" is a normal response here: the caller knows the `sub` and checks whether it
        // is valid.
        return try .json(State(sub: sub, clientId: clientID, credentialState: state.rawValue))
    }
}
