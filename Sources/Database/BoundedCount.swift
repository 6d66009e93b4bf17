// Counts of what may be millions: no statement takes long, and no more is counted than whoever asks has to know.

/// How far a count goes where a person is asked or told, and how it reads.
package enum BoundedCount {
    /// Beyond it there are "more": to whoever decides about so many, each further one is the same.
    package static let bound = 100_000
    /// Rows that one statement looks at.
    package static let rows = 10_000

    /// A count up to `bound`, for people.
    package static func text(_ count: Int) -> String { count > bound ? "more than 100,000" : "\(count)" }
}

extension SQLQuerying {
    /// Counts piece by piece, to the end or until there are more than `bound`, for which `bound + 1` stands.
    /// - Parameters:
    ///   - after: the key behind which to begin.
    ///   - piece: a query of rows behind a key in its order, ending as it is given: their `count`, and the `last` key or NULL.
    package func count(
        upTo bound: Int, after: Int64 = 0, rows: Int = BoundedCount.rows, _ piece: (_ after: Int64, _ limit: SQL) -> SQL
    ) throws(StoreFailure) -> Int {
        let limit = SQL.limit(rows)
        var (count, after) = (0, after)
        while count <= bound {
            guard let found = try row(piece(after, limit)), let last: Int64 = try found["last"] else { return count }
            count += try found["count"]
            after = last
        }
        return bound + 1
    }
}

extension SQL {
    /// `LIMIT` of rows that an index has in their order. A number that PostgreSQL knows it takes as a reason to read and sort
    /// everything, where it believes that there are no more rows than that; what a query gives it does not know before.
    package static func limit(_ rows: Int) -> SQL { "LIMIT (SELECT \(raw: "\(rows)"))" }
}
