// Hourly reports of refused mail of a team, for streams that request them.

import Accounts
import Database
import MailCrypto
import SharedSignals
import Support

extension StreamRepository {
    /// Seconds after an hour in which hosts record their refusals of that hour.
    private static let grace: Int64 = 300
    /// Maximum number of past hours in one report, after an outage.
    private static let longest: Int64 = 24
    /// Kinds of refusals listed in one report; the rest is only counted.
    private static let kinds = 50
    /// Streams for which one call writes reports.
    private static let batch = 200

    /// Writes reports of refusals in whole hours that are not reported yet, one for each stream;
    /// returns how many.
    package func reportRefusals(now: Int64) throws(StoreFailure) -> Int {
        let hour = (now - Self.grace) / 3_600 - 1
        let waiting: [Int64] = try database.values(
            """
            SELECT s.endpoint_id FROM event_streams s JOIN event_endpoints e ON e.id = s.endpoint_id AND e.stream_group IS NOT NULL
            WHERE s.refusals_until < \(hour) AND s.team_id IS NOT NULL ORDER BY s.endpoint_id LIMIT \(Self.batch)
            """)
        var count = 0
        for endpoint in waiting {
            count += try database.write(.relaxed) { connection throws(StoreFailure) in
                try report(connection, endpoint, until: hour, now: now) ? 1 : 0
            }
        }
        if count > 0 { signal.raise() }
        return count
    }

    private func report(
        _ connection: any DatabaseConnection, _ endpoint: Int64, until hour: Int64, now: Int64
    ) throws(StoreFailure) -> Bool {
        let row = try connection.row(
            """
            SELECT s.stream_id, s.team_id, s.refusals_until, s.status, s.types, e.dialect FROM event_streams s
            JOIN event_endpoints e ON e.id = s.endpoint_id WHERE s.endpoint_id = \(endpoint) AND s.refusals_until < \(hour)
            """)
        // Another host may have reported first.
        guard let row else { return false }
        let (stream, team, status): (String, Int64?, StreamStatus) = try (
            row["stream_id"], row["team_id"], row["status"]
        )
        let first = max(try row["refusals_until"], hour - Self.longest)
        try connection.run(
            "UPDATE event_streams SET refusals_until = \(hour) WHERE endpoint_id = \(endpoint)")
        guard let team, status != .disabled, try WantedEvents(row: row).contains(.refusals) else {
            return false
        }
        let found = try connection.rows(
            """
            SELECT answer, reason, source, CAST(SUM(count) AS BIGINT) AS count FROM rejections
            WHERE team_id = \(team) AND hour > \(first) AND hour <= \(hour)
            GROUP BY answer, reason, source ORDER BY count DESC, answer, reason, source
            """)
        guard !found.isEmpty else { return false }
        var total: Int64 = 0
        var refusals: [JSONValue] = []
        for row in found {
            let count: Int64 = try row["count"]
            total += count
            guard refusals.count < Self.kinds else { continue }
            refusals.append(
                .object([
                    "answer": .string(try row["answer"]), "reason": .string(try row["reason"]),
                    "source": .string(try row["source"]), "count": .integer(count),
                ]))
        }
        let detail: JSONObject = [
            "from": .integer((first + 1) * 3_600), "to": .integer((hour + 1) * 3_600),
            "total": .integer(total),
            "refusals": .array(refusals),
        ]
        let jti = Base32.characters(fromRandom: try SecureRandom.octets(32))
        try connection.post(
            .refusals, endpoint: endpoint, account: 0, sub: stream, email: nil,
            detail: JSONValue.object(detail).text, jti: jti,
            txn: jti, at: EventMoment(now))
        return true
    }
}
