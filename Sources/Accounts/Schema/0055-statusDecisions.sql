-- Migration 55: what a status policy said of a user at the first authorization of an app, and why: for the operator alone.
-- Times are in seconds since 1970; signals as in decisions.

CREATE TABLE status_decisions (
    id {id},
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    status {int} NOT NULL,
    reasons TEXT NOT NULL,
    signals TEXT NOT NULL,
    policy_name TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    policy_hash TEXT NOT NULL,
    decided_at {int} NOT NULL
) {strict};
CREATE INDEX status_decisions_grant ON status_decisions (grant_id);
CREATE INDEX status_decisions_time ON status_decisions (decided_at);
