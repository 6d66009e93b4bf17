// `postern policy backtest` of a status policy.

import Accounts
import Decisions
import RiskPolicy
import Support

extension PolicyBacktest {
    func status(_ referred: ReferredPolicy, _ listings: ListingStore, now: Int64) throws {
        guard html == nil, period.team == nil else {
            throw CommandError.usage(
                "--html and --team are not available for a status policy: leave them out")
        }
        let result = try StatusBacktest(
            referred.policy, listings: listings, since: try period.filter(now: now).since ?? 0)
        let order: [PolicyStatus] = [.likelyReal, .unsupported, .unknown]
        if output.json {
            let rows = order.map { status -> Members in
                let count = result[status]
                return [
                    "status": status.rawValue, "before": count.before, "after": count.after,
                    "fraudulent_after": count.fraudulentAfter,
                ]
            }
            return try printJSON(
                ["policy": referred.label, "authorizations": result.total, "statuses": rows]
                    as Members)
        }
        print(
            "\(referred.label) on \(Count.text(result.total)) first authorizations\(period.words)\n"
        )
        Table(
            header: ["STATUS", "BEFORE", "AFTER", "REPORTED AS FRAUD"],
            rows: order.map { status in
                let count = result[status]
                return [status.rawValue]
                    + [count.before, count.after, count.fraudulentAfter].map { Count.text($0) }
            }
        ).printInReport()
    }
}
