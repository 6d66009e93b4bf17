// Migration 5.

extension Migration {
    static let policies = Migration(
        version: 5, name: "policies",
        sql: """
            """)
}
