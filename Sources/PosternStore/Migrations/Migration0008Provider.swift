// Migration 8.

extension Migration {
    static let provider = Migration(
        version: 8, name: "provider",
        sql: """
            """)
}
