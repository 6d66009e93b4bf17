// `?1` as repositories write it, `$1` as PostgreSQL reads it.

enum Placeholders {
    /// The statement with `$` in place of every `?`. No literal in a query of ours may contain `?` (`DatabaseConnection`).
    static func translated(_ sql: String) -> String {
        var octets = Array(sql.utf8)
        for index in octets.indices where octets[index] == UInt8(ascii: "?") { octets[index] = UInt8(ascii: "$") }
        return String(decoding: octets, as: UTF8.self)
    }
}
