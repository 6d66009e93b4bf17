// Migration 9.

extension Migration {
    static let inboxVerification = Migration(
        version: 9, name: "inboxVerification",
        sql: """
            """)
}
