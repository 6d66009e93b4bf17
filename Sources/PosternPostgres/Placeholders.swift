// `?` as repositories write it, `$1` as PostgreSQL reads it.

import Database

enum Placeholders {
    /// The statement with `$1`, `$2`… in place of every `?`; one that has a number keeps it. No literal in a statement of ours
    /// may contain `?` (`SQL`). Throws `PermanentStoreError` where some have a number and others have not: SQLite counts on from
    /// the largest number.
    static func translated(_ sql: String) throws -> String {
        var octets: [UInt8] = []
        octets.reserveCapacity(sql.utf8.count + 32)
        var number = 0
        var isNumbered = false
        var rest = sql.utf8[...]
        while let octet = rest.popFirst() {
            guard octet == UInt8(ascii: "?") else {
                octets.append(octet)
                continue
            }
            octets.append(UInt8(ascii: "$"))
            if let next = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next) {
                isNumbered = true
            } else {
                number += 1
                octets += String(number).utf8
            }
        }
        guard !isNumbered || number == 0 else {
            throw PermanentStoreError(.statement, "a statement has places with a number and places without")
        }
        return String(decoding: octets, as: UTF8.self)
    }
}
