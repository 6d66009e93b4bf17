// Counts of rows of which there may be millions. No statement takes long, and counting stops when
// the caller knows enough.

/// The bound of a count for people, and its text.
package enum BoundedCount {
    /// Above this the text is "more than": for the reader's decision the exact number does not
    /// matter.
    package static let bound = 100_000
    /// Rows that one statement reads at most.
    package static let rows = 10_000

    /// A count up to `bound`, for people.
    package static func text(_ count: Int) -> String {
        count > bound ? "more than 100,000" : "\(count)"
    }
}

extension SQLQuerying {
    /// Counts in pieces, to the end or until there are more than `bound`; then the result is
    /// `bound + 1`.
    /// - Parameters:
    ///   - after: the key after which to start.
    ///   - piece: a query of the rows after a key, in key order, with the given limit. It returns
    ///     their `count`, and the `last` key or NULL.
    package func count(
        upTo bound: Int, after: Int64 = 0, rows: Int = BoundedCount.rows,
        _ piece: (_ after: Int64, _ limit: SQL) -> SQL
    ) throws(StoreFailure) -> Int {
        let limit = SQL.limit(rows)
        var (count, after) = (0, after)
        while count <= bound {
            guard let found = try row(piece(after, limit)), let last: Int64 = try found["last"]
            else { return count }
            count += try found["count"]
            after = last
        }
        return bound + 1
    }
}
