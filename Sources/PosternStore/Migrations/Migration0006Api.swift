// Migration 6.

extension Migration {
    static let api = Migration(
        version: 6, name: "api",
        sql: """
            """)
}
