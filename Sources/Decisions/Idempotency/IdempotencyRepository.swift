// Idempotency keys: one answer for one request, even if it is sent several times.

import Database

/// The state of an idempotency key when a request claims it.
package enum IdempotencyClaim: Sendable, Hashable {
    /// The key is new: do the work, then call `finish`, or `abandon` if it failed.
    case new
    /// The same request was answered: send this answer again.
    case answered(String)
    /// The same request is still in progress.
    case inFlight
    /// The key was used with another body.
    case otherBody
}

/// Claims keys, per team and endpoint.
package struct IdempotencyRepository: Sendable {
    let database: any Database

    /// How long a key is remembered, in seconds.
    package static let retention: Int64 = 86_400
    /// Seconds. If a request is in progress for longer than this, its process has ended, and its
    /// key is free again.
    package static let flightTime: Int64 = 60

    /// Claims a key.
    /// - Parameters:
    ///   - key: `DecisionMarks.idempotencyKey`.
    ///   - body: SHA-256 of the body.
    package func claim(
        team: Int64, endpoint: String, key: [UInt8], body: [UInt8], now: Int64
    ) throws(StoreFailure) -> IdempotencyClaim {
        try database.write(.durable, timeout: GroupCommit.timeout) {
            connection throws(StoreFailure) in
            let inserted = try connection.run(
                """
                INSERT INTO idempotency_keys (team_id, endpoint, key_mark, body_mark, begun_at)
                VALUES (\(team), \(endpoint), \(key), \(body), \(now))
                ON CONFLICT (team_id, endpoint, key_mark) DO UPDATE
                    SET body_mark = excluded.body_mark, begun_at = excluded.begun_at, answer = NULL
                    WHERE idempotency_keys.begun_at <= \(now - Self.retention)
                        OR (idempotency_keys.answer IS NULL AND idempotency_keys.begun_at <= \(now - Self.flightTime))
                """)
            if inserted > 0 { return .new }
            let row = try connection.row(
                """
                SELECT body_mark, answer FROM idempotency_keys
                WHERE team_id = \(team) AND endpoint = \(endpoint) AND key_mark = \(key)
                """)
            guard let row else { return .new }
            guard try row["body_mark"] == body else { return .otherBody }
            guard let answer: String = try row["answer"] else { return .inFlight }
            return .answered(answer)
        }
    }

    /// Stores the answer for the key; does nothing if another request claimed the key later.
    /// - Parameter begunAt: `now` of the claim, which identifies it: the key's next claim is at
    ///   least `flightTime` later.
    package func finish(
        team: Int64, endpoint: String, key: [UInt8], begunAt: Int64, answer: String
    ) throws(StoreFailure) {
        try database.write(.durable, timeout: GroupCommit.timeout) {
            connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE idempotency_keys SET answer = \(answer)
                WHERE team_id = \(team) AND endpoint = \(endpoint) AND key_mark = \(key) AND \(SQL.filter("begun_at")) = \(begunAt)
                    AND answer IS NULL
                """)
        }
    }

    /// Frees a key whose request has no answer to store, so that the client can retry with it.
    /// Parameters as for `finish`.
    package func abandon(
        team: Int64, endpoint: String, key: [UInt8], begunAt: Int64
    ) throws(StoreFailure) {
        try database.write(.relaxed, timeout: GroupCommit.timeout) {
            connection throws(StoreFailure) in
            try connection.run(
                """
                DELETE FROM idempotency_keys
                WHERE team_id = \(team) AND endpoint = \(endpoint) AND key_mark = \(key) AND \(SQL.filter("begun_at")) = \(begunAt)
                    AND answer IS NULL
                """)
        }
    }

    /// Deletes keys older than `retention`, at most `limit`; returns how many.
    package func deleteExpired(now: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            // The number must not come first: SQLite compares all columns like the first one, and
            // then does not find blobs or text.
            try connection.run(
                """
                DELETE FROM idempotency_keys WHERE (key_mark, team_id, endpoint) IN
                    (SELECT key_mark, team_id, endpoint FROM idempotency_keys WHERE begun_at <= \(now - Self.retention)
                        LIMIT \(limit))
                """)
        }
    }
}
