// Sign-ups of an app: the last hour compared with the usual rate.

import Database

/// The rate of sign-ups of an app.
package struct AppRates: Sendable, Hashable {
    /// Sign-ups of the last hour, in steps of five minutes.
    package let signUps1h: Int64
    /// Average sign-ups per hour over the seven days before. Nil unless the first of these sign-ups
    /// was a day or more before the last hour.
    package let baseline: Double?

    package init(signUps1h: Int64, baseline: Double?) {
        self.signUps1h = signUps1h
        self.baseline = baseline
    }

    /// Length of a slice in seconds.
    static let sliceLength: Int64 = 300
    static func slice(_ time: Int64) -> Int64 { time / sliceLength }
    private static let hour: Int64 = 12
    private static let day: Int64 = 288
    static let week: Int64 = 7 * day

    /// From the sum of the last hour, the sum of the week before it, and the first slice of that
    /// week with a sign-up.
    init(lastHour: Int64, before: Int64, first: Int64?, now: Int64) {
        signUps1h = lastHour
        let end = Self.slice(now) - Self.hour
        guard let first, end - first >= Self.day else {
            baseline = nil
            return
        }
        let slices = min(Self.week, end - first)
        baseline = Double(before) * Double(Self.hour) / Double(slices)
    }

    static func bounds(_ now: Int64) -> (hour: Int64, week: Int64) {
        let end = slice(now) - hour
        return (end, end - week)
    }
}

/// Reads the rates of apps.
package struct AppRateRepository: Sendable {
    let database: any Database

    /// The rates of an app by its number.
    package func rates(app: Int64, now: Int64) throws(StoreFailure) -> AppRates {
        try database.read { connection throws(StoreFailure) in
            try connection.appRates(app: app, now: now)
        }
    }

    /// Deletes data that no rate needs: slices before that week, and marks of sign-ups older than
    /// two days.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let slices = try connection.run(
                """
                DELETE FROM app_signups WHERE (app_id, slice) IN
                    (SELECT app_id, slice FROM app_signups WHERE slice <= \(AppRates.bounds(now).week) LIMIT \(limit))
                """)
            let marks = try connection.run(
                """
                DELETE FROM verified_signups WHERE (velocity_index, team_id, user_id, day) IN
                    (SELECT velocity_index, team_id, user_id, day FROM verified_signups WHERE at <= \(now - 2 * 86_400)
                        LIMIT \(limit))
                """)
            return max(slices, marks)
        }
    }
}

extension DatabaseConnection {
    /// The rates of an app within a transaction.
    func appRates(app: Int64, now: Int64) throws(StoreFailure) -> AppRates {
        let (hour, week) = AppRates.bounds(now)
        let row = try row(
            """
            SELECT CAST(COALESCE(SUM(CASE WHEN slice > \(hour) THEN count ELSE 0 END), 0) AS BIGINT) AS last_hour,
                CAST(COALESCE(SUM(CASE WHEN slice > \(hour) THEN 0 ELSE count END), 0) AS BIGINT) AS before,
                MIN(CASE WHEN slice > \(hour) THEN NULL ELSE slice END) AS first
            FROM app_signups WHERE app_id = \(app) AND slice > \(week)
            """)
        guard let row else { return AppRates(signUps1h: 0, baseline: nil) }
        return try AppRates(
            lastHour: row["last_hour"], before: row["before"], first: row["first"], now: now)
    }
}
