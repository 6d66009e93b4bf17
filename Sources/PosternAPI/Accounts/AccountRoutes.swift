// /v1/accounts/{sub}: what a team may know of one of its accounts, and how it ends what the user began there.

import Hummingbird
import PosternStore

package struct AccountRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let now: @Sendable () -> Int64

    /// - Parameter now: seconds since 1970.
    package init(store: Store, pool: BlockingPool, now: @escaping @Sendable () -> Int64) {
        self.store = store
        self.pool = pool
        self.now = now
    }

    private struct Revocation: Decodable, Sendable {
        private enum CodingKeys: CodingKey {
            case clientId
        }
        /// Nil for every app.
        let clientId: String?

        /// A client whose variable is empty must not end every consent.
        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            guard members.contains(.clientId) else {
                clientId = nil
                return
            }
            guard try !members.decodeNil(forKey: .clientId) else {
                throw Problem.invalid("give a client_id, or omit it to revoke consent to all apps of the team", at: "/client_id")
            }
            clientId = try members.decode(String.self, forKey: .clientId)
        }
    }

    private struct Revoked: Encodable, Sendable {
        let sub: String
        /// Consents that ended now.
        let revoked: Int
        let credentialState: String
    }

    private struct Item: Encodable, Sendable {
        struct Consent: Encodable, Sendable {
            let clientId: String?
            let state: String
            let realUserStatus: Int?
            let firstAuthorizedAt: Timestamp
            let lastAuthorizedAt: Timestamp
            let revokedAt: Timestamp?
        }
        let sub: String
        /// For the operator only: a team knows its users by `sub`.
        let team: String?
        let user: String?
        let credentialState: String
        /// The relay address; nil where the account has none.
        let email: String?
        let isPrivateEmail: Bool
        let isForwardingOn: Bool?
        let consents: [Consent]
        let createdAt: Timestamp
    }

    private struct State: Encodable, Sendable {
        let sub: String
        let clientId: String?
        let credentialState: String
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/v1/accounts/{sub}", access: .either(.accountsRead)) { request, context in
            _ = try request.query([])
            let team = try Self.team(context, .accountsRead)
            let sub = try context.pathParameter("sub")
            return try .json(try await pool.run { try item(sub: sub, team: team) })
        }
        routes.delete("/v1/accounts/{sub}", access: .either(.accountsWrite)) { [store, now] request, context in
            _ = try request.query([])
            let team = try Self.team(context, .accountsWrite)
            let sub = try context.pathParameter("sub")
            let change = context.change(now: now())
            try await pool.run {
                let account = try store.accounts.account(sub: sub, team: team)
                try store.accounts.delete(account: account.number, isTeams: team != nil, change)
            }
            return .empty
        }
        routes.post("/v1/accounts/{sub}/revoke", access: .either(.accountsWrite)) { [store, now] request, context in
            _ = try request.query([])
            let team = try Self.team(context, .accountsWrite)
            let sub = try context.pathParameter("sub")
            let body = try await request.decode(Revocation.self, context)
            let change = context.change(now: now())
            return try .json(
                try await pool.run {
                    let account = try store.accounts.account(sub: sub, team: team)
                    let count = try Self.revoke(account, clientID: body.clientId, store, change)
                    let state = try store.grants.credentialState(team: account.teamID, sub: sub, clientID: body.clientId)
                    return Revoked(sub: sub, revoked: count, credentialState: state.rawValue)
                })
        }
        routes.get("/v1/accounts/{sub}/credential-state", access: .either(.accountsRead)) { request, context in
            let clientID = try request.query(["client_id"])["client_id"]
            guard clientID.map({ (1...128).contains($0.utf8.count) }) ?? true else {
                throw Problem.malformed("client_id: must be 1 to 128 octets")
            }
            let team = try Self.team(context, .accountsRead)
            let sub = try context.pathParameter("sub")
            guard sub.utf8.count <= 255, NameText.isPlain(sub) else {
                throw Problem.malformed("sub: must be at most 255 octets without control characters")
            }
            let state = try await pool.run { [store] () throws -> CredentialState in
                guard let owner = team ?? (try? store.accounts.account(sub: sub))?.teamID else { return .notFound }
                return try store.grants.credentialState(team: owner, sub: sub, clientID: clientID)
            }
            // Not found is an answer here: anyone who asks has the `sub` and wants to know what it is worth.
            return try .json(State(sub: sub, clientId: clientID, credentialState: state.rawValue))
        }
    }

    /// The team that asks; nil for the operator.
    private static func team(_ context: APIContext, _ scope: Scope) throws -> String? {
        if case .team(let id, _, _, _) = try context.principal(scope: scope) { id } else { nil }
    }

    /// Ends every consent, or that to the group of one app; how many there were.
    private static func revoke(_ account: Account, clientID: String?, _ store: Store, _ change: Change) throws -> Int {
        guard let clientID else { return try store.grants.revokeAll(account: account.number, change) }
        guard let app = try store.apps.apps(team: account.teamID).first(where: { $0.clientID == clientID }) else {
            throw Problem.invalid("the team has no such app", at: "/client_id")
        }
        return try store.grants.revoke(account: account.number, group: app.group, change) ? 1 : 0
    }

    private func item(sub: String, team: String?) throws -> Item {
        let account = try store.accounts.account(sub: sub, team: team)
        let address = try store.addresses.current(account: account.number)
        let grants = try store.grants.grants(account: account.number)
        return Item(
            sub: account.sub, team: team == nil ? account.teamID : nil, user: team == nil ? account.userID : nil,
            credentialState: try store.grants.credentialState(team: account.teamID, sub: sub).rawValue,
            email: address?.address.wireForm, isPrivateEmail: account.emailKind == .privateRelay && address != nil,
            isForwardingOn: address?.isForwardingOn,
            consents: grants.map {
                Item.Consent(
                    clientId: $0.group.primaryClientID, state: $0.state.rawValue, realUserStatus: $0.realUserStatus,
                    firstAuthorizedAt: Timestamp($0.firstAuthorizedAt), lastAuthorizedAt: Timestamp($0.lastAuthorizedAt),
                    revokedAt: Timestamp($0.revokedAt))
            }, createdAt: Timestamp(account.createdAt))
    }
}
