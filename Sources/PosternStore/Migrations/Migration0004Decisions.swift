// Migration 4.

extension Migration {
    static let decisions = Migration(
        version: 4, name: "decisions",
        sql: """
            """)
}
