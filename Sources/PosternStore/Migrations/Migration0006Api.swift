// Migration 6: API keys.

extension Migration {
    /// `revision` grows with every change that a running service has to learn of; the last use is not one. A key without a team is
    /// the operator's.
    static let api = Migration(
        version: 6, name: "api",
        sql: """
            CREATE TABLE api_keys (
                id {id},
                handle TEXT NOT NULL UNIQUE,
                team_id {int} REFERENCES teams (id) ON DELETE CASCADE,
                scopes TEXT NOT NULL,
                note TEXT NOT NULL,
                secret_hash {bytes} NOT NULL,
                created_at {int} NOT NULL,
                expires_at {int},
                revoked_at {int},
                last_used_day {int},
                rotated_to TEXT,
                revision {int} NOT NULL
            ) {strict};
            CREATE INDEX api_keys_team ON api_keys (team_id);
            CREATE INDEX api_keys_revision ON api_keys (revision);
            """)
}
