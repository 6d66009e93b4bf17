// `GET /v1/complaints`: how often users reported the team's mail as unwanted to their providers.

import Accounts
import HTTP
import Hummingbird
import Support

/// The complaints of a day.
package struct ComplaintView: Encodable, Sendable {
    /// The beginning of the day, UTC.
    let day: Timestamp
    let complaints: Int
    let accounts: Int

    package init(_ day: ComplaintDay) {
        self.day = Timestamp(day.day * 86_400)
        complaints = day.complaints
        accounts = day.accounts
    }
}

/// The days that a team can query.
package struct ComplaintsView: Encodable, Sendable {
    /// Today and the days before, as far back as a team can still act on complaints.
    package static let days: Int64 = 30

    let items: [ComplaintView]

    package init(_ days: [ComplaintDay]) { items = days.map(ComplaintView.init) }
}

package struct ComplaintRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    package func addRoutes(to routes: Routes) {
        routes.team(.rejectionsRead).get("/v1/complaints", use: list)
    }

    private func list(_ request: Request, _ context: TeamContext) async throws -> Response {
        _ = try request.query([])
        let (team, first) = (
            context.caller.number, Day.number(parts.now()) - ComplaintsView.days + 1
        )
        return try .json(
            ComplaintsView(try await parts.run { try $0.complaints.days(team: team, since: first) })
        )
    }
}
