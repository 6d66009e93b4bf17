// Migration 7.

extension Migration {
    static let accounts = Migration(
        version: 7, name: "accounts",
        sql: """
            """)
}
