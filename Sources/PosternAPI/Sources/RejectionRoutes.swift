// `GET /v1/rejections`: why our mail was refused lately.

import Hummingbird
import PosternStore

package struct RejectionRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let cursors: Cursors

    package init(_ store: Store, _ pool: BlockingPool, _ cursors: Cursors) {
        self.store = store
        self.pool = pool
        self.cursors = cursors
    }

    struct Item: Encodable, Sendable {
        let firstAt: Timestamp
        let lastAt: Timestamp
        let count: Int
        let answer: String
        let reason: String
        let source: String
        let reference: String
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.get("/v1/rejections", access: .team(.rejectionsRead)) { [store, pool, cursors] request, context in
            let team = try context.team(scope: .rejectionsRead)
            let listing = "rejections team:\(team.id)"
            let page = try PageRequest(try request.query(PageRequest.parameters), cursors, listing: listing)
            let before = page.after.flatMap { Int64($0) }
            let found = try await pool.run {
                try store.rejections.rejections(team: team.number, before: before, limit: page.limit + 1)
            }
            let items = found.prefix(page.limit).map {
                Item(
                    firstAt: Timestamp($0.firstAt), lastAt: Timestamp($0.lastAt), count: $0.count, answer: $0.answer,
                    reason: $0.reason,
                    source: $0.source, reference: $0.reference)
            }
            let next =
                found.count > page.limit
                ? found.prefix(page.limit).last.map { cursors.cursor(after: "\($0.number)", of: listing) } : nil
            return try .json(Page(items: items, nextCursor: next))
        }
    }
}
