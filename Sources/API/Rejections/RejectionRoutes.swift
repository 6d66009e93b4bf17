// `GET /v1/rejections`: why the team's mail was refused recently.

import Accounts
import HTTP
import Hummingbird
import Support

/// The refusals of one source for one reason.
package struct RejectionView: Encodable, Sendable {
    let firstAt: Timestamp
    let lastAt: Timestamp
    let count: Int
    let answer: String
    let reason: String
    let source: String
    let reference: String

    package init(_ rejection: Rejection) {
        firstAt = Timestamp(rejection.firstAt)
        lastAt = Timestamp(rejection.lastAt)
        count = rejection.count
        answer = rejection.answer
        reason = rejection.reason
        source = rejection.source
        reference = rejection.reference
    }
}

package struct RejectionRoutes: RouteModule {
    private let parts: RouteParts
    private let listings: ListingStore

    package init(_ parts: RouteParts, listings: ListingStore) {
        (self.parts, self.listings) = (parts, listings)
    }

    package func addRoutes(to routes: Routes) {
        routes.team(.rejectionsRead).get("/v1/rejections", use: list)
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        let team = context.caller
        let page = try PageRequest(
            try request.query(PageRequest.parameters), parts.cursors,
            listing: "rejections team:\(team.id)")
        let found = try await parts.pool.run { [listings] in
            try listings.rejections.rejections(
                team: team.number, before: page.afterNumber, limit: page.rows)
        }
        return try .json(page.page(found, position: { "\($0.number)" }, item: RejectionView.init))
    }
}
