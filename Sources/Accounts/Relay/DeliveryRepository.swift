// What became of forwards, by team, hour and provider.

import Database
import RelayCore
import Synchronization

package struct DeliveryRepository: Sendable {
    let events: AccountEvents
    var database: any Database { events.database }

    /// Adds counts to those of the accounts' teams, and notes in the same transaction how far the
    /// log was read. Accounts that no longer exist are skipped.
    /// - Parameters:
    ///   - log: the hash of the first line of the log.
    ///   - octets: how many of the log are counted then: from the lower bound to the upper one.
    /// - Returns: false if another reader counted some of them meanwhile: then nothing is written.
    package func add(
        _ counts: [DeliveryCount], log: [UInt8], octets: Range<Int64>, now: Int64
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let known: Int64? = try connection.value(
                "SELECT octets FROM delivery_logs WHERE mark = \(log)")
            guard known ?? 0 == octets.lowerBound else { return false }
            try connection.add(counts)
            try connection.run(
                """
                INSERT INTO delivery_logs (mark, octets, read_at) VALUES (\(log), \(octets.upperBound), \(now))
                ON CONFLICT (mark) DO UPDATE SET octets = excluded.octets, read_at = excluded.read_at
                """)
            return true
        }
    }

    /// How many octets of a log are counted; 0 for an unknown one.
    package func octetsRead(log: [UInt8]) throws(StoreFailure) -> Int64 {
        try database.value("SELECT octets FROM delivery_logs WHERE mark = \(log)") ?? 0
    }

    /// When a log was read last; nil for never.
    package func lastRead() throws(StoreFailure) -> Int64? {
        try database.row("SELECT MAX(read_at) AS at FROM delivery_logs").flatMap {
            row throws(StoreFailure) in try row["at"]
        }
    }

    /// The figures since an hour (since 1970), by team and provider.
    /// - Parameters:
    ///   - team: the team's identifier; nil for all teams.
    ///   - provider: nil for all providers.
    package func figures(
        since hour: Int64, team: String? = nil, provider: ProviderFamily? = nil
    ) throws(StoreFailure) -> [DeliveryFigures] {
        try database.read { connection throws(StoreFailure) in
            try connection.deliveryFigures(since: hour, team: team, provider: provider)
        }
    }

    /// The counts of all teams since an hour (since 1970).
    package func totals(
        since hour: Int64
    ) throws(StoreFailure) -> [(provider: ProviderFamily, outcome: DeliveryOutcome, count: Int)] {
        try database.rows(
            """
            SELECT provider, outcome, CAST(SUM(count) AS BIGINT) AS count FROM delivery_results
            WHERE hour >= \(hour) GROUP BY provider, outcome ORDER BY provider, outcome
            """
        ).map { row throws(StoreFailure) in
            try (row["provider"], row["outcome"], row["count"])
        }
    }

    /// Deletes counts and marks from before a time (seconds since 1970), at most `limit` of each.
    /// Returns the number.
    package func deleteExpired(before time: Int64, limit: Int = 1_000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let results = try connection.deletePast(
                .deliveryResults, where: "x.hour < \(time / 3_600)", limit: limit)
            let marks = try connection.deletePast(
                .deliveryMarks, where: "x.day < \(Day.number(time))", limit: limit)
            let left = try connection.run(
                """
                DELETE FROM delivery_marks_left WHERE (team_id, user_id, provider, what, day) IN
                    (SELECT team_id, user_id, provider, what, day FROM delivery_marks_left
                    WHERE day < \(Day.number(time)) LIMIT \(limit))
                """)
            let logs = try connection.run(
                """
                DELETE FROM delivery_logs WHERE mark IN
                    (SELECT mark FROM delivery_logs WHERE read_at < \(time) LIMIT \(limit))
                """)
            // A host has a row a day for each family at most.
            try connection.run("DELETE FROM warm_up_counts WHERE day < \(Day.number(time))")
            try connection.run("DELETE FROM provider_figures WHERE day < \(Day.number(time))")
            // The steps end when fewer rows than the limit were deleted.
            return max(results, marks, left, logs)
        }
    }
}

/// A row of `delivery_results`.
private struct ResultKey: Hashable {
    let team, hour: Int64
    let provider: ProviderFamily
    let outcome: DeliveryOutcome

    var order: (Int64, Int64, String, String) {
        (team, hour, provider.rawValue, outcome.rawValue)
    }
}

private struct FigureKey: Hashable {
    let team: String
    let provider: ProviderFamily
}

extension DatabaseConnection {
    /// Marks an account once a day.
    func note(
        _ mark: DeliveryMark, account: Int64, at provider: ProviderFamily, day: Int64
    ) throws(StoreFailure) {
        try run(
            """
            INSERT INTO delivery_marks (account_id, provider, what, day)
            SELECT id, \(provider), \(mark), \(day) FROM accounts WHERE id = \(account)
            ON CONFLICT (account_id, provider, what, day) DO NOTHING
            """)
    }

    /// Keeps the marks of an account that ends, for its team and user.
    func leaveMarks(ofAccount account: Int64) throws(StoreFailure) {
        try run(
            """
            INSERT INTO delivery_marks_left (team_id, user_id, provider, what, day)
            SELECT a.team_id, a.user_id, x.provider, x.what, x.day FROM delivery_marks x
            JOIN accounts a ON a.id = x.account_id
            WHERE x.account_id = \(account) AND a.user_id IS NOT NULL
            ON CONFLICT (team_id, user_id, provider, what, day) DO NOTHING
            """)
    }

