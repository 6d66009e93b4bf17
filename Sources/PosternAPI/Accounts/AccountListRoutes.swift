// `GET /v1/accounts`: a team's accounts, or for the operator everyone's.

import Hummingbird
import PosternStore

package struct AccountListRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let cursors: Cursors

    package init(_ store: Store, _ pool: BlockingPool, _ cursors: Cursors) {
        self.store = store
        self.pool = pool
        self.cursors = cursors
    }

    struct Item: Encodable, Sendable {
        struct Consent: Encodable, Sendable {
            let clientId: String?
            let state: String
        }
        let sub: String
        /// For the operator only: a team knows its users by `sub`.
        let team: String?
        let user: String?
        let email: String?
        let isForwardingOn: Bool
        let consents: [Consent]
        let createdAt: Timestamp

        init(_ account: AccountSummary, forOperator isOperator: Bool) {
            sub = account.sub
            team = isOperator ? account.teamID : nil
            user = isOperator ? account.userID : nil
            email = account.address?.wireForm
            isForwardingOn = account.isForwardingOn
            consents = account.grants.map { Consent(clientId: $0.app, state: $0.state.rawValue) }
            createdAt = Timestamp(account.createdAt)
        }
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/v1/accounts", access: .either(.accountsRead)) { [store, pool, cursors] request, context in
            let team: Int64?
            let listing: String
            let query: [String: String]
            switch try context.principal(scope: .accountsRead) {
            case .team(let id, let number, _, _):
                (team, listing) = (number, "accounts team:\(id)")
                query = try request.query(PageRequest.parameters)
            case .operator:
                (team, listing) = (nil, "accounts")
                query = try request.query(PageRequest.parameters)
            }
            let page = try PageRequest(query, cursors, listing: listing)
            let after = page.after.flatMap { Int64($0) } ?? 0
            let found = try await pool.run { try store.accountList.accounts(team: team, after: after, limit: page.limit + 1) }
            let items = found.prefix(page.limit).map { Item($0, forOperator: team == nil) }
            let next =
                found.count > page.limit
                ? found.prefix(page.limit).last.map { cursors.cursor(after: "\($0.number)", of: listing) } : nil
            return try .json(Page(items: items, nextCursor: next))
        }
    }
}
