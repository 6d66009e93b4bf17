// How PostgreSQL reads a table whatever it believes about it. A young table has no statistics, and a new team or app is in none.

extension SQL {
    /// `LIMIT` of rows that an index has in order. If PostgreSQL knows the number and expects no more rows, it reads and sorts
    /// everything; it does not know a subquery's result in advance.
    package static func limit(_ rows: Int) -> SQL { "LIMIT (SELECT \(raw: "\(rows)"))" }

    /// A column of numbers by which rows are chosen, but not found: no index of that column is used, only one that has this
    /// very expression. For the team, app or group of apps in a statement about one user or row: if PostgreSQL believes that a
    /// team has few accounts, it reads all of them to find one, and then this change conflicts with those of all others.
    package static func filter(_ column: SQL) -> SQL { "(\(column) + 0)" }
}
