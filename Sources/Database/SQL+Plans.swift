// SQL that makes PostgreSQL read a table in the intended way, independent of its estimates. A young
// table has no statistics, and a new team or app is not in the statistics yet.

extension SQL {
    /// `LIMIT` for rows that an index has in order. If PostgreSQL knows the number and expects no
    /// more rows than that, it reads and sorts all rows. It does not know the result of a subquery
    /// in advance.
    package static func limit(_ rows: Int) -> SQL { "LIMIT (SELECT \(raw: "\(rows)"))" }

    /// A condition on a number column for which PostgreSQL uses no index of that column, only one
    /// with this very expression. Use it for the team, app or group in a statement about one user
    /// or row. If PostgreSQL expects a team to have few accounts, it reads all of them to find one,
    /// and then the change conflicts with all others.
    package static func filter(_ column: SQL) -> SQL { "(\(column) + 0)" }
}
