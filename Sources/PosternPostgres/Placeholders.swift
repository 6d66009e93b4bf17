// Translates the `?` of repositories to the `$1` of PostgreSQL.

import Database

enum Placeholders {
    /// The statement with `$1`, `$2`… in place of every `?`; a `?` with a number keeps it. No
    /// literal in our statements may contain `?` (`SQL`). Throws `statement` if some have a number
    /// and others do not (SQLite continues from the largest number), or if their count differs from
    /// the number of values.
    static func translated(_ sql: String, values: Int) throws(PostgresFailure) -> String {
        var octets: [UInt8] = []
        octets.reserveCapacity(sql.utf8.count + 32)
        // The number of those without a number, and the largest number of the others.
        var (number, largest) = (0, 0)
        var rest = sql.utf8[...]
        while let octet = rest.popFirst() {
            guard octet == UInt8(ascii: "?") else {
                octets.append(octet)
                continue
            }
            octets.append(UInt8(ascii: "$"))
            let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            if let given = Int(String(decoding: digits, as: UTF8.self)) {
                largest = max(largest, given)
            } else {
                number += 1
                octets += String(number).utf8
            }
        }
        guard number == 0 || largest == 0 else {
            throw PostgresFailure(
                .permanent(.statement, "a statement has places with a number and places without"))
        }
        guard max(number, largest) == values else {
            throw PostgresFailure(
                .permanent(.statement, "a statement got more or fewer values than it has places"))
        }
        return String(decoding: octets, as: UTF8.self)
    }
}
