-- Migration 6: API keys, refusals of teams' mail, and what running services say of themselves.
-- `revision` grows with every change that a running service has to learn of; the last use is not one. A key without a team
-- is the operator's.

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

-- Why mail from a team's sources was refused: one row for each hour, source, answer and reason. No recipient, no content.
CREATE TABLE rejections (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    hour {int} NOT NULL,
    answer TEXT NOT NULL,
    reason TEXT NOT NULL,
    first_at {int} NOT NULL,
    last_at {int} NOT NULL,
    count {int} NOT NULL,
    reference TEXT NOT NULL,
    UNIQUE (team_id, hour, source, answer, reason)
) {strict};
CREATE INDEX rejections_last ON rejections (last_at);

-- What each running service last said of itself, as JSON; for `postern status` and `postern top`.
CREATE TABLE service_status (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    updated_at {int} NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (host, pid)
) {clustered};
