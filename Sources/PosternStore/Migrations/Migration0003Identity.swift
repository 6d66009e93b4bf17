// Migration 3.

extension Migration {
    static let identity = Migration(
        version: 3, name: "identity",
        sql: """
            """)
}