    fileprivate func add(_ counts: [DeliveryCount]) throws(StoreFailure) {
        guard !counts.isEmpty else { return }
        var teams: [Int64: Int64] = [:]
        for account in Set(counts.map(\.account)).sorted() {
            teams[account] = try value("SELECT team_id FROM accounts WHERE id = \(account)")
        }
        var sums: [ResultKey: Int] = [:]
        var marks: Set<DeliveryCount> = []
        for count in counts {
            guard let team = teams[count.account] else { continue }
            let key = ResultKey(
                team: team, hour: count.hour, provider: count.provider, outcome: count.outcome)
            sums[key, default: 0] += count.count
            if DeliveryMark(count.outcome) != nil { marks.insert(count) }
        }
        // Every host locks rows in the same order, so that no two hosts block each other.
        for (key, count) in sums.sorted(by: { $0.key.order < $1.key.order }) {
            try run(
                """
                INSERT INTO delivery_results (team_id, hour, provider, outcome, count)
                VALUES (\(key.team), \(key.hour), \(key.provider), \(key.outcome), \(count))
                ON CONFLICT (team_id, hour, provider, outcome) DO UPDATE
                    SET count = delivery_results.count + excluded.count
                """)
        }
        for count in marks.sorted(by: { ($0.account, $0.hour) < ($1.account, $1.hour) }) {
            guard let mark = DeliveryMark(count.outcome) else { continue }
            try note(mark, account: count.account, at: count.provider, day: count.hour / 24)
        }
    }

    /// As `DeliveryRepository.figures`.
    func deliveryFigures(
        since hour: Int64, team: String?, provider: ProviderFamily?
    ) throws(StoreFailure) -> [DeliveryFigures] {
        var found: [FigureKey: DeliveryFigures] = [:]
        let ofTeam: SQL = team.map { " AND t.handle = \($0)" } ?? ""
        let atProvider: SQL = provider.map { " AND x.provider = \($0)" } ?? ""
        for row in try rows(
            """
            SELECT t.handle, x.provider, x.outcome, CAST(SUM(x.count) AS BIGINT) AS count
            FROM delivery_results x JOIN teams t ON t.id = x.team_id AND t.removed_at IS NULL
            WHERE x.hour >= \(hour)\(ofTeam)\(atProvider) GROUP BY t.handle, x.provider, x.outcome
            """)
        {
            let key = try FigureKey(team: row["handle"], provider: row["provider"])
            var figures =
                found[key] ?? DeliveryFigures(team: key.team, provider: key.provider, counts: [:])
            figures.counts[try row["outcome"]] = try row["count"]
            found[key] = figures
        }
        for row in try rows(
            """
            SELECT t.handle, x.provider, COUNT(*) AS count FROM \(DeliveryMark.all) x
            JOIN teams t ON t.id = x.team_id AND t.removed_at IS NULL
            WHERE x.what = 'complaint' AND x.day >= \(hour / 24)\(ofTeam)\(atProvider)
            GROUP BY t.handle, x.provider
            """)
        {
            let key = try FigureKey(team: row["handle"], provider: row["provider"])
            var figures =
                found[key] ?? DeliveryFigures(team: key.team, provider: key.provider, counts: [:])
            figures.complaints = try row["count"]
            found[key] = figures
        }
        return found.values.sorted {
            ($0.team, $1.count(.forwarded), $0.provider.rawValue)
                < ($1.team, $0.count(.forwarded), $1.provider.rawValue)
        }
    }
}

/// Collects counts in memory, outside the mail path; `flush` writes them in few transactions.
package final class DeliveryBuffer: Sendable {
    private struct Key: Hashable {
        let account: Int64
        let hour: Int64
        let provider: ProviderFamily
        let outcome: DeliveryOutcome
    }

    /// Different counts kept while the store is unavailable; further ones are dropped.
    package static let capacity = 100_000
    /// Counts written in one transaction: some ten milliseconds if the store is near.
    package static let step = 250

    /// Which teams' mail is slowed or held.
    package let gate = DeliveryGate()

    private let database: any Database
    private let counts = Mutex<[Key: Int]>([:])

    init(_ database: any Database) { self.database = database }

    /// Never blocks on the store.
    /// - Parameter now: seconds since 1970.
    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: Int64, now: Int64
    ) {
        let key = Key(account: account, hour: now / 3_600, provider: provider, outcome: outcome)
        counts.withLock { counts in
            guard counts.count < Self.capacity || counts[key] != nil else { return }
            counts[key, default: 0] += 1
        }
    }

    /// Writes the collected counts. If the store is unavailable, it keeps the rest for the next
    /// time and throws the error.
    package func flush() throws(StoreFailure) {
        var rest = counts.withLock { counts in
            defer { counts = [:] }
            return Array(counts)[...]
        }
        while !rest.isEmpty {
            let step = rest.prefix(Self.step).map {
                DeliveryCount(
                    account: $0.key.account, hour: $0.key.hour, provider: $0.key.provider,
                    outcome: $0.key.outcome, count: $0.value)
            }
            do {
                try database.write(.relaxed) { connection throws(StoreFailure) in
                    try connection.add(step)
                }
            } catch {
                counts.withLock { $0.merge(rest.map { ($0.key, $0.value) }) { $0 + $1 } }
                throw error
            }
            rest = rest.dropFirst(Self.step)
        }
    }
}
